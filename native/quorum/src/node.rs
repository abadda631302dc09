//! One voter of the quorum.
//!
//! Owns the life of a Raft node between its calls: step, tick, campaign, propose; then [`Quorum::ready`], whose content
//! the caller persists and sends; then [`Quorum::advance`], which returns what got committed since.
//!
//! Broker ids may be 0 and Raft ids may not: inside, a voter is its id plus one.

use protobuf::Message as _;
use raft::eraftpb::{HardState as RaftHardState, Message};
use raft::{Config, RawNode, StateRole};
use thiserror::Error;

use super::entries::{Entries, Entry, TermRun};

/// Why a call on the quorum failed.
#[derive(Debug, Error)]
pub enum QuorumError {
    /// What was read back does not fit together.
    #[error("the quorum cannot be restored: {0}")]
    Restore(&'static str),
    /// Only a leader takes proposals.
    #[error("this voter does not lead the quorum")]
    NotLeader,
    /// [`Quorum::ready`] was called twice without [`Quorum::advance`], or the other way round.
    #[error("ready and advance take turns")]
    OutOfTurn,
    /// A message that is none, or that comes from outside the quorum.
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

/// Who votes, and how long silence lasts; complete, nothing is defaulted here.
#[derive(Debug, Clone)]
pub struct QuorumSettings {
    /// This voter.
    pub node_id: i32,
    /// All voters, this one among them.
    pub voters: Vec<i32>,
    /// Ticks without word from a leader before an election begins.
    pub election_ticks: usize,
    /// Ticks between two heartbeats of a leader; fewer than `election_ticks`.
    pub heartbeat_ticks: usize,
}

/// The part of the state that has to survive, and that the log does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardState {
    /// The newest term that this voter has seen.
    pub term: u64,
    /// Whom it voted for in that term.
    pub vote: Option<i32>,
}

/// What a restarting voter found on its disk.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The persisted hard state; `None` on the first start, or when its file is gone.
    pub hard_state: Option<HardState>,
    /// The terms of the entries in the log.
    pub runs: Vec<TermRun>,
    /// Index of the last entry, 0 for an empty log.
    pub last: u64,
    /// Entries up to this index are known to be committed and their effect is restored already. With one voter that
    /// is `last`, provided the log is synced.
    pub replayed: u64,
    /// The entries after `replayed`, with their payloads.
    pub tail: Vec<Entry>,
}

/// What has to be done before [`Quorum::advance`], in the order of the fields.
#[derive(Debug, Default)]
pub struct Ready {
    /// To be sent at once; addressed by broker id.
    pub messages: Vec<(i32, Vec<u8>)>,
    /// To be persisted before the entries.
    pub hard_state: Option<HardState>,
    /// To be persisted. Where the first has an index that the log holds already, the log is cut before it first.
    pub entries: Vec<Entry>,
    /// To be sent when all of the above is persisted.
    pub persisted_messages: Vec<(i32, Vec<u8>)>,
    /// Committed since the last call; complete, in order.
    pub committed: Vec<Entry>,
}

/// What became true by persisting a [`Ready`].
#[derive(Debug, Default)]
pub struct Advanced {
    /// Committed since [`Ready::committed`].
    pub committed: Vec<Entry>,
    /// To be sent.
    pub messages: Vec<(i32, Vec<u8>)>,
}

/// A voter. Every method is quick and does no I/O.
pub struct Quorum {
    raft: RawNode<Entries>,
    /// `Some` between `ready` and `advance`.
    in_work: Option<(raft::Ready, Vec<raft::eraftpb::Entry>)>,
}

impl Quorum {
    /// A follower with what the disk held; nobody leads yet. With one voter, [`Quorum::campaign`] makes it leader.
    pub fn new(settings: &QuorumSettings, restored: Restored) -> Result<Self, QuorumError> {
        check(settings, &restored)?;
        let mut hard_state = RaftHardState::default();
        let last_term = restored.runs.last().map_or(0, |run| run.term);
        let saved = restored.hard_state.unwrap_or(HardState { term: 0, vote: None });
        if saved.term >= last_term {
            hard_state.term = saved.term;
            hard_state.vote = saved.vote.map_or(0, raft_id);
        } else {
            // The hard state is older than the log: its file was lost, or belongs to an earlier copy. Which vote was
            // given in the log's last term is unknown; a vote for itself keeps this voter from giving a second one.
            hard_state.term = last_term;
            hard_state.vote = raft_id(settings.node_id);
        }
        hard_state.commit = restored.replayed;
        let mut voters: Vec<u64> = settings.voters.iter().copied().map(raft_id).collect();
        voters.sort_unstable();
        let mut entries = Entries::new(voters, hard_state, restored.runs, restored.last);
        entries.restore_payloads(restored.tail);
        let config = Config {
            id: raft_id(settings.node_id),
            election_tick: settings.election_ticks,
            heartbeat_tick: settings.heartbeat_ticks,
            applied: restored.replayed,
            max_size_per_msg: 1 << 20,
            check_quorum: true,
            pre_vote: true,
            ..Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        Ok(Self { raft: RawNode::new(&config, entries, &logger)?, in_work: None })
    }

    /// Counts one tick of the clock; true when there is something ready.
    pub fn tick(&mut self) -> bool {
        self.raft.tick()
    }

    /// Stands for election now. With one voter the election is won when the call returns.
    pub fn campaign(&mut self) -> Result<(), QuorumError> {
        Ok(self.raft.campaign()?)
    }

    /// Takes a message from another voter.
    pub fn step(&mut self, message: &[u8]) -> Result<(), QuorumError> {
        let message = Message::parse_from_bytes(message).map_err(|error| QuorumError::Message(error.to_string()))?;
        Ok(self.raft.step(message)?)
    }

    /// Puts a payload into the log, to be found in [`Ready::entries`] and, once committed, in `committed`.
    ///
    /// The payload is not empty: an empty one means the beginning of a term.
    pub fn propose(&mut self, payload: Vec<u8>) -> Result<(), QuorumError> {
        if !self.is_leader() {
            return Err(QuorumError::NotLeader);
        }
        Ok(self.raft.propose(Vec::new(), payload)?)
    }

    /// Whether this voter leads.
    pub fn is_leader(&self) -> bool {
        self.raft.raft.state == StateRole::Leader
    }

    /// The leader, as far as this voter knows.
    pub fn leader(&self) -> Option<i32> {
        voter(self.raft.raft.leader_id)
    }

    /// The term.
    pub fn term(&self) -> u64 {
        self.raft.raft.term
    }

    /// Index of the last entry in the log, persisted or not.
    pub fn last_index(&self) -> u64 {
        self.raft.raft.raft_log.last_index()
    }

    /// What there is to do; `None` when there is nothing.
    pub fn ready(&mut self) -> Result<Option<Ready>, QuorumError> {
        if self.in_work.is_some() {
            return Err(QuorumError::OutOfTurn);
        }
        if !self.raft.has_ready() {
            return Ok(None);
        }
        let mut ready = self.raft.ready();
        let raw = ready.take_entries();
        let done = Ready {
            messages: encode(ready.take_messages())?,
            hard_state: ready.hs().map(|state| HardState { term: state.term, vote: voter(state.vote) }),
            entries: raw.iter().cloned().map(Entry::from_raft).collect(),
            persisted_messages: encode(ready.take_persisted_messages())?,
            committed: ready.take_committed_entries().into_iter().map(Entry::from_raft).collect(),
        };
        self.in_work = Some((ready, raw));
        Ok(Some(done))
    }

    /// Notes that everything in the last [`Ready`] is persisted and sent.
    pub fn advance(&mut self) -> Result<Advanced, QuorumError> {
        let (ready, entries) = self.in_work.take().ok_or(QuorumError::OutOfTurn)?;
        self.raft.mut_store().append(&entries);
        let mut light = self.raft.advance(ready);
        let committed = light.take_committed_entries().into_iter().map(Entry::from_raft).collect();
        let messages = encode(light.take_messages())?;
        self.raft.advance_apply();
        self.forget_payloads();
        Ok(Advanced { committed, messages })
    }

    /// Payloads stay until they are committed here and every voter is known to have them.
    fn forget_payloads(&mut self) {
        let raft = &self.raft.raft;
        let mut needless = raft.raft_log.applied;
        if self.is_leader() {
            for (_, progress) in raft.prs().iter() {
                needless = needless.min(progress.matched);
            }
        }
        self.raft.mut_store().forget_payloads(needless);
    }
}

fn check(settings: &QuorumSettings, restored: &Restored) -> Result<(), QuorumError> {
    if !settings.voters.contains(&settings.node_id) {
        return Err(QuorumError::Restore("this node is not among the voters"));
    }
    if settings.voters.iter().any(|voter| *voter < 0) {
        return Err(QuorumError::Restore("voter ids are not negative"));
    }
    let ascending = restored.runs.windows(2).all(|pair| pair[0].first < pair[1].first && pair[0].term < pair[1].term);
    let first = restored.runs.first().map_or(0, |run| run.first);
    let last = restored.runs.last().map_or(0, |run| run.first);
    if !ascending || first != u64::from(restored.last > 0) || last > restored.last {
        return Err(QuorumError::Restore("the terms of the log do not ascend from index 1"));
    }
    if restored.replayed > restored.last {
        return Err(QuorumError::Restore("more was replayed than the log holds"));
    }
    let tail = restored.replayed + 1..=restored.last;
    if !tail.eq(restored.tail.iter().map(|entry| entry.index)) {
        return Err(QuorumError::Restore("the tail is not what follows the replayed entries"));
    }
    Ok(())
}

fn encode(messages: Vec<Message>) -> Result<Vec<(i32, Vec<u8>)>, QuorumError> {
    messages
        .into_iter()
        .filter_map(|message| voter(message.to).map(|to| (to, message)))
        .map(|(to, message)| match message.write_to_bytes() {
            Ok(bytes) => Ok((to, bytes)),
            Err(error) => Err(QuorumError::Message(error.to_string())),
        })
        .collect()
}

fn raft_id(voter: i32) -> u64 {
    u64::from(voter.unsigned_abs()) + 1
}

fn voter(raft_id: u64) -> Option<i32> {
    raft_id.checked_sub(1).and_then(|id| i32::try_from(id).ok())
}
