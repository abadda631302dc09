//! One voter of the quorum.
//!
//! Owns the state of a Raft node between its calls: step, tick, campaign, propose; then [`Quorum::ready`], whose
//! content the caller persists and sends, and [`Quorum::persisted`] after that. Several readies may be in progress,
//! in order: no call waits for a disk.
//!
//! Replicas have keys outside of this module, and ids inside it (`names`).

#[path = "lost_log.rs"]
mod lost_log;
#[path = "terms.rs"]
mod terms;

use raft::eraftpb::{ConfChange, ConfChangeType, HardState as RaftHardState, Message, MessageType};
use raft::{Config, INVALID_ID, RawNode, SnapshotStatus, StateRole};

use super::batch;
use super::entries::{Entries, Entry, Position, SnapshotMark, conf_state};
use super::message;
use super::names::Names;
use super::state::{HardState, QuorumError, QuorumSettings, Ready, ReplicaKey, Restored, VoterProgress, node_of};

/// A voter. No method does I/O.
pub struct Quorum {
    raft: RawNode<Entries>,
    kept_bytes: usize,
    is_open: bool,
    /// The last hard state in a ready.
    hard_state: HardState,
    /// Index of the last committed entry in a ready. It counts as applied at the next call of `ready`.
    handed_out: u64,
    /// The latest term in which this voter became leader.
    began: u64,
    /// A term, and the voters that voted for this voter in it.
    granting: (u64, Vec<ReplicaKey>),
    /// A snapshot offered by the leader whose file is not fetched yet.
    offered: Option<Message>,
    /// The last entry that this voter had acknowledged, if the log has lost it; zeros if nothing is lost.
    awaited: Position,
    /// Voters that lost acknowledged entries, for the next report: the last entries that each had and has.
    lost: Vec<(ReplicaKey, u64, u64)>,
    names: Names,
}

impl Quorum {
    /// Creates a follower from the restored state, without a known leader. With one voter, [`Quorum::campaign`] makes
    /// it leader.
    pub fn new(settings: &QuorumSettings, restored: Restored) -> Result<Self, QuorumError> {
        restored.check(settings)?;
        let names = Names::default();
        let last_term = restored.last_term();
        let saved = restored.hard_state.unwrap_or(HardState { term: 0, vote: None });
        let hard_state = if saved.term >= last_term {
            saved
        } else {
            // The hard state is older than the log: its file was lost, or belongs to an earlier copy. The vote in the
            // log's last term is unknown. A vote for itself keeps this voter from voting a second time.
            HardState { term: last_term, vote: Some(settings.key) }
        };
        let raft_hard_state = RaftHardState {
            term: hard_state.term,
            vote: hard_state.vote.map_or(INVALID_ID, |key| names.id(key)),
            commit: restored.replayed,
            ..RaftHardState::default()
        };
        let mut entries = Entries::new(
            names.id(settings.key),
            names.ids(&settings.voters),
            raft_hard_state,
            restored.before,
            restored.runs,
            restored.last,
            restored.snapshot,
        );
        entries.restore_payloads(restored.tail);
        let config = Config {
            id: names.id(settings.key),
            election_tick: settings.election_ticks,
            heartbeat_tick: settings.heartbeat_ticks,
            applied: restored.replayed,
            max_size_per_msg: settings.message_bytes,
            max_inflight_msgs: settings.messages_in_flight,
            check_quorum: true,
            pre_vote: true,
            ..Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let mut quorum = Self {
            raft: RawNode::new(&config, entries, &logger)?,
            kept_bytes: settings.kept_bytes,
            is_open: settings.is_open,
            hard_state,
            handed_out: restored.replayed,
            began: 0,
            granting: (0, Vec::new()),
            offered: None,
            awaited: restored.awaited,
            lost: Vec::new(),
            names,
        };
        quorum.maybe_recover();
        Ok(quorum)
    }

    /// Advances the clock by one tick. Returns true if `ready` may have tasks.
    pub fn tick(&mut self, now_ms: i64) -> bool {
        if self.waits_for_disk() {
            return false;
        }
        self.pass_election();
        let ready = self.raft.tick();
        self.begin_term(now_ms);
        ready
    }

    /// Becomes candidate, unless this voter is leader, is no voter any more, or has lost records. The only voter is
    /// leader when the call returns.
    pub fn campaign(&mut self, now_ms: i64) -> Result<(), QuorumError> {
        if self.raft.raft.promotable() && !self.waits_for_disk() && self.awaited().is_none() {
            self.raft.campaign()?;
            self.begin_term(now_ms);
        }
        Ok(())
    }

    /// Processes a message from the voter `from`.
    ///
    /// If the message offers a snapshot, returns it. The caller fetches its file from the leader and calls
    /// [`Quorum::install`]. Until then the voter keeps its log.
    pub fn step(&mut self, from: ReplicaKey, bytes: &[u8], now_ms: i64) -> Result<Option<SnapshotMark>, QuorumError> {
        let mut message = message::decode(bytes).map_err(QuorumError::Message)?;
        self.names.read_keys(&mut message, from, self.key(), self.votes());
        self.check(from, &message).map_err(QuorumError::Message)?;
        if message.get_msg_type() == MessageType::MsgSnapshot {
            return self.take_offer(message);
        }
        self.note_vote(from, &message);
        if self.abstains(&message) || self.resets_progress(&message) {
            return Ok(None);
        }
        let lost = self.clamp_commit(&mut message);
        match self.raft.step(message) {
            // A response of a replica that was removed meanwhile is ignored.
            Err(raft::Error::StepPeerNotFound) if self.is_open => return Ok(None),
            stepped => stepped?,
        }
        if let Some(response) = lost {
            self.reject_commit(response);
        }
        self.begin_term(now_ms);
        Ok(None)
    }

    /// Installs the snapshot that [`Quorum::step`] returned, after its file is on the disk. The next ready contains
    /// the snapshot, unless a newer leader or log has made it obsolete.
    pub fn install(&mut self, snapshot: &SnapshotMark, voters: &[ReplicaKey]) -> Result<(), QuorumError> {
        let Some(mut message) = self.offered.take() else { return Ok(()) };
        if mark_of(&message) == *snapshot && message.term == self.raft.raft.term {
            let conf = conf_state(self.raft.raft.id, self.names.ids(voters));
            message.mut_snapshot().mut_metadata().set_conf_state(conf);
            self.raft.step(message)?;
        }
        Ok(())
    }

    /// Appends a batch to the log and returns its index. The batch is in [`Ready::entries`] and, once committed, in
    /// `committed`.
    pub fn propose(&mut self, payload: Vec<u8>) -> Result<u64, QuorumError> {
        if !self.is_leader() {
            return Err(QuorumError::NotLeader);
        }
        if batch::changes_voters(&payload) {
            if self.raft.raft.has_pending_conf() {
                return Err(QuorumError::ChangePending);
            }
            self.raft.propose_conf_change(payload, ConfChange::default())?;
        } else {
            self.raft.propose(Vec::new(), payload)?;
        }
        Ok(self.last_index())
    }

    /// Applies a committed change of voters: one more, one less, or the same ones; or the first ones if none were
    /// known.
    ///
    /// A leader that is no voter any more stays leader until [`Quorum::resign`] or the election of another one.
    pub fn change_voters(&mut self, voters: &[ReplicaKey]) -> Result<(), QuorumError> {
        let own = self.raft.raft.id;
        let before: Vec<u64> = self.raft.raft.prs().conf().voters().ids().iter().collect();
        let after = self.names.ids(voters);
        let added = after.iter().filter(|id| !before.contains(id)).map(|id| (ConfChangeType::AddNode, *id));
        let removed = before.iter().filter(|id| !after.contains(id)).map(|id| {
            // The library needs its own progress in every state, so this replica stays as a learner.
            let kind = if *id == own { ConfChangeType::AddLearnerNode } else { ConfChangeType::RemoveNode };
            (kind, *id)
        });
        for (kind, id) in added.chain(removed) {
            self.change(kind, id)?;
        }
        if !after.contains(&own) && !after.is_empty() {
            self.change(ConfChangeType::AddLearnerNode, own)?;
        }
        self.raft.mut_store().set_voters(after);
        Ok(())
    }

    /// Changes the keys of voters that were known only by node id, each from its old to its new key, after a
    /// committed change has assigned their directories. From then on this voter accepts messages from any replica.
    pub fn rename(&mut self, keys: &[(ReplicaKey, ReplicaKey)]) {
        for (from, to) in keys {
            self.names.rename(*from, *to);
            self.granting.1.iter_mut().filter(|key| *key == from).for_each(|key| *key = *to);
        }
        self.is_open |= !keys.is_empty();
    }

    /// Starts to replicate the log to a replica that does not vote, if this voter is the leader. A voter is not
    /// changed.
    pub fn add_learner(&mut self, key: ReplicaKey) -> Result<(), QuorumError> {
        let (raft, id) = (&self.raft.raft, self.names.id(key));
        if raft.state == StateRole::Leader && !raft.prs().conf().voters().contains(id) {
            self.change(ConfChangeType::AddLearnerNode, id)?;
        }
        Ok(())
    }

    /// Stops replicating the log to a replica that does not vote.
    pub fn remove_learner(&mut self, key: ReplicaKey) -> Result<(), QuorumError> {
        let (raft, id) = (&self.raft.raft, self.names.id(key));
        if raft.prs().conf().learners().contains(&id) && id != raft.id {
            self.change(ConfChangeType::RemoveNode, id)?;
        }
        Ok(())
    }

    /// Resigns as leader. The other voters notice it by the election timeout.
    pub fn resign(&mut self) {
        if self.is_leader() {
            let term = self.raft.raft.term;
            self.raft.raft.become_follower(term, INVALID_ID);
        }
    }

    /// Returns whether this replica is one of the voters.
    pub fn votes(&self) -> bool {
        self.raft.raft.promotable()
    }

    /// Forgets the leader because its process has ended. A candidate of this term can then get this vote at once.
    pub fn forget_leader(&mut self) {
        let term = self.raft.raft.term;
        if !self.is_leader() {
            self.raft.raft.become_follower(term, INVALID_ID);
        }
    }

    /// Transfers the leadership to another voter, which becomes candidate as soon as it has the whole log.
    pub fn transfer_leader(&mut self, to: ReplicaKey) {
        self.raft.transfer_leader(self.names.id(to));
    }

    /// Reports that messages to a voter may be lost.
    pub fn unreachable(&mut self, voter: ReplicaKey) {
        self.raft.report_unreachable(self.names.id(voter));
    }

    /// Returns the tasks of the caller; `None` when there are none.
    pub fn ready(&mut self) -> Option<Ready> {
        // A snapshot counts as applied when it is persisted, and committed entries are applied only after they are
        // persisted.
        let applied = self.handed_out.min(self.raft.raft.raft_log.persisted);
        if applied > self.raft.raft.raft_log.applied {
            self.raft.advance_apply_to(applied);
            let kept_bytes = self.kept_bytes;
            self.raft.mut_store().forget_payloads(applied, kept_bytes);
        }
        if !self.raft.has_ready() {
            return None;
        }
        let mut ready = self.raft.ready();
        let raw = ready.take_entries();
        let mut messages = ready.take_messages();
        messages.retain(|message| self.is_sent(message));
        let snapshot = (ready.snapshot().get_metadata().index > 0).then(|| snapshot_mark(ready.snapshot()));
        let committed: Vec<Entry> = ready.take_committed_entries().into_iter().map(Entry::from_raft).collect();
        let done = Ready {
            number: ready.number(),
            messages: self.encode(messages),
            hard_state: ready.hs().and_then(|state| self.changed(state.term, state.vote)),
            entries: raw.iter().cloned().map(Entry::from_raft).collect(),
            persisted_messages: self.encode(ready.take_persisted_messages()),
            snapshot: snapshot.clone(),
            committed,
        };
        if let Some(mark) = snapshot {
            self.handed_out = mark.last.index;
            self.raft.mut_store().restart_at(mark);
        }
        self.raft.mut_store().append(&raw);
        self.raft.advance_append_async(ready);
        self.handed_out = done.committed.last().map_or(self.handed_out, |entry| entry.index);
        Some(done)
    }

    /// Reports that everything in the readies up to `number` is persisted.
    pub fn persisted(&mut self, number: u64) {
        self.raft.on_persist_ready(number);
        self.maybe_recover();
    }

    /// Returns the index of the oldest entry that a lagging voter needs and that must be read from the disk.
    pub fn wanted(&self) -> Option<u64> {
        self.raft.store().wanted()
    }

    /// Provides the entries from `low` on that were read from the disk; none if they were removed.
    pub fn provide(&mut self, low: u64, entries: Vec<Entry>) {
        let entries = entries.into_iter().map(Entry::into_raft).collect();
        for context in self.raft.mut_store().show(low, entries) {
            self.raft.on_entries_fetched(context);
        }
        self.raft.mut_store().hide();
    }

    /// Sets the snapshot for voters that need entries before the start of the log.
    pub fn set_snapshot(&mut self, snapshot: SnapshotMark) {
        self.raft.mut_store().set_snapshot(snapshot);
    }

    /// Removes the entries up to `index` from the log's start, which a snapshot contains.
    pub fn forget_before(&mut self, index: u64) {
        let index = index.min(self.raft.raft.raft_log.applied);
        self.raft.mut_store().forget_before(index);
    }

    /// Returns whether this voter is the leader.
    pub fn is_leader(&self) -> bool {
        self.raft.raft.state == StateRole::Leader
    }

    /// Returns the leader that this voter knows.
    pub fn leader(&self) -> Option<ReplicaKey> {
        self.names.key(self.raft.raft.leader_id)
    }

    /// Returns the term.
    pub fn term(&self) -> u64 {
        self.raft.raft.term
    }

    /// Returns the index of the last entry in the log, persisted or not.
    pub fn last_index(&self) -> u64 {
        self.raft.raft.raft_log.last_index()
    }

    /// Returns the index of the last entry known to be committed.
    pub fn committed_index(&self) -> u64 {
        self.raft.raft.raft_log.committed
    }

    /// Returns the progress of every voter and learner. Only a leader knows it.
    pub fn progress(&self) -> Vec<VoterProgress> {
        let known = self.raft.raft.prs().iter().filter(|_| self.is_leader());
        known.filter_map(|(id, one)| Some(VoterProgress { key: self.names.key(*id)?, matched: one.matched })).collect()
    }

    fn key(&self) -> ReplicaKey {
        self.names.key(self.raft.raft.id).unwrap_or_default()
    }

    fn encode(&self, messages: Vec<Message>) -> Vec<(ReplicaKey, Vec<u8>)> {
        let encoded = messages.into_iter().filter_map(|mut message| {
            let to = self.names.key(message.to)?;
            self.names.write_keys(&mut message);
            Some((to, message::encode(&message)?))
        });
        encoded.collect()
    }

    fn changed(&mut self, term: u64, vote: u64) -> Option<HardState> {
        let state = HardState { term, vote: self.names.key(vote) };
        // The library's hard state also has the commit index, which need not be persisted.
        (state != self.hard_state).then(|| {
            self.hard_state = state;
            state
        })
    }

    /// Returns whether a message is for a voter. A voter that was sent a snapshot is probed again after its next
    /// message, because it fetches the file itself and sends no report.
    fn is_sent(&mut self, message: &Message) -> bool {
        if message.get_msg_type() == MessageType::MsgSnapshot {
            self.raft.report_snapshot(message.to, SnapshotStatus::Failure);
        }
        message.to != INVALID_ID
    }

    /// Returns whether the library must not start an election: a snapshot that has replaced the log is not persisted
    /// yet, or entries of a single voter are not.
    fn waits_for_disk(&self) -> bool {
        let raft = &self.raft.raft;
        let is_alone = raft.promotable() && raft.prs().conf().voters().ids().len() == 1;
        let has_unpersisted = raft.raft_log.persisted < self.last_index();
        raft.raft_log.applied < self.raft.store().before().index || (is_alone && !self.is_leader() && has_unpersisted)
    }

    fn check(&self, from: ReplicaKey, message: &Message) -> Result<(), String> {
        let raft = &self.raft.raft;
        let sender = self.names.id(from);
        if message.from != sender || from < 0 || message.from == raft.id || message.to != raft.id {
            return Err(format!("it goes from {} to {} and came from {sender}", message.from, message.to));
        }
        // A removed leader may transfer its leadership; other replicas outside of the quorum may not.
        let is_office = message.get_msg_type() == MessageType::MsgTimeoutNow;
        let is_welcome = self.is_open && (!is_office || message.from == raft.leader_id);
        if !raft.prs().conf().voters().contains(message.from) && !is_welcome {
            return Err(format!("node {} is none of the voters", node_of(from)));
        }
        let last = self.last_index();
        let beyond = match message.get_msg_type() {
            // A leader may crash before it has persisted the entries it sent. It is then a follower in the same term.
            MessageType::MsgAppendResponse => {
                self.is_leader() && !message.reject && message.term == raft.term && message.index > last
            }
            MessageType::MsgTimeoutNow => self.waits_for_disk(),
            _ => false,
        };
        if beyond {
            return Err(format!(
                "it speaks of entry {}, and the log of this voter ends with {last}: either of the two logs was lost",
                message.index
            ));
        }
        Ok(())
    }

    fn take_offer(&mut self, message: Message) -> Result<Option<SnapshotMark>, QuorumError> {
        let raft = &mut self.raft.raft;
        if message.term < raft.term || message.get_snapshot().get_metadata().index <= raft.raft_log.committed {
            // The snapshot is not needed: the library responds with the state of this log.
            self.raft.step(message)?;
            return Ok(None);
        }
        if message.term > raft.term || raft.leader_id != message.from || raft.state != StateRole::Follower {
            raft.become_follower(message.term, message.from);
        }
        raft.election_elapsed = 0;
        let mark = mark_of(&message);
        let is_known = self.offered.replace(message).is_some_and(|before| mark_of(&before) == mark);
        Ok((!is_known).then_some(mark))
    }

    /// Forgets an offered snapshot whose file cannot be fetched. The leader offers it again.
    pub fn decline(&mut self) {
        self.offered = None;
    }

    fn change(&mut self, kind: ConfChangeType, id: u64) -> Result<(), QuorumError> {
        let mut change = ConfChange { node_id: id, ..ConfChange::default() };
        change.set_change_type(kind);
        self.raft.apply_conf_change(&change)?;
        Ok(())
    }
}

fn snapshot_mark(snapshot: &raft::eraftpb::Snapshot) -> SnapshotMark {
    let metadata = snapshot.get_metadata();
    let last = Position { index: metadata.index, term: metadata.term };
    SnapshotMark { last, id: snapshot.data.to_vec() }
}

fn mark_of(message: &Message) -> SnapshotMark {
    snapshot_mark(message.get_snapshot())
}
