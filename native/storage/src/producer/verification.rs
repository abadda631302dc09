//! Transactions that a log is about to take part in: which producers asked, and whether their coordinator's word still
//! holds when their batch comes (KIP-890; Kafka's `VerificationStateEntry`).
//!
//! A batch that begins a transaction in a log is appended only with the guard of a verification that nothing has ended
//! meanwhile. Whatever is written to the transaction ends it, the marker of an abort above all: so a coordinator's answer
//! that comes after that marker begins no transaction that nobody would end. In memory alone: after a restart, and under
//! another leader, the producer is verified again.
//!
//! A coordinator that lives on the same broker confirms a transaction before anybody asks. Its first batch needs no guard
//! then, until whatever ends a verification ends this one as well. The coordinator alone knows whose producer ids are: a
//! batch that is sent under another transactional id than the confirmed one is asked about.

use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU64;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::AppendError;
use pybroker_record::BatchHeader;

/// Verifications of one log, at most: each that is begun while there are more ends those that began this long ago.
const MOST: usize = 16 << 10;
const CROWDED_MS: i64 = 60_000;

/// Names one verification of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerificationGuard(NonZeroU64);

impl VerificationGuard {
    /// The guard of this number; `None` for 0, which names none.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// Its number, which is not 0.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0.get()
    }
}

/// Stands for a transactional id in the memory of this process. Nobody outside can find two ids with one hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionalIdHash(u64);

impl TransactionalIdHash {
    /// That of an id.
    #[must_use]
    pub fn of(transactional_id: &str) -> Self {
        static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(KEYS.hash_one(transactional_id))
    }
}

/// What a batch that begins a transaction needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionCheck {
    /// A verification that still holds; with `None` it may begin no transaction that its coordinator has not confirmed.
    Guarded(Option<VerificationGuard>),
    /// Nothing: nobody verifies (`transaction.partition.verification.enable=false`).
    Unchecked,
}

/// A batch that is to begin a transaction in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginningTransaction {
    /// Whose.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The batch's first sequence number; -1 for a coordinator's batch, which has none.
    pub sequence: i32,
    /// The producer's epoch is bumped with each transaction: it knows when its sequence begins again at 0.
    pub bumps_epoch: bool,
    /// That of the request; `None` where the coordinator is asked whatever it has confirmed.
    pub transactional_id: Option<TransactionalIdHash>,
}

/// A transaction that its coordinator says is open, and has the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfirmedTransaction {
    /// Whose.
    pub transactional_id: TransactionalIdHash,
    /// Given out for that id.
    pub producer_id: i64,
    /// The producer's epoch.
    pub producer_epoch: i16,
    /// The leader epoch that the coordinator speaks in.
    pub coordinator_epoch: i32,
}

/// A verification that has begun, and that nothing has ended.
#[derive(Clone, Copy, Debug)]
struct Verification {
    guard: VerificationGuard,
    since_ms: i64,
    epoch: i16,
    /// The lowest sequence number that asked: a higher one would make the lower one be out of order for good.
    lowest_sequence: i32,
    bumps_epoch: bool,
    /// The id whose coordinator has said already that the transaction is open and has this partition.
    confirmed: Option<TransactionalIdHash>,
}

impl Verification {
    /// Whether what was written is the marker of the transaction before the one that is verified: it has that one's epoch.
    fn is_after(&self, written: &BatchHeader, bumps_epoch: bool) -> bool {
        self.bumps_epoch && bumps_epoch && written.is_control() && written.producer_epoch == self.epoch
    }
}

/// The verifications of a log, by producer.
#[derive(Debug, Default)]
pub(crate) struct Verifications {
    by_producer: FxHashMap<i64, Verification>,
    /// Guards given out so far.
    given: u64,
}

impl Verifications {
    /// The guard of the verification of this producer, which begins now unless it has begun; `None` where its coordinator
    /// has confirmed the transaction, so that nobody is asked.
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

    /// Takes a coordinator's word that a transaction of this producer is open and has this partition. It holds as long as
    /// a verification that begins now would; a newer epoch that has asked meanwhile is left to its own answer.
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

    /// The verification of this producer, which begins now unless it has begun.
    fn entry(&mut self, beginning: BeginningTransaction, now_ms: i64) -> &mut Verification {
        let BeginningTransaction { producer_id, producer_epoch, sequence, bumps_epoch, .. } = beginning;
        self.make_room(now_ms);
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

    /// Keeps what producers that are never verified leave behind within bounds. One that is ended too early is begun anew by
    /// its producer's next try.
    fn make_room(&mut self, now_ms: i64) {
        if self.by_producer.len() >= MOST {
            self.expire(now_ms, CROWDED_MS);
            if self.by_producer.len() >= MOST {
                self.clear();
            }
        }
    }

    /// Whether a guard is the one of this producer's verification; without a guard, whether its coordinator has confirmed
    /// the transaction of this epoch.
    pub(crate) fn holds(&self, producer_id: i64, producer_epoch: i16, guard: Option<VerificationGuard>) -> bool {
        let Some(verification) = self.by_producer.get(&producer_id) else { return false };
        match guard {
            Some(guard) => verification.guard == guard,
            None => verification.confirmed.is_some() && verification.epoch == producer_epoch,
        }
    }

    /// Checks the sequence number of a producer's batch; `has_batches`: the log remembers batches of that producer.
    pub(crate) fn check_sequence(&self, header: &BatchHeader, has_batches: bool) -> Result<(), AppendError> {
        let Some(verification) = self.by_producer.get(&header.producer_id) else { return Ok(()) };
        let starts_anew = verification.bumps_epoch && !has_batches && header.base_sequence != 0;
        // Anybody may have asked with a higher epoch: that says nothing of batches with another.
        let is_asked = header.producer_epoch == verification.epoch;
        if starts_anew || (is_asked && header.base_sequence > verification.lowest_sequence) {
            let last = if starts_anew { -1 } else { verification.lowest_sequence - 1 };
            let (producer_id, found) = (header.producer_id, header.base_sequence);
            return Err(AppendError::OutOfOrderSequence { producer_id, last, found });
        }
        Ok(())
    }

    /// A batch or a marker of this producer's transaction was written: no guard given out before counts any more.
    ///
    /// Where each transaction has an epoch of its own (`bumps_epoch` of the marker and of the verification), the marker of the
    /// one before ends nothing: it has the epoch of the next (KIP-890), about which the coordinator answers no sooner than
    /// that marker is written. Whatever else is written does, of a lower epoch too: who asked with a higher one may have
    /// made that up, and is refused without anything being written.
    pub(crate) fn end(&mut self, written: &BatchHeader, bumps_epoch: bool) {
        let Some(verification) = self.by_producer.get(&written.producer_id) else { return };
        if !verification.is_after(written, bumps_epoch) {
            self.by_producer.remove(&written.producer_id);
        }
    }

    /// Ends all of them.
    pub(crate) fn clear(&mut self) {
        self.by_producer.clear();
    }

    /// Forgets those that began `expiration_ms` ago or earlier.
    pub(crate) fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.by_producer.retain(|_, verification| now_ms.saturating_sub(verification.since_ms) < expiration_ms);
    }
}
