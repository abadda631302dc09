//! The state of a transactional producer's transaction, shared by its callers, its sender and the control plane.
//!
//! The control plane sends the requests to the coordinator, and sets here the begin, the end and the identity of a
//! transaction. A batch belongs to the transaction in which it was opened, and has its [`Mark`]. The sender uses only this
//! mark, so that no batch is sent under the identity of another transaction. The failure of a batch is kept here until the
//! control plane reads it.

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
    /// A Produce adds its partitions to the transaction (`transaction.version` 2, KIP-890). If false, no batch of a
    /// partition is sent before the control plane has added the partition.
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

/// Batches of transactions up to a number fail instead of being sent.
#[derive(Debug, Clone)]
pub struct Stop {
    /// Ascending with every stop of a producer, from 1.
    pub number: u64,
    pub through: u64,
    pub error: ClientError,
    /// Include batches that a broker may have received; if false, these are sent until they complete.
    pub all: bool,
}

/// The first failure of a transaction.
#[derive(Debug, Clone)]
pub struct Failure {
    pub error: ClientError,
    /// Every later transaction of this producer fails too.
    pub fatal: bool,
    /// A batch failed whose sequence numbers a broker may expect: the next transaction needs another epoch.
    pub lost_sequence: bool,
}

#[derive(Debug, Default)]
struct State {
    number: u64,
    /// The number of the last transaction with a batch that was sent.
    last_sent: u64,
    unadded: Vec<(Arc<str>, i32)>,
    added: Vec<(u64, String, i32)>,
    stop: Option<Stop>,
    failure: Option<Failure>,
}

/// The transactions of one producer.
#[derive(Debug, Default)]
pub struct Transactions {
    state: Mutex<State>,
    /// Raised when a partition has to be added.
    pub signal: Signal,
}

impl Transactions {
    /// Begin a transaction; returns its mark.
    pub fn begin(&self, identity: ProducerIdentity, implicit: bool) -> Mark {
        let mut state = self.state.lock();
        state.number += 1;
        state.failure = None;
        state.unadded.clear();
        Mark { number: state.number, identity, implicit }
    }

    /// Fail the waiting batches of all transactions so far.
    pub fn stop(&self, error: ClientError, all: bool) {
        let mut state = self.state.lock();
        let all = all || state.stop.as_ref().is_some_and(|stop| stop.all);
        let number = state.stop.as_ref().map_or(1, |stop| stop.number + 1);
        state.stop = Some(Stop { number, through: state.number, error, all });
    }

    /// The batches to fail.
    pub fn stopped(&self) -> Option<Stop> {
        self.state.lock().stop.clone()
    }

    /// Record a failure. The first failure of a transaction is kept, unless a fatal one follows. Returns the error for
    /// callers, if this failure is kept.
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

    /// Record that a batch of this transaction is sent.
    pub fn note_sent(&self, mark: Mark) {
        self.state.lock().last_sent = mark.number;
    }

    /// Whether a batch of the last transaction was sent.
    pub fn has_sent(&self) -> bool {
        let state = self.state.lock();
        state.number > 0 && state.last_sent == state.number
    }

    /// Clear the failure, unless it is fatal. Returns whether there was one.
    pub fn forget_failure(&self) -> bool {
        self.state.lock().failure.take_if(|failure| !failure.fatal).is_some()
    }

    /// The failure of the last transaction.
    pub fn failure(&self) -> Option<Failure> {
        self.state.lock().failure.clone()
    }

    /// Request the control plane to add a partition.
    pub fn want(&self, topic: Arc<str>, partition: i32) {
        self.state.lock().unadded.push((topic, partition));
        self.signal.raise();
    }

    /// The partitions to add, each returned once.
    pub fn take_unadded(&self) -> Vec<(Arc<str>, i32)> {
        self.signal.clear();
        std::mem::take(&mut self.state.lock().unadded)
    }

    /// Record that these partitions were added to the last transaction.
    pub fn take_in(&self, partitions: Vec<(String, i32)>) {
        let mut state = self.state.lock();
        let number = state.number;
        state.added.extend(partitions.into_iter().map(|(topic, index)| (number, topic, index)));
    }

    /// The partitions that were added since the last call, with their transactions; for the sender.
    pub fn take_added(&self) -> Vec<(u64, String, i32)> {
        std::mem::take(&mut self.state.lock().added)
    }

    /// Whether the sender, which has executed the stops up to a number, should not sleep.
    pub fn has_news(&self, seen: u64) -> bool {
        let state = self.state.lock();
        !state.added.is_empty() || state.stop.as_ref().is_some_and(|stop| stop.number > seen)
    }
}

/// The error for callers after a failure.
pub fn failed(error: &ClientError, fatal: bool) -> ClientError {
    match error {
        ClientError::TransactionFailed { .. } => error.clone(),
        _ => ClientError::TransactionFailed { fatal, code: code_of(error), detail: error.to_string() },
    }
}

/// The broker's error code, if the failure has one.
pub fn code_of(error: &ClientError) -> ErrorCode {
    match error {
        ClientError::Broker { code, .. } | ClientError::TransactionFailed { code, .. } => *code,
        _ => ErrorCode::NONE,
    }
}

/// Whether every later transaction of a producer fails after this error, as Kafka's `TransactionManager` decides for a
/// failed batch.
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
