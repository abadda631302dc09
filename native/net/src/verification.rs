//! What the coordinator of a transaction is asked before a Produce begins it in partitions (KIP-890), and what it answers.
//!
//! Owns the question and the answers, by the positions of partitions in their request. Must not know requests or logs.

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
    not_begun: NotBegun,
}

/// Partitions of a request in which no transaction could begin, with their errors. These errors are returned even where the
/// broker becomes the leader before the append: the coordinator was not asked about these partitions (Kafka's
/// `ReplicaManager.maybeSendPartitionsToTransactionCoordinator`).
#[derive(Debug, Default)]
pub struct NotBegun(Vec<(Place, ErrorCode)>);

impl NotBegun {
    /// Adds a partition. Places are added in the order of the request.
    pub fn add(&mut self, place: Place, error: ErrorCode) {
        self.0.push((place, error));
    }

    /// Checks that a transaction could begin in a partition.
    ///
    /// # Errors
    /// The error of the partition.
    pub fn at(&self, place: Place) -> Result<(), Refusal> {
        let found = self.0.binary_search_by_key(&place, |(place, _)| *place);
        found.map_or(Ok(()), |found| Err((self.0[found].1, None)))
    }
}

/// Positions of topic and partition in a request.
pub type Place = (usize, usize);

impl Verification {
    /// Of the partitions at these places, in the order of the request, each with its guard.
    pub fn new(guards: Vec<(Place, VerificationGuard)>, not_begun: NotBegun) -> Self {
        Self { guards, answers: Vec::new(), not_begun }
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
        self.not_begun.at(place)?;
        let found = self.guards.binary_search_by_key(&place, |(place, _)| *place).ok();
        Ok(found.and_then(|found| Some((self.guards[found].1, self.answers.get(found)?))))
    }
}
