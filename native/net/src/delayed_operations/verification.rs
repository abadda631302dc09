//! The query to a transaction coordinator before a Produce begins the transaction in partitions (KIP-890), and its results.
//!
//! Owns the query and the results, by the positions of partitions in their request. Must not know requests or logs.

use pybroker_record::LeaderEpoch;
use pybroker_storage::VerificationGuard;
use pybroker_wire::ErrorCode;

/// The query for a transaction coordinator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionQuery {
    pub transactional_id: String,
    pub producer_id: i64,
    pub producer_epoch: i16,
    /// The Produce's version.
    pub api_version: i16,
    /// Topic and index of the partitions in which the transaction would begin.
    pub partitions: Vec<(String, i32)>,
}

/// The error that prevents an append to a partition.
pub type Refusal = (ErrorCode, Option<String>);

/// The result for one partition: an error, or `None` if the partition is part of the transaction.
pub type Verified = Option<Refusal>;

/// The verification of a Produce: the guards of its batches, by the positions of topic and partition in the request, in the
/// order of the query.
#[derive(Debug)]
pub struct Verification {
    guards: Vec<(Place, VerificationGuard)>,
    /// One for each guard, after the coordinator has responded.
    responses: Vec<Verified>,
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
    /// Adds a partition in which no transaction can begin. Its error is returned even if this broker becomes the leader
    /// before the append: the coordinator does not verify the partition (Kafka's
    /// `ReplicaManager.maybeSendPartitionsToTransactionCoordinator`).
    pub fn reject(&mut self, place: Place, error: ErrorCode) {
        self.not_begun.push((place, error));
    }

    /// Adds a partition that this broker leads in an epoch.
    pub fn led_in(&mut self, place: Place, epoch: LeaderEpoch) {
        self.led_in.push((place, epoch));
    }

    /// The leader epoch of the check. An unverified append in a later epoch can be retried: a change of leader has removed
    /// the verification.
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
    /// The verification of these partitions, in the order of the request, each with its guard.
    pub fn new(guards: Vec<(Place, VerificationGuard)>, first: FirstCheck) -> Self {
        Self { guards, responses: Vec::new(), first }
    }

    /// The result of the check before the query to the transaction coordinator.
    pub fn first(&self) -> &FirstCheck {
        &self.first
    }

    /// Sets the results of the query; a partition without a result counts as not verified.
    pub fn decide(&mut self, responses: Vec<Verified>) {
        self.responses = responses;
        self.responses.resize(self.guards.len(), Some((ErrorCode::INVALID_TXN_STATE, None)));
    }

    /// The guard of a partition and its result; `None` if the query does not contain the partition.
    ///
    /// # Errors
    /// The error of a partition in which no transaction could begin.
    pub fn at(&self, place: Place) -> Result<Option<(VerificationGuard, &Verified)>, Refusal> {
        self.first.at(place)?;
        let found = self.guards.binary_search_by_key(&place, |(place, _)| *place).ok();
        Ok(found.and_then(|found| Some((self.guards[found].1, self.responses.get(found)?))))
    }
}
