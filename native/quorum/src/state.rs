//! What goes into a voter at its start, and what comes out of it at every step; values without behaviour but one check.

use thiserror::Error;

use super::entries::{Entry, Position, SnapshotMark, TermRun};

/// Why a call on the quorum failed.
#[derive(Debug, Error)]
pub enum QuorumError {
    /// What was read back does not fit together.
    #[error("the quorum cannot be restored: {0}")]
    Restore(&'static str),
    /// Only a leader takes proposals.
    #[error("this voter does not lead the quorum")]
    NotLeader,
    /// One change of voters at a time.
    #[error("another change of the voters is not complete yet")]
    ChangePending,
    /// A message that is none, that comes from outside the quorum, or that says what cannot be.
    #[error("message refused: {0}")]
    Message(String),
    /// The library refused a step.
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

/// A replica of the log: its node id in the low 32 bits, and in the 31 above them what stands for the directory of its
/// log. Those are 0 where voters are known by their node ids alone (kraft.version 0). A replica whose disk was lost is
/// another one afterwards, and can neither answer for the first nor vote twice.
pub type ReplicaKey = i64;

/// The node id of a replica.
pub fn node_of(key: ReplicaKey) -> i32 {
    (key & 0x7FFF_FFFF) as i32
}

/// Who votes, how long silence lasts, and how much is kept; complete, nothing is defaulted here.
#[derive(Debug, Clone)]
pub struct QuorumSettings {
    /// This replica.
    pub key: ReplicaKey,
    /// All voters as of the last entry that is known to be committed; this replica need not be one of them.
    pub voters: Vec<ReplicaKey>,
    /// Whether voters come and go: messages of replicas that this one does not know are taken, as they may have voted
    /// for longer than it knows.
    pub is_open: bool,
    /// Ticks without word from a leader before an election begins; at random up to twice as many.
    pub election_ticks: usize,
    /// Ticks between two heartbeats of a leader; fewer than `election_ticks`.
    pub heartbeat_ticks: usize,
    /// Bytes of entries in one message, unless a single one is larger.
    pub message_bytes: u64,
    /// Messages with entries that are under way to a voter which has not answered.
    pub messages_in_flight: usize,
    /// Bytes of applied entries that are kept in memory for voters that lag.
    pub kept_bytes: usize,
}

/// The part of the state that has to survive, and that the log does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardState {
    /// The newest term that this voter has seen.
    pub term: u64,
    /// Whom it voted for in that term.
    pub vote: Option<ReplicaKey>,
}

/// What a restarting voter found on its disk.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The persisted hard state; `None` on the first start, or when its file is gone.
    pub hard_state: Option<HardState>,
    /// What precedes the log's first entry: zeros, or the last entry of `snapshot`.
    pub before: Position,
    /// The snapshot for voters that need what the log does not have.
    pub snapshot: Option<SnapshotMark>,
    /// The terms of the entries in the log.
    pub runs: Vec<TermRun>,
    /// Index of the last entry; `before.index` for an empty log.
    pub last: u64,
    /// Entries up to this index are known to be committed and their effect is restored already. With one voter that
    /// is `last`, provided the log is synced; with several the end of the snapshot.
    pub replayed: u64,
    /// The entries after `replayed`, with their payloads.
    pub tail: Vec<Entry>,
    /// The last entry that this voter had acknowledged, where the log has lost it; zeros where nothing was lost. The
    /// voter votes as if its log was that far, and does not stand for election before it is, in Raft's order.
    pub awaited: Position,
}

impl Restored {
    /// The last term of the log.
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

/// What there is to do, in the order of the fields.
#[derive(Debug, Default)]
pub struct Ready {
    /// Rises with every ready; what [`super::Quorum::persisted`] is called with.
    pub number: u64,
    /// To be sent at once, each to a replica.
    pub messages: Vec<(ReplicaKey, Vec<u8>)>,
    /// The log is to hold nothing but this snapshot; before the entries.
    pub snapshot: Option<SnapshotMark>,
    /// To be persisted before the entries.
    pub hard_state: Option<HardState>,
    /// To be persisted. Where the first has an index that the log holds already, the log is cut before it first.
    pub entries: Vec<Entry>,
    /// To be sent when all of the above, and all of earlier readies, is persisted.
    pub persisted_messages: Vec<(ReplicaKey, Vec<u8>)>,
    /// Committed since the last call; complete, in order. Their effect is in force before the next call.
    pub committed: Vec<Entry>,
}

/// How far a replica has come, as its leader knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VoterProgress {
    /// Whose progress it is.
    pub key: ReplicaKey,
    /// Index of the last entry that it is known to have.
    pub matched: u64,
}
