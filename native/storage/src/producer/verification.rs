//! Verification of transactions before their first batch in a log (KIP-890; Kafka's `VerificationStateEntry`).
//!
//! A batch that begins a transaction in a log is appended only with the guard of a verification that is still valid.
//! Any write to the transaction ends the verification, above all an abort marker. So a coordinator's response that
//! arrives after that marker cannot begin a transaction that nothing would end. Verifications are in memory only:
//! after a restart or a leader change the producer is verified again.
//!
//! A coordinator on the same broker confirms a transaction in advance. Its first batch then needs no guard, until the
//! verification ends. Only the coordinator knows which transactional id owns a producer id: a batch with another
//! transactional id than the confirmed one is verified.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::AppendError;
use pybroker_record::BatchHeader;

/// Most verifications of one log. At this limit, each new verification ends those that are older than this.
const MOST: usize = 16 << 10;
const CROWDED_MS: i64 = 60_000;

/// Identifies one verification of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationGuard(NonZeroU64);

impl VerificationGuard {
    /// Returns the guard with this number; `None` for 0.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// Returns the guard's number, which is not 0.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0.get()
    }
}

/// A transactional id, as a hash that is only valid in this process. Clients cannot find two ids with the same hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionalIdHash(u64);

impl TransactionalIdHash {
    /// Returns the hash of a transactional id.
    #[must_use]
    pub fn of(transactional_id: &str) -> Self {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(KEYS.hash_one(transactional_id))
    }
}

/// The requirement for a batch that begins a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionCheck {
    /// The guard of a valid verification. With `None` the batch may only begin a transaction that its coordinator has
    /// confirmed.
    Guarded(Option<VerificationGuard>),
    /// No requirement (`transaction.partition.verification.enable=false`).
    Unchecked,
}

/// A batch that would begin a transaction in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginningTransaction {
    /// The producer that sends the batch.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The batch's first sequence number; -1 for a coordinator's batch, which has none.
    pub sequence: i32,
    /// Whether each transaction bumps the producer's epoch. Such a producer knows when its sequence restarts at 0.
    pub bumps_epoch: bool,
    /// The transactional id of the request; `None` to query the coordinator even after a confirmation.
    pub transactional_id: Option<TransactionalIdHash>,
}

/// A transaction that is open and includes the partition, as its coordinator reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfirmedTransaction {
    /// The owner of the producer id.
    pub transactional_id: TransactionalIdHash,
    /// The producer id assigned to it.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The leader epoch of the coordinator.
    pub coordinator_epoch: i32,
}

/// A verification that has begun and not ended.
#[derive(Clone, Copy, Debug)]
struct Verification {
    guard: VerificationGuard,
    since_ms: i64,
    epoch: i16,
    /// The lowest sequence number to be verified. If a higher one were appended first, the lower one would stay out
    /// of order.
    lowest_sequence: i32,
    bumps_epoch: bool,
    /// The transactional id for which the coordinator has confirmed that the transaction is open and includes this
    /// partition.
    confirmed: Option<TransactionalIdHash>,
}

impl Verification {
    /// Returns whether the written batch is the marker of the transaction before the verified one: that marker has
    /// the epoch of the verified transaction.
    fn is_after(&self, written: &BatchHeader, bumps_epoch: bool) -> bool {
        self.bumps_epoch && bumps_epoch && written.is_control() && written.producer_epoch == self.epoch
    }
}

/// The verifications of a log, by producer.
#[derive(Debug, Default)]
pub(crate) struct Verifications {
    by_producer: FxHashMap<i64, Verification>,
    /// Number of guards issued so far.
    given: u64,
}

impl Verifications {
    /// Begins the verification of this producer, or joins the existing one, and returns its guard. Returns `None` if
    /// the coordinator has confirmed the transaction.
    pub(crate) fn begin(&mut self, beginning: BeginningTransaction, now_ms: i64) -> Option<VerificationGuard> {
        let BeginningTransaction { producer_epoch, sequence, bumps_epoch, transactional_id, .. } = beginning;
        let verification = self.entry(beginning, now_ms);
        let newer = producer_epoch > verification.epoch;
        if newer || (producer_epoch == verification.epoch && sequence < verification.lowest_sequence) {
            (verification.epoch, verification.lowest_sequence) = (producer_epoch, sequence);
        }
        if newer {
            verification.confirmed = None;
        }
        let is_confirmed = verification.confirmed.is_some() && verification.confirmed == transactional_id;
        let confirmed = is_confirmed && producer_epoch == verification.epoch && !bumps_epoch;
        (!confirmed).then_some(verification.guard)
    }

    /// Records a coordinator's confirmation that a transaction of this producer is open and includes this partition.
    /// It is valid as long as a verification that begins at this moment. If a newer epoch is being verified, the
    /// confirmation is ignored.
    pub(crate) fn confirm(&mut self, confirmed: ConfirmedTransaction, now_ms: i64) {
        let ConfirmedTransaction { transactional_id, producer_id, producer_epoch, .. } = confirmed;
        let transactional_id = Some(transactional_id);
        let sequence = i32::MAX;
        let beginning =
            BeginningTransaction { producer_id, producer_epoch, sequence, bumps_epoch: false, transactional_id };
        let verification = self.entry(beginning, now_ms);
        if producer_epoch > verification.epoch {
            (verification.epoch, verification.lowest_sequence) = (producer_epoch, i32::MAX);
        }
        if producer_epoch == verification.epoch && !verification.bumps_epoch {
            verification.confirmed = transactional_id;
        }
    }

    /// Returns the verification of this producer, and begins one if there is none.
    fn entry(&mut self, beginning: BeginningTransaction, now_ms: i64) -> &mut Verification {
        let BeginningTransaction { producer_id, producer_epoch, sequence, bumps_epoch, .. } = beginning;
        self.make_space(now_ms);
        let given = &mut self.given;
        self.by_producer.entry(producer_id).or_insert_with(|| {
            *given += 1;
            Verification {
                guard: VerificationGuard(NonZeroU64::new(*given).unwrap_or(NonZeroU64::MAX)),
                since_ms: now_ms,
                epoch: producer_epoch,
                lowest_sequence: sequence,
                bumps_epoch,
                confirmed: None,
            }
        })
    }

    /// Bounds the number of verifications, since some producers never complete theirs. If one is ended too early, the
    /// producer's retry begins it again.
    fn make_space(&mut self, now_ms: i64) {
        if self.by_producer.len() >= MOST {
            self.expire(now_ms, CROWDED_MS);
            if self.by_producer.len() >= MOST {
                self.clear();
            }
        }
    }

    /// Returns whether the guard is that of this producer's verification. Without a guard, returns whether its
    /// coordinator has confirmed the transaction of this epoch.
    pub(crate) fn holds(&self, producer_id: i64, producer_epoch: i16, guard: Option<VerificationGuard>) -> bool {
        let Some(verification) = self.by_producer.get(&producer_id) else { return false };
        match guard {
            Some(guard) => verification.guard == guard,
            None => verification.confirmed.is_some() && verification.epoch == producer_epoch,
        }
    }

    /// Checks the sequence number of a producer's batch. `has_batches`: whether the log has batches of that producer.
    pub(crate) fn check_sequence(&self, header: &BatchHeader, has_batches: bool) -> Result<(), AppendError> {
        let Some(verification) = self.by_producer.get(&header.producer_id) else { return Ok(()) };
        let starts_anew = verification.bumps_epoch && !has_batches && header.base_sequence != 0;
        // Any client can request a verification with a higher epoch. That must not affect batches with another epoch.
        let is_requested = header.producer_epoch == verification.epoch;
        if starts_anew || (is_requested && header.base_sequence > verification.lowest_sequence) {
            let last = if starts_anew { -1 } else { verification.lowest_sequence - 1 };
            let (producer_id, found) = (header.producer_id, header.base_sequence);
            return Err(AppendError::OutOfOrderSequence { producer_id, last, found });
        }
        Ok(())
    }

    /// Ends the verification of this producer after a batch or marker of its transaction was written. Guards issued
    /// before are then invalid.
    ///
    /// There is one exception. If each transaction has its own epoch (`bumps_epoch` of both the marker and the
    /// verification), the marker of the previous transaction ends nothing. It has the epoch of the next transaction
    /// (KIP-890), and the coordinator confirms that one only after the marker is written.
    ///
    /// A batch with a lower epoch ends the verification too: a client may have made up the higher epoch.
    pub(crate) fn end(&mut self, written: &BatchHeader, bumps_epoch: bool) {
        let Some(verification) = self.by_producer.get(&written.producer_id) else { return };
        if !verification.is_after(written, bumps_epoch) {
            self.by_producer.remove(&written.producer_id);
        }
    }

    /// Ends all verifications.
    pub(crate) fn clear(&mut self) {
        self.by_producer.clear();
    }

    /// Ends the verifications that began at least `expiration_ms` ago.
    pub(crate) fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.by_producer.retain(|_, verification| now_ms.saturating_sub(verification.since_ms) < expiration_ms);
    }
}
