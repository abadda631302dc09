//! Transactional Produces: the checks before their batches are appended (KIP-890).
//!
//! Finds the partitions of a Produce whose batches begin a transaction. The transaction coordinator has to verify them: the
//! request is sent to the control plane once, and is retried with a result for each partition. A batch of a transaction
//! already open in its partition needs no verification. Must not know which broker coordinates.

use super::rights::{Authorization, Refused, Who};
use super::{HotPath, Outcome, Unresolved, errors};
use crate::delayed_operations::verification::{FirstCheck, Place, Refusal, TransactionQuery, Verification};
use pybroker_record::{BatchHeader, HEADER_LEN, LeaderEpoch};
use pybroker_replica::{NotAppended, TopicTable};
use pybroker_storage::{BeginningTransaction, TransactionCheck, TransactionalIdHash};
use pybroker_wire::ErrorCode;
use pybroker_wire::produce::ProduceRequest;

/// First Produce version whose batches add their partitions to the transaction implicitly.
const ADDS_PARTITIONS_VERSION: i16 = 12;
/// Offset of the attributes in a batch, and the bit for transactional.
const ATTRIBUTES_AT: usize = 22;
const TRANSACTIONAL: u8 = 0x10;
/// Offset of the magic byte in a batch, and the first format with transactions.
const MAGIC_AT: usize = 16;
const MAGIC: u8 = 2;

/// The transaction check of a Produce.
#[derive(Debug)]
pub enum Transaction<'a> {
    /// No batch is transactional, or none begins a transaction.
    NoneBegins(FirstCheck),
    /// Verification is disabled.
    Unchecked(FirstCheck),
    /// The coordinator has verified some partitions.
    Verified(&'a Verification),
    /// All partitions are rejected.
    Refused(ErrorCode, &'static str),
}

impl Transaction<'_> {
    /// The check to append a batch with, or the error of its rejection.
    pub fn check(&self, place: Place) -> Result<TransactionCheck, Refusal> {
        match self {
            Self::NoneBegins(first) => first.at(place).map(|()| TransactionCheck::Guarded(None)),
            Self::Unchecked(first) => first.at(place).map(|()| TransactionCheck::Unchecked),
            Self::Refused(error, why) => Err((*error, Some((*why).to_owned()))),
            Self::Verified(verification) => match verification.at(place)? {
                None => Ok(TransactionCheck::Guarded(None)),
                Some((guard, None)) => Ok(TransactionCheck::Guarded(Some(guard))),
                Some((_, Some(refused))) => Err(refused.clone()),
            },
        }
    }
}

impl Transaction<'_> {
    /// The leader epoch at the first check of a partition; `None` if this broker was not its leader.
    pub fn epoch(&self, place: Place) -> Option<LeaderEpoch> {
        match self {
            Self::NoneBegins(first) | Self::Unchecked(first) => first.epoch(place),
            Self::Verified(verification) => verification.first().epoch(place),
            Self::Refused(..) => None,
        }
    }
}

/// Whether a Produce has a transactional batch.
pub fn has_transactional(request: &ProduceRequest, frame: &[u8]) -> bool {
    let mut records = request.topics.iter().flat_map(|topic| &topic.partitions).filter_map(|(_, at)| at.clone());
    records.any(|at| is_transactional(&frame[at]))
}

/// Whether the first batch is transactional. Records that are too short for a batch, or of another format, are not.
fn is_transactional(records: &[u8]) -> bool {
    records.len() >= HEADER_LEN && records[MAGIC_AT] == MAGIC && records[ATTRIBUTES_AT] & TRANSACTIONAL != 0
}

/// The authorization of the client on the transactional id of a Produce.
pub fn check(
    hot_path: &HotPath,
    who: Option<Who>,
    request: &ProduceRequest,
    decided: Option<&Authorization>,
) -> IdRight {
    let Some(id) = &request.transactional_id else { return IdRight::Refused };
    let (Some(who), Some(rights)) = (who, hot_path.rights.get()) else { return IdRight::Granted };
    let known = match decided {
        Some(decision) => {
            if decision.version != 0 {
                rights.note_id(who, id, decision.version, decision.transactional_id);
            }
            Some(decision.transactional_id)
        }
        None => rights.known_id(who, id, rights.version()),
    };
    match known {
        Some(true) => IdRight::Granted,
        Some(false) => IdRight::Refused,
        None => IdRight::Unknown,
    }
}

/// Whether a client has Write on a transactional id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdRight {
    Granted,
    Refused,
    Unknown,
}

/// A transactional Produce, and the frame with its batches.
#[derive(Clone, Copy, Debug)]
pub struct SentTransaction<'a> {
    pub request: &'a ProduceRequest,
    pub frame: &'a [u8],
}

/// The transaction check of a transactional Produce; the outcome if the coordinator has to be queried first.
pub fn begin<'a>(
    hot_path: &HotPath,
    sent: &SentTransaction<'_>,
    table: &TopicTable,
    refused: &Refused,
    verified: Option<&'a Verification>,
) -> Result<Transaction<'a>, Outcome> {
    let &SentTransaction { request, frame } = sent;
    let adds = request.version >= ADDS_PARTITIONS_VERSION;
    if let Some(verified) = verified {
        return Ok(Transaction::Verified(verified));
    }
    let Some(id) = &request.transactional_id else { return Ok(Transaction::NoneBegins(FirstCheck::default())) };
    if !adds && !hot_path.verifies_transactions() {
        return Ok(Transaction::Unchecked(FirstCheck::default()));
    }
    let transactional_id = Some(TransactionalIdHash::of(id));
    let mut producer = None;
    let (mut guards, mut partitions, mut first) = (Vec::new(), Vec::new(), FirstCheck::default());
    for (at, topic) in request.topics.iter().enumerate() {
        let found = table.find(&topic.topic);
        if refused.contains(&topic.topic) || found.is_some_and(|found| found.internal) {
            continue;
        }
        for (position, (index, records)) in topic.partitions.iter().enumerate() {
            let records = records.clone().map_or(&[][..], |at| &frame[at]);
            let header =
                BatchHeader::parse(records).ok().filter(|header| is_transactional(records) && header.has_producer_id());
            // The append rejects anything but one whole batch: it begins no transaction.
            let Some(header) = header.filter(|header| header.size() == records.len()) else { continue };
            let slot = match errors::slot_of(&topic.topic, found, *index) {
                Ok(slot) => slot,
                Err(unknown) => {
                    first.reject((at, position), unknown);
                    continue;
                }
            };
            if *producer.get_or_insert((header.producer_id, header.producer_epoch))
                != (header.producer_id, header.producer_epoch)
            {
                let why = "the batches of a transaction are of more than one producer";
                return Ok(Transaction::Refused(ErrorCode::INVALID_PRODUCER_ID_MAPPING, why));
            }
            let Some(partition) = &slot.partition else {
                first.reject((at, position), errors::not_here(slot).0);
                continue;
            };
            let beginning = BeginningTransaction {
                producer_id: header.producer_id,
                producer_epoch: header.producer_epoch,
                sequence: header.base_sequence,
                bumps_epoch: adds,
                transactional_id,
            };
            first.led_in((at, position), LeaderEpoch(partition.leader_epoch()));
            match partition.begin_verification(beginning, hot_path.wall_ms()) {
                Ok(Some(guard)) => {
                    guards.push(((at, position), guard));
                    partitions.push((partition.topic().to_string(), *index));
                }
                Err(NotAppended::NotLeader) => first.reject((at, position), ErrorCode::NOT_LEADER_OR_FOLLOWER),
                // An open transaction needs no guard. The append rejects the batch for the other errors.
                Ok(None) | Err(NotAppended::NotEnoughReplicas { .. } | NotAppended::Log(_)) => {}
            }
        }
    }
    let Some((producer_id, producer_epoch)) = producer.filter(|_| !guards.is_empty()) else {
        let verifies = hot_path.verifies_transactions();
        return Ok(if verifies { Transaction::NoneBegins(first) } else { Transaction::Unchecked(first) });
    };
    let requested = TransactionQuery {
        transactional_id: id.clone(),
        producer_id,
        producer_epoch,
        api_version: request.version,
        partitions,
    };
    let verification = Verification::new(guards, first);
    Err(Outcome::Unresolved(Box::new(Unresolved { verify: Some((requested, verification)), ..Unresolved::default() })))
}
