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

/// An answer about one partition: why nothing may be appended; nothing for one that is part of the transaction.
pub type Verified = Option<(ErrorCode, Option<String>)>;

/// The verification of a Produce: the guards that its batches may be appended with, by the positions of topic and partition
/// in the request, in the order that they were asked in.
#[derive(Debug)]
pub struct Verification {
    guards: Vec<(Place, VerificationGuard)>,
    /// As many as guards, once it is decided.
    answers: Vec<Verified>,
}

/// Positions of topic and partition in a request.
pub type Place = (usize, usize);

impl Verification {
    /// Of the partitions at these places, in the order of the request, each with its guard.
    pub fn new(guards: Vec<(Place, VerificationGuard)>) -> Self {
        Self { guards, answers: Vec::new() }
    }

    /// Takes the answers about the partitions that were asked for; those that lack one were not verified.
    pub fn decide(&mut self, answers: Vec<Verified>) {
        self.answers = answers;
        self.answers.resize(self.guards.len(), Some((ErrorCode::INVALID_TXN_STATE, None)));
    }

    /// The guard of a partition, and what was answered about it; `None` where nobody was asked.
    pub fn at(&self, place: Place) -> Option<(VerificationGuard, &Verified)> {
        let found = self.guards.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some((self.guards[found].1, self.answers.get(found)?))
    }
}
