//! The Raft library's view of the log, without I/O.
//!
//! Owns the term of every entry, as runs. Owns the payloads of all entries that are not applied yet, and of as many
//! others as its limit allows. If a lagging voter needs an older payload, [`Entries::wanted`] returns its index, the
//! caller reads it, and [`Entries::show`] passes it to the library once. Must not know files.

use std::cell::RefCell;
use std::collections::VecDeque;

use raft::eraftpb::{ConfState, Entry as RaftEntry, EntryType, HardState as RaftHardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use super::batch::changes_voters;

/// One entry of the Raft log: the batch with the ordinal `index`, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The ordinal of the entry's batch in the log.
    pub index: u64,
    /// The term, which is the batch's partition leader epoch.
    pub term: u64,
    /// A record batch with base offset 0.
    pub payload: Vec<u8>,
}

impl Entry {
    pub(super) fn from_raft(entry: RaftEntry) -> Self {
        Self { index: entry.index, term: entry.term, payload: payload_of(&entry).to_vec() }
    }

    pub(super) fn into_raft(self) -> RaftEntry {
        build_entry(self.index, self.term, self.payload)
    }
}

/// Builds the library's entry for a batch. The batch of a voter change is put in the entry's context, because the
/// library could interpret its data.
pub(super) fn build_entry(index: u64, term: u64, payload: Vec<u8>) -> RaftEntry {
    let mut entry = RaftEntry { index, term, ..RaftEntry::default() };
    if changes_voters(&payload) {
        entry.set_entry_type(EntryType::EntryConfChange);
        entry.context = payload.into();
    } else {
        entry.data = payload.into();
    }
    entry
}

/// Returns the batch of the library's entry.
pub(super) fn payload_of(entry: &RaftEntry) -> &[u8] {
    if entry.get_entry_type() == EntryType::EntryNormal { &entry.data } else { &entry.context }
}

/// Returns the voters, and this replica as a learner if it does not vote: the library needs its own progress in every
/// state. It does not accept a learner without voters.
pub(super) fn conf_state(own: u64, voters: Vec<u64>) -> ConfState {
    let beside = !voters.contains(&own) && !voters.is_empty();
    ConfState { learners: if beside { vec![own] } else { Vec::new() }, voters, ..ConfState::default() }
}

/// A run of entries of one term, from `first` to the next run's start or the end of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermRun {
    /// Index of the first entry.
    pub first: u64,
    /// Their term.
    pub term: u64,
}

/// A position in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Index of the entry; 0 before the first one ever.
    pub index: u64,
    /// The term of the entry.
    pub term: u64,
}

/// A snapshot as identified in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotMark {
    /// The last entry in the snapshot.
    pub last: Position,
    /// Twelve bytes that identify its file: end offset and epoch.
    pub id: Vec<u8>,
}

/// Most reads from the disk that can be pending for voters. Further ones are requested again at the voter's next
/// response.
const MOST_WANTED: usize = 16;

/// The log as the library sees it.
///
/// Invariants: `runs` ascend in index and term and begin after `before`; `payloads` are the entries
/// `last - payloads.len() + 1 ..= last`, and `payload_bytes` are theirs.
pub(super) struct Entries {
    own: u64,
    voters: Vec<u64>,
    hard_state: RaftHardState,
    before: Position,
    runs: Vec<TermRun>,
    last: u64,
    payloads: VecDeque<RaftEntry>,
    payload_bytes: usize,
    snapshot: Option<SnapshotMark>,
    shown: Vec<RaftEntry>,
    wanted: RefCell<Vec<(u64, GetEntriesContext)>>,
}

impl Entries {
    pub(super) fn new(
        own: u64,
        voters: Vec<u64>,
        hard_state: RaftHardState,
        before: Position,
        runs: Vec<TermRun>,
        last: u64,
        snapshot: Option<SnapshotMark>,
    ) -> Self {
        Self {
            own,
            voters,
            hard_state,
            before,
            runs,
            last,
            payloads: VecDeque::new(),
            payload_bytes: 0,
            snapshot,
            shown: Vec::new(),
            wanted: RefCell::default(),
        }
    }

    /// Adds the payloads of entries that the log had at the start.
    pub(super) fn restore_payloads(&mut self, entries: impl IntoIterator<Item = Entry>) {
        for entry in entries {
            self.keep(entry.into_raft());
        }
    }

    /// Appends entries and removes those with the same or a higher index, which a new leader has overruled.
    pub(super) fn append(&mut self, entries: &[RaftEntry]) {
        let Some(first) = entries.first().map(|entry| entry.index) else { return };
        while self.last >= first && !self.payloads.is_empty() {
            self.payload_bytes -= self.payloads.pop_back().map_or(0, |entry| payload_of(&entry).len());
            self.last -= 1;
        }
        while self.runs.last().is_some_and(|run| run.first >= first) {
            self.runs.pop();
        }
        for entry in entries {
            if self.runs.last().is_none_or(|run| run.term != entry.term) {
                self.runs.push(TermRun { first: entry.index, term: entry.term });
            }
            self.last = entry.index;
            self.keep(entry.clone());
        }
    }

    fn keep(&mut self, entry: RaftEntry) {
        self.payload_bytes += payload_of(&entry).len();
        self.payloads.push_back(entry);
    }

    /// Removes the oldest payloads up to and including `index`, until at most `bytes` are kept. The terms stay known.
    pub(super) fn forget_payloads(&mut self, index: u64, bytes: usize) {
        while self.payload_bytes > bytes && self.payloads.front().is_some_and(|entry| entry.index <= index) {
            self.payload_bytes -= self.payloads.pop_front().map_or(0, |entry| payload_of(&entry).len());
        }
    }

    /// Sets the snapshot for voters that need entries before the start of the log.
    pub(super) fn set_snapshot(&mut self, snapshot: SnapshotMark) {
        self.snapshot = Some(snapshot);
    }

    /// Removes the entries up to and including `index`, which must be below the last one.
    pub(super) fn forget_before(&mut self, index: u64) {
        let Ok(term) = self.term(index) else { return };
        if index > self.before.index {
            self.forget_payloads(index, 0);
            self.before = Position { index, term };
            let cut = self.runs.partition_point(|run| run.first <= index);
            self.runs.drain(..cut.saturating_sub(1));
            if let Some(run) = self.runs.first_mut() {
                run.first = run.first.max(index + 1);
            }
        }
    }

    /// Replaces the log with `snapshot`.
    pub(super) fn restart_at(&mut self, snapshot: SnapshotMark) {
        (self.before, self.last) = (snapshot.last, snapshot.last.index);
        self.runs.clear();
        self.payloads.clear();
        self.payload_bytes = 0;
        self.snapshot = Some(snapshot);
    }

    /// Returns the position before the log's first entry.
    pub(super) fn before(&self) -> Position {
        self.before
    }

    pub(super) fn set_voters(&mut self, voters: Vec<u64>) {
        self.voters = voters;
    }

    /// Returns the index of the oldest entry that a lagging voter needs and that is not in memory.
    pub(super) fn wanted(&self) -> Option<u64> {
        self.wanted.borrow().first().map(|(low, _)| *low)
    }

    /// Makes entries from the disk visible to the library. Returns the contexts that wait for them.
    pub(super) fn show(&mut self, low: u64, entries: Vec<RaftEntry>) -> Vec<GetEntriesContext> {
        self.shown = entries;
        let (served, left) = self.wanted.take().into_iter().partition(|(wanted, _)| *wanted == low);
        *self.wanted.get_mut() = left;
        let served: Vec<(u64, GetEntriesContext)> = served;
        served.into_iter().map(|(_, context)| context).collect()
    }

    /// Ends the visibility from [`Entries::show`].
    pub(super) fn hide(&mut self) {
        self.shown = Vec::new();
    }

    fn want(&self, low: u64, context: GetEntriesContext) {
        let mut wanted = self.wanted.borrow_mut();
        let is_known = wanted.iter().any(|(other, _)| *other == low);
        if !is_known && wanted.len() < MOST_WANTED {
            wanted.push((low, context));
        }
    }
}

impl Storage for Entries {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let conf = conf_state(self.own, self.voters.clone());
        Ok(RaftState::new(self.hard_state.clone(), conf))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<RaftEntry>> {
        if high > self.last + 1 {
            return Err(StorageError::Unavailable.into());
        }
        if low <= self.before.index {
            return Err(StorageError::Compacted.into());
        }
        let kept_from = self.last + 1 - self.payloads.len() as u64;
        let mut entries: Vec<_> = if low >= kept_from {
            let wanted = (low - kept_from) as usize..(high - kept_from) as usize;
            self.payloads.range(wanted).cloned().collect()
        } else if self.shown.first().is_some_and(|entry| entry.index == low) {
            self.shown.iter().take_while(|entry| entry.index < high).cloned().collect()
        } else if context.can_async() {
            self.want(low, context);
            return Err(StorageError::LogTemporarilyUnavailable.into());
        } else {
            return Err(StorageError::Compacted.into());
        };
        raft::util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.before.index {
            return Ok(self.before.term);
        }
        if index < self.before.index {
            return Err(StorageError::Compacted.into());
        }
        if index > self.last {
            return Err(StorageError::Unavailable.into());
        }
        let after = self.runs.partition_point(|run| run.first <= index);
        Ok(self.runs[..after].last().map_or(0, |run| run.term))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.before.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last)
    }

    fn snapshot(&self, _request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        let Some(mark) = &self.snapshot else {
            return Err(StorageError::SnapshotTemporarilyUnavailable.into());
        };
        let mut snapshot = Snapshot { data: mark.id.clone().into(), ..Snapshot::default() };
        let metadata = snapshot.mut_metadata();
        metadata.index = mark.last.index;
        metadata.term = mark.last.term;
        metadata.mut_conf_state().voters = self.voters.clone();
        Ok(snapshot)
    }
}
