//! The inputs of a voter at its start, and its outputs at every step: values without behaviour, except for one check.

use thiserror::Error;

use super::entries::{Entry, Position, SnapshotMark, TermRun};

/// Why a call on the quorum failed.
#[derive(Debug, Error)]
pub enum QuorumError {
    /// The restored state is inconsistent.
    #[error("the quorum cannot be restored: {0}")]
    Restore(&'static str),
    /// Only a leader accepts proposals.
    #[error("this voter does not lead the quorum")]
    NotLeader,
    /// Another change of voters is pending.
    #[error("another change of the voters is not complete yet")]
    ChangePending,
    /// A message that is malformed, from outside the quorum, or impossible.
    #[error("message refused: {0}")]
    Message(String),
    /// The library returned an error for a step.
    #[error("raft: {0}")]
    Raft(String),
}

impl From<raft::Error> for QuorumError {
    fn from(error: raft::Error) -> Self {
        match error {
            raft::Error::ProposalDropped => Self::NotLeader,
            raft::Error::CodecError(_) | raft::Error::StepPeerNotFound | raft::Error::StepLocalMsg => {
                Self::Message(error.to_string())
            }
            other => Self::Raft(other.to_string()),
        }
    }
}

/// A replica of the log: its node id in the low 32 bits, and a number for the directory of its log in the 31 bits
/// above. The number is 0 if voters are known only by node id (kraft.version 0). A replica that has lost its disk
/// gets another key, so it can neither acknowledge for the old one nor vote twice.
pub type ReplicaKey = i64;

/// Returns the node id of a replica.
pub fn node_of(key: ReplicaKey) -> i32 {
    (key & 0x7FFF_FFFF) as i32
}

/// The voters, timeouts and limits of a quorum. There are no defaults.
#[derive(Debug, Clone)]
pub struct QuorumSettings {
    /// The key of this replica.
    pub key: ReplicaKey,
    /// The voters as of the last entry known to be committed. This replica need not be one of them.
    pub voters: Vec<ReplicaKey>,
    /// Whether voters can change. Then messages of unknown replicas are accepted, because they may have become voters
    /// before this replica learns of it.
    pub is_open: bool,
    /// Ticks without a message of a leader before an election begins, randomized up to twice as many.
    pub election_ticks: usize,
    /// Ticks between two heartbeats of a leader; fewer than `election_ticks`.
    pub heartbeat_ticks: usize,
    /// Most bytes of entries in one message, unless a single entry is larger.
    pub message_bytes: u64,
    /// Most messages with entries in flight to a voter.
    pub messages_in_flight: usize,
    /// Bytes of applied entries to keep in memory for voters that lag.
    pub kept_bytes: usize,
}

/// The state that must be durable and that the log does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardState {
    /// The latest term that this voter has seen.
    pub term: u64,
    /// Its vote in that term.
    pub vote: Option<ReplicaKey>,
}

/// The state that a restarting voter found on its disk.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The persisted hard state; `None` on the first start, or when its file is missing.
    pub hard_state: Option<HardState>,
    /// The position before the log's first entry: zeros, or the last entry of `snapshot`.
    pub before: Position,
    /// The snapshot for voters that need entries before the start of the log.
    pub snapshot: Option<SnapshotMark>,
    /// The terms of the entries in the log.
    pub runs: Vec<TermRun>,
    /// Index of the last entry; `before.index` for an empty log.
    pub last: u64,
    /// Entries up to this index are known to be committed, and their effect is restored. With one voter that is
    /// `last`, if the log is synced; with several voters the end of the snapshot.
    pub replayed: u64,
    /// The entries after `replayed`, with their payloads.
    pub tail: Vec<Entry>,
    /// The last entry that this voter had acknowledged, if the log has lost it; zeros if nothing was lost. The voter
    /// votes as if its log had that entry. It does not become candidate until its log is, in Raft's order, at least
    /// as far.
    pub awaited: Position,
}

impl Restored {
    /// Returns the last term of the log.
    pub(super) fn last_term(&self) -> u64 {
        self.runs.last().map_or(self.before.term, |run| run.term)
    }

    pub(super) fn check(&self, settings: &QuorumSettings) -> Result<(), QuorumError> {
        if settings.voters.iter().any(|voter| *voter < 0) || settings.key < 0 {
            return Err(QuorumError::Restore("ids of voters are not negative"));
        }
        let ascend = self.runs.windows(2).all(|pair| pair[0].first < pair[1].first && pair[0].term < pair[1].term);
        let first = self.runs.first();
        let follows = first.is_none_or(|run| run.first == self.before.index + 1 && run.term >= self.before.term);
        let ends = self.runs.last().is_none_or(|run| run.first <= self.last);
        if !ascend || !follows || !ends || self.runs.is_empty() != (self.last == self.before.index) {
            return Err(QuorumError::Restore("the terms of the log do not ascend from its first entry"));
        }
        if self.replayed > self.last || self.replayed < self.before.index {
            return Err(QuorumError::Restore("what was replayed ends outside of the log"));
        }
        let tail = self.replayed + 1..=self.last;
        if !tail.eq(self.tail.iter().map(|entry| entry.index)) {
            return Err(QuorumError::Restore("the tail is not what follows the replayed entries"));
        }
        Ok(())
    }
}

/// The tasks of the caller, in the order of the fields.
#[derive(Debug, Default)]
pub struct Ready {
    /// Increases with every ready. The caller passes it to [`super::Quorum::persisted`].
    pub number: u64,
    /// Messages to send at once, each to a replica.
    pub messages: Vec<(ReplicaKey, Vec<u8>)>,
    /// Replace the log with this snapshot, before the entries are persisted.
    pub snapshot: Option<SnapshotMark>,
    /// Persist before the entries.
    pub hard_state: Option<HardState>,
    /// Entries to persist. If the log has an entry with the first index already, truncate the log before it.
    pub entries: Vec<Entry>,
    /// Messages to send after everything above, and in earlier readies, is persisted.
    pub persisted_messages: Vec<(ReplicaKey, Vec<u8>)>,
    /// All entries committed since the last call, in order. Their effect must be applied before the next call.
    pub committed: Vec<Entry>,
}

/// The progress of a replica, as its leader knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoterProgress {
    /// The replica.
    pub key: ReplicaKey,
    /// Index of the last entry that it is known to have.
    pub matched: u64,
}
