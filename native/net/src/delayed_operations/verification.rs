//! What the coordinator of a transaction is asked before a Produce begins it in partitions (KIP-890), and what it answers.
//!
//! Owns the question and the answers, by the positions of partitions in their request. Must not know requests or logs.

use pybroker_record::LeaderEpoch;
use pybroker_storage::VerificationGuard;
use pybroker_wire::ErrorCode;

/// What the coordinator of a transaction is to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionAsked {
    pub transactional_id: String,
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// The Produce's version.
    pub api_version: i16,
    /// Topic and index of the partitions that the transaction would begin in.
    pub partitions: Vec<(String, i32)>,
}

/// Why nothing may be appended to a partition.
pub type Refusal = (ErrorCode, Option<String>);

/// An answer about one partition: why nothing may be appended; nothing for one that is part of the transaction.
pub type Verified = Option<Refusal>;

/// The verification of a Produce: the guards that its batches may be appended with, by the positions of topic and partition
/// in the request, in the order that they were asked in.
#[derive(Debug)]
pub struct Verification {
    guards: Vec<(Place, VerificationGuard)>,
    /// As many as guards, once it is decided.
    answers: Vec<Verified>,
    first: FirstCheck,
}

/// The first check of the partitions of a transactional Produce, before the coordinator verifies some of them. Places are added in
/// the order of the request.
#[derive(Debug, Default)]
pub struct FirstCheck {
    not_begun: Vec<(Place, ErrorCode)>,
    led_in: Vec<(Place, LeaderEpoch)>,
}

impl FirstCheck {
    /// Adds a partition in which no transaction can begin. Its error is returned even where this broker becomes the leader before
    /// the append: the coordinator does not verify the partition (Kafka's
    /// `ReplicaManager.maybeSendPartitionsToTransactionCoordinator`).
    pub fn reject(&mut self, place: Place, error: ErrorCode) {
        self.not_begun.push((place, error));
    }

    /// Adds a partition that this broker leads in an epoch.
    pub fn led_in(&mut self, place: Place, epoch: LeaderEpoch) {
        self.led_in.push((place, epoch));
    }

    /// The leader epoch of the check. An append that is not verified in a later epoch can be retried: a change of leader in between
    /// has removed what was verified.
    pub fn epoch(&self, place: Place) -> Option<LeaderEpoch> {
        let found = self.led_in.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(self.led_in[found].1)
    }

    /// Checks that a transaction could begin in a partition.
    ///
    /// # Errors
    /// The error of the partition.
    pub fn at(&self, place: Place) -> Result<(), Refusal> {
        let found = self.not_begun.binary_search_by_key(&place, |(place, _)| *place);
        found.map_or(Ok(()), |found| Err((self.not_begun[found].1, None)))
    }
}

/// Positions of topic and partition in a request.
pub type Place = (usize, usize);

impl Verification {
    /// Of the partitions at these places, in the order of the request, each with its guard.
    pub fn new(guards: Vec<(Place, VerificationGuard)>, first: FirstCheck) -> Self {
        Self { guards, answers: Vec::new(), first }
    }

    /// The first check, before the coordinator was asked.
    pub fn first(&self) -> &FirstCheck {
        &self.first
    }

    /// Takes the answers about the partitions that were asked for; those that lack one were not verified.
    pub fn decide(&mut self, answers: Vec<Verified>) {
        self.answers = answers;
        self.answers.resize(self.guards.len(), Some((ErrorCode::INVALID_TXN_STATE, None)));
    }

    /// The guard of a partition, and what was answered about it; `None` where nobody was asked.
    ///
    /// # Errors
    /// The error of a partition in which no transaction could begin.
    pub fn at(&self, place: Place) -> Result<Option<(VerificationGuard, &Verified)>, Refusal> {
        self.first.at(place)?;
        let found = self.guards.binary_search_by_key(&place, |(place, _)| *place).ok();
        Ok(found.and_then(|found| Some((self.guards[found].1, self.answers.get(found)?))))
    }
}
