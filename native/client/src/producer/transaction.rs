//! Where a transactional producer's transaction stands, as its callers, its sender and the control plane share it.
//!
//! The control plane asks the coordinator, and says here when a transaction begins and ends and which identity it has. A
//! batch belongs to the transaction in which it was opened, and carries its [`Mark`]; the sender reads everything that it
//! needs to know of a transaction there, so that no batch is sent under the identity of another. What goes wrong with a
//! batch is kept here until the control plane looks.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::ClientError;
use crate::network::waker::Signal;
use pybroker_wire::ErrorCode;
use pybroker_wire::init_producer_id::ProducerIdentity;

/// One transaction of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Ascending over the producer's transactions, from 1.
    pub number: u64,
    pub identity: ProducerIdentity,
    /// A Produce adds its partitions to the transaction (`transaction.version` 2, KIP-890). Else no batch of a partition
    /// is sent before the control plane has said that the partition was added.
    pub implicit: bool,
}

/// Whether batches may be opened.
#[derive(Debug, Clone, Default)]
pub enum Gate {
    /// The producer is not transactional.
    #[default]
    Free,
    Open(Mark),
    Shut(ClientError),
}

/// Batches of transactions up to a number are given up instead of being sent.
#[derive(Debug, Clone)]
pub struct Stop {
    /// Ascending with every stop of a producer, from 1.
    pub number: u64,
    pub through: u64,
    pub error: ClientError,
    /// Those too that a broker may have seen; else they are sent until their fate is known.
    pub all: bool,
}

/// What went wrong in a transaction first.
#[derive(Debug, Clone)]
pub struct Failure {
    pub error: ClientError,
    /// No other transaction of this producer succeeds either.
    pub fatal: bool,
    /// A batch was given up of which a broker may wait for the sequence numbers: the next transaction needs another epoch.
    pub lost_sequence: bool,
}

#[derive(Debug, Default)]
struct State {
    number: u64,
    /// The number of the last transaction of which a batch was sent.
    last_sent: u64,
    unadded: Vec<(Arc<str>, i32)>,
    added: Vec<(u64, String, i32)>,
    stop: Option<Stop>,
    failure: Option<Failure>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Transactions {
    state: Mutex<State>,
    /// Raised when there is a partition to add.
    pub signal: Signal,
}

impl Transactions {
    /// The mark of the transaction that begins.
    pub fn begin(&self, identity: ProducerIdentity, implicit: bool) -> Mark {
        let mut state = self.state.lock();
        state.number += 1;
        state.failure = None;
        state.unadded.clear();
        Mark { number: state.number, identity, implicit }
    }

    /// Give up what waits of the transactions so far.
    pub fn stop(&self, error: ClientError, all: bool) {
        let mut state = self.state.lock();
        let all = all || state.stop.as_ref().is_some_and(|stop| stop.all);
        let number = state.stop.as_ref().map_or(1, |stop| stop.number + 1);
        state.stop = Some(Stop { number, through: state.number, error, all });
    }

    /// What is to be given up.
    pub fn stopped(&self) -> Option<Stop> {
        self.state.lock().stop.clone()
    }

    /// Something went wrong; the first failure of a transaction stays, unless a fatal one follows. The error that callers
    /// meet from now on, where this is the one.
    pub fn fail(&self, error: &ClientError, fatal: bool, lost_sequence: bool) -> Option<ClientError> {
        let mut state = self.state.lock();
        if let Some(known) = &mut state.failure {
            known.lost_sequence |= lost_sequence;
            if known.fatal || !fatal {
                return None;
            }
        }
        let lost_sequence = lost_sequence || state.failure.as_ref().is_some_and(|known| known.lost_sequence);
        state.failure = Some(Failure { error: error.clone(), fatal, lost_sequence });
        Some(failed(error, fatal))
    }

    /// For the sender, which sends a batch of this transaction.
    pub fn note_sent(&self, mark: Mark) {
        self.state.lock().last_sent = mark.number;
    }

    /// Whether a batch was sent of the transaction that began last.
    pub fn has_sent(&self) -> bool {
        let state = self.state.lock();
        state.number > 0 && state.last_sent == state.number
    }

    /// Forget what went wrong, unless it is fatal. Whether there was something to forget.
    pub fn forget_failure(&self) -> bool {
        self.state.lock().failure.take_if(|failure| !failure.fatal).is_some()
    }

    /// What went wrong in the transaction that began last.
    pub fn failure(&self) -> Option<Failure> {
        self.state.lock().failure.clone()
    }

    /// Have the control plane add a partition.
    pub fn want(&self, topic: Arc<str>, partition: i32) {
        self.state.lock().unadded.push((topic, partition));
        self.signal.raise();
    }

    /// The partitions to add that were not taken yet.
    pub fn take_unadded(&self) -> Vec<(Arc<str>, i32)> {
        self.signal.clear();
        std::mem::take(&mut self.state.lock().unadded)
    }

    /// Batches of these partitions may be sent in the transaction that began last.
    pub fn take_in(&self, partitions: Vec<(String, i32)>) {
        let mut state = self.state.lock();
        let number = state.number;
        state.added.extend(partitions.into_iter().map(|(topic, index)| (number, topic, index)));
    }

    /// For the sender, which partitions were added since it last asked, and to which transaction.
    pub fn take_added(&self) -> Vec<(u64, String, i32)> {
        std::mem::take(&mut self.state.lock().added)
    }

    /// Whether the sender, which has seen the stops up to a number, should look instead of sleeping.
    pub fn has_news(&self, seen: u64) -> bool {
        let state = self.state.lock();
        !state.added.is_empty() || state.stop.as_ref().is_some_and(|stop| stop.number > seen)
    }
}

/// What callers meet after a failure.
pub fn failed(error: &ClientError, fatal: bool) -> ClientError {
    match error {
        ClientError::TransactionFailed { .. } => error.clone(),
        _ => ClientError::TransactionFailed { fatal, code: code_of(error), detail: error.to_string() },
    }
}

/// The broker's error code, where the failure is an answer.
pub fn code_of(error: &ClientError) -> ErrorCode {
    match error {
        ClientError::Broker { code, .. } | ClientError::TransactionFailed { code, .. } => *code,
        _ => ErrorCode::NONE,
    }
}

/// Whether no other transaction of a producer succeeds after this, as Kafka's `TransactionManager` judges a failed batch.
pub fn is_fatal(error: &ClientError) -> bool {
    match error {
        ClientError::UnsupportedVersion { .. } => true,
        error => matches!(
            code_of(error),
            ErrorCode::PRODUCER_FENCED
                | ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                | ErrorCode::CLUSTER_AUTHORIZATION_FAILED
                | ErrorCode::INVALID_PRODUCER_ID_MAPPING
                | ErrorCode::UNSUPPORTED_VERSION
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(code: ErrorCode) -> ClientError {
        ClientError::Broker { topic: "t".to_owned(), partition: 0, code, message: None }
    }

    fn begun() -> Transactions {
        let transactions = Transactions::default();
        let mark = transactions.begin(ProducerIdentity { id: 7, epoch: 0 }, false);
        assert_eq!(mark.number, 1);
        transactions
    }

    #[test]
    fn the_first_failure_stays_until_a_fatal_one() {
        let transactions = begun();
        assert!(transactions.fail(&broker(ErrorCode::MESSAGE_TOO_LARGE), false, false).is_some());
        assert!(transactions.fail(&broker(ErrorCode::INVALID_PRODUCER_EPOCH), false, true).is_none());
        let failure = transactions.failure().expect("a failure");
        assert_eq!((code_of(&failure.error), failure.fatal), (ErrorCode::MESSAGE_TOO_LARGE, false));
        assert!(failure.lost_sequence);
        let fenced = broker(ErrorCode::PRODUCER_FENCED);
        let met = transactions.fail(&fenced, is_fatal(&fenced), false);
        assert!(matches!(met, Some(ClientError::TransactionFailed { fatal: true, .. })));
        assert!(transactions.fail(&broker(ErrorCode::MESSAGE_TOO_LARGE), false, false).is_none());
        transactions.begin(ProducerIdentity { id: 7, epoch: 1 }, true);
        assert!(transactions.failure().is_none());
    }

    #[test]
    fn what_stops_one_transaction_does_not_stop_the_next() {
        let transactions = begun();
        transactions.stop(ClientError::TransactionAborted, false);
        let mark = transactions.begin(ProducerIdentity { id: 7, epoch: 1 }, true);
        let stop = transactions.stopped().expect("a stop");
        assert!(stop.through < mark.number && !stop.all);
        assert!(transactions.has_news(0) && !transactions.has_news(stop.number));
        transactions.stop(ClientError::TransactionAborted, true);
        assert!(transactions.has_news(stop.number));
    }

    #[test]
    fn a_transaction_of_which_nothing_was_sent_is_known_to_nobody() {
        let transactions = Transactions::default();
        assert!(!transactions.has_sent());
        let mark = transactions.begin(ProducerIdentity { id: 7, epoch: 0 }, true);
        assert!(!transactions.has_sent());
        transactions.note_sent(mark);
        assert!(transactions.has_sent());
        transactions.begin(ProducerIdentity { id: 7, epoch: 1 }, true);
        assert!(!transactions.has_sent());
    }

    #[test]
    fn partitions_are_asked_for_and_added_by_transaction() {
        let transactions = begun();
        transactions.want("t".into(), 3);
        assert_eq!(transactions.take_unadded(), [("t".into(), 3)]);
        transactions.take_in(vec![("t".to_owned(), 3)]);
        assert_eq!(transactions.take_added(), [(1, "t".to_owned(), 3)]);
        assert!(transactions.take_unadded().is_empty() && transactions.take_added().is_empty());
    }
}
