//! One voter of the quorum.
//!
//! Owns the life of a Raft node between its calls: step, tick, campaign, propose; then [`Quorum::ready`], whose content
//! the caller persists and sends, and [`Quorum::persisted`] when that is done. Readies may be under way together, in
//! their order: no call waits for a disk.
//!
//! Replicas have keys outside, and ids inside (`names`).

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

/// A voter. Every method is quick and does no I/O.
pub struct Quorum {
    raft: RawNode<Entries>,
    kept_bytes: usize,
    is_open: bool,
    /// The last one that a ready held.
    hard_state: HardState,
    /// The newest committed entry that a ready held: applied when the next one is asked for.
    handed_out: u64,
    /// The newest term that this voter began as leader.
    began: u64,
    /// Who voted for this voter in which term.
    granting: (u64, Vec<ReplicaKey>),
    /// A leader's snapshot whose file is not here yet.
    offered: Option<Message>,
    /// The last entry that this voter had acknowledged, where the log has lost it; zeros where nothing is lost.
    awaited: Position,
    /// Voters that lack what they had acknowledged, to be reported: the last entries that each had and has.
    lost: Vec<(ReplicaKey, u64, u64)>,
    names: Names,
}

impl Quorum {
    /// A follower with what the disk held; nobody leads yet. With one voter, [`Quorum::campaign`] makes it leader.
    pub fn new(settings: &QuorumSettings, restored: Restored) -> Result<Self, QuorumError> {
        restored.check(settings)?;
        let names = Names::default();
        let last_term = restored.last_term();
        let saved = restored.hard_state.unwrap_or(HardState { term: 0, vote: None });
        let hard_state = if saved.term >= last_term {
            saved
        } else {
            // The hard state is older than the log: its file was lost, or belongs to an earlier copy. Which vote was
            // given in the log's last term is unknown; a vote for itself keeps this voter from giving a second one.
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

    /// Counts one tick of the clock; true when there may be something ready.
    pub fn tick(&mut self, now_ms: i64) -> bool {
        if self.waits_for_disk() {
            return false;
        }
        self.pass_election();
        let ready = self.raft.tick();
        self.begin_term(now_ms);
        ready
    }

    /// Stands for election now; a voter that leads, that is none any more, or that lost records, does not. The only
    /// voter leads when the call returns.
    pub fn campaign(&mut self, now_ms: i64) -> Result<(), QuorumError> {
        if self.raft.raft.promotable() && !self.waits_for_disk() && self.awaited().is_none() {
            self.raft.campaign()?;
            self.begin_term(now_ms);
        }
        Ok(())
    }

    /// Takes a message from the voter `from`.
    ///
    /// A snapshot is returned whose file the caller fetches from the leader before [`Quorum::install`]: until then the
    /// voter goes on with the log that it has.
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
            // What a replica answers that has been removed meanwhile is of no use.
            Err(raft::Error::StepPeerNotFound) if self.is_open => return Ok(None),
            stepped => stepped?,
        }
        if let Some(answer) = lost {
            self.reject_commit(answer);
        }
        self.begin_term(now_ms);
        Ok(None)
    }

    /// Notes that the file of the snapshot that [`Quorum::step`] returned is on the disk. The next ready has the
    /// snapshot, unless a newer leader or log has made it needless.
    pub fn install(&mut self, snapshot: &SnapshotMark, voters: &[ReplicaKey]) -> Result<(), QuorumError> {
        let Some(mut message) = self.offered.take() else { return Ok(()) };
        if mark_of(&message) == *snapshot && message.term == self.raft.raft.term {
            let conf = conf_state(self.raft.raft.id, self.names.ids(voters));
            message.mut_snapshot().mut_metadata().set_conf_state(conf);
            self.raft.step(message)?;
        }
        Ok(())
    }

    /// Puts a batch into the log, to be found in [`Ready::entries`] and, once committed, in `committed`; its index.
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

    /// Puts a committed change of voters in force: one more, one less, or the same ones; or the first ones, where none
    /// were known.
    ///
    /// A leader that is none of the voters any more leads on until [`Quorum::resign`] or another is elected.
    pub fn change_voters(&mut self, voters: &[ReplicaKey]) -> Result<(), QuorumError> {
        let own = self.raft.raft.id;
        let before: Vec<u64> = self.raft.raft.prs().conf().voters().ids().iter().collect();
        let after = self.names.ids(voters);
        let added = after.iter().filter(|id| !before.contains(id)).map(|id| (ConfChangeType::AddNode, *id));
        let removed = before.iter().filter(|id| !after.contains(id)).map(|id| {
            // The library finds its own progress in every state: this replica stays as one that does not vote.
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

    /// Voters that were known by their node ids alone have other keys from now on, each by its old one: a committed
    /// change has given them directories. Any replica may write to this one then.
    pub fn rename(&mut self, keys: &[(ReplicaKey, ReplicaKey)]) {
        for (from, to) in keys {
            self.names.rename(*from, *to);
            self.granting.1.iter_mut().filter(|key| *key == from).for_each(|key| *key = *to);
        }
        self.is_open |= !keys.is_empty();
    }

    /// Sends the log to a replica that does not vote, as long as this voter leads; a voter stays what it is.
    pub fn add_learner(&mut self, key: ReplicaKey) -> Result<(), QuorumError> {
        let (raft, id) = (&self.raft.raft, self.names.id(key));
        if raft.state == StateRole::Leader && !raft.prs().conf().voters().contains(id) {
            self.change(ConfChangeType::AddLearnerNode, id)?;
        }
        Ok(())
    }

    /// Sends the log no more to a replica that does not vote.
    pub fn remove_learner(&mut self, key: ReplicaKey) -> Result<(), QuorumError> {
        let (raft, id) = (&self.raft.raft, self.names.id(key));
        if raft.prs().conf().learners().contains(&id) && id != raft.id {
            self.change(ConfChangeType::RemoveNode, id)?;
        }
        Ok(())
    }

    /// Leads no more; the others notice it as they notice a leader's silence.
    pub fn resign(&mut self) {
        if self.is_leader() {
            let term = self.raft.raft.term;
            self.raft.raft.become_follower(term, INVALID_ID);
        }
    }

    /// Whether this replica is one of the voters.
    pub fn votes(&self) -> bool {
        self.raft.raft.promotable()
    }

    /// Forgets who leads, because the leader's process has ended: a candidate of this term may have this vote at once.
    pub fn forget_leader(&mut self) {
        let term = self.raft.raft.term;
        if !self.is_leader() {
            self.raft.raft.become_follower(term, INVALID_ID);
        }
    }

    /// Hands the leadership to another voter, which stands for election as soon as it has all of the log.
    pub fn transfer_leader(&mut self, to: ReplicaKey) {
        self.raft.transfer_leader(self.names.id(to));
    }

    /// Notes that what was sent to a voter may be lost.
    pub fn unreachable(&mut self, voter: ReplicaKey) {
        self.raft.report_unreachable(self.names.id(voter));
    }

    /// What there is to do; `None` when there is nothing.
    pub fn ready(&mut self) -> Option<Ready> {
        // What a snapshot holds counts as applied when it is persisted, and entries are persisted when they are committed.
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

    /// Notes that everything in the readies up to `number` is persisted.
    pub fn persisted(&mut self, number: u64) {
        self.raft.on_persist_ready(number);
        self.maybe_recover();
    }

    /// Index of the oldest entry that a lagging voter needs and that is to be read from the disk.
    pub fn wanted(&self) -> Option<u64> {
        self.raft.store().wanted()
    }

    /// Hands in the entries from `low` on that somebody read; none when they are gone.
    pub fn provide(&mut self, low: u64, entries: Vec<Entry>) {
        let entries = entries.into_iter().map(Entry::into_raft).collect();
        for context in self.raft.mut_store().show(low, entries) {
            self.raft.on_entries_fetched(context);
        }
        self.raft.mut_store().hide();
    }

    /// Notes a snapshot for voters that need what the log does not have any more.
    pub fn set_snapshot(&mut self, snapshot: SnapshotMark) {
        self.raft.mut_store().set_snapshot(snapshot);
    }

    /// Notes that the log begins after the entry `index`, which a snapshot holds.
    pub fn forget_before(&mut self, index: u64) {
        let index = index.min(self.raft.raft.raft_log.applied);
        self.raft.mut_store().forget_before(index);
    }

    /// Whether this voter leads.
    pub fn is_leader(&self) -> bool {
        self.raft.raft.state == StateRole::Leader
    }

    /// The leader, as far as this voter knows.
    pub fn leader(&self) -> Option<ReplicaKey> {
        self.names.key(self.raft.raft.leader_id)
    }

    /// The term.
    pub fn term(&self) -> u64 {
        self.raft.raft.term
    }

    /// Index of the last entry in the log, persisted or not.
    pub fn last_index(&self) -> u64 {
        self.raft.raft.raft_log.last_index()
    }

    /// Index of the last entry that is known to be committed.
    pub fn committed_index(&self) -> u64 {
        self.raft.raft.raft_log.committed
    }

    /// How far every voter has come, and every replica that gets the log beside them; known to a leader alone.
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
        // The library's hard state has the commit index too, which a log need not remember.
        (state != self.hard_state).then(|| {
            self.hard_state = state;
            state
        })
    }

    /// Whether a message is for a voter. A voter that was sent a snapshot is probed again after its next sign of life:
    /// it asks for the file by itself, and nobody waits for its report.
    fn is_sent(&mut self, message: &Message) -> bool {
        if message.get_msg_type() == MessageType::MsgSnapshot {
            self.raft.report_snapshot(message.to, SnapshotStatus::Failure);
        }
        message.to != INVALID_ID
    }

    /// Whether a snapshot has replaced the log and is not persisted yet, or entries of a voter that is alone are not: the
    /// library could not stand for election.
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
        // A leader that was removed hands its office over, and a stranger does not.
        let is_office = message.get_msg_type() == MessageType::MsgTimeoutNow;
        let is_welcome = self.is_open && (!is_office || message.from == raft.leader_id);
        if !raft.prs().conf().voters().contains(message.from) && !is_welcome {
            return Err(format!("node {} is none of the voters", node_of(from)));
        }
        let last = self.last_index();
        let beyond = match message.get_msg_type() {
            // A leader that ended before it had persisted what it sent is a follower of the same term now.
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
            // Nothing to be fetched: the library answers with what is here.
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

    /// Forgets an offered snapshot whose file cannot be fetched; the leader offers it again.
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
