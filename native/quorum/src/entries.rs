//! What the Raft library may ask about entries that are persisted.
//!
//! Owns the term of every entry, as runs, and the payloads that somebody still needs. The log itself lies in files
//! that this room does not know.

use std::collections::VecDeque;

use raft::eraftpb::{ConfState, Entry as RaftEntry, HardState as RaftHardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

/// One entry of the Raft log: the batch with the ordinal `index`, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The ordinal of the entry's batch in the log.
    pub index: u64,
    /// The term, which is the batch's partition leader epoch.
    pub term: u64,
    /// A record batch with base offset 0; empty for the entry by which a new leader begins its term.
    pub payload: Vec<u8>,
}

impl Entry {
    pub(super) fn from_raft(entry: RaftEntry) -> Self {
        Self { index: entry.index, term: entry.term, payload: entry.data.to_vec() }
    }

    pub(super) fn into_raft(self) -> RaftEntry {
        RaftEntry { index: self.index, term: self.term, data: self.payload.into(), ..RaftEntry::default() }
    }
}

/// Entries of one term, from `first` to the next run's first or the end of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TermRun {
    /// Index of the first entry.
    pub first: u64,
    /// Their term.
    pub term: u64,
}

/// The persisted entries as the library sees them.
///
/// Invariants: `runs` ascend in index and term and begin with index 1; `payloads` are the entries
/// `last - payloads.len() + 1 ..= last`.
pub(super) struct Entries {
    voters: Vec<u64>,
    hard_state: RaftHardState,
    runs: Vec<TermRun>,
    last: u64,
    payloads: VecDeque<RaftEntry>,
}

impl Entries {
    pub(super) fn new(voters: Vec<u64>, hard_state: RaftHardState, runs: Vec<TermRun>, last: u64) -> Self {
        Self { voters, hard_state, runs, last, payloads: VecDeque::new() }
    }

    pub(super) fn last_term(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.term)
    }

    /// Takes over entries whose payload is needed and which the log held already at the start.
    pub(super) fn restore_payloads(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.payloads.extend(entries.into_iter().map(Entry::into_raft));
    }

    /// Adds persisted entries; those that they overlap are gone, as a new leader overruled them.
    pub(super) fn append(&mut self, entries: &[RaftEntry]) {
        let Some(first) = entries.first().map(|entry| entry.index) else { return };
        if first <= self.last {
            let kept_from = self.last + 1 - self.payloads.len() as u64;
            self.payloads.truncate(first.saturating_sub(kept_from) as usize);
            while self.runs.last().is_some_and(|run| run.first >= first) {
                self.runs.pop();
            }
        }
        for entry in entries {
            if self.last_term() != entry.term {
                self.runs.push(TermRun { first: entry.index, term: entry.term });
            }
            self.payloads.push_back(entry.clone());
            self.last = entry.index;
        }
    }

    /// Forgets the payloads up to and including `index`; their terms stay known.
    pub(super) fn forget_payloads(&mut self, index: u64) {
        while self.payloads.front().is_some_and(|entry| entry.index <= index) {
            self.payloads.pop_front();
        }
    }
}

impl Storage for Entries {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let conf = ConfState { voters: self.voters.clone(), ..ConfState::default() };
        Ok(RaftState::new(self.hard_state.clone(), conf))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        context: GetEntriesContext,
    ) -> raft::Result<Vec<RaftEntry>> {
        let kept_from = self.last + 1 - self.payloads.len() as u64;
        if high > self.last + 1 {
            return Err(StorageError::Unavailable.into());
        }
        if low < kept_from {
            // Only a follower far behind needs these: the library then waits until the caller has read them.
            let missing =
                if context.can_async() { StorageError::LogTemporarilyUnavailable } else { StorageError::Compacted };
            return Err(missing.into());
        }
        let wanted = (low - kept_from) as usize..(high - kept_from) as usize;
        let mut entries: Vec<_> = self.payloads.range(wanted).cloned().collect();
        raft::util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == 0 {
            return Ok(0);
        }
        if index > self.last {
            return Err(StorageError::Unavailable.into());
        }
        let after = self.runs.partition_point(|run| run.first <= index);
        Ok(self.runs[..after].last().map_or(0, |run| run.term))
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last)
    }

    fn snapshot(&self, _request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        Err(StorageError::SnapshotTemporarilyUnavailable.into())
    }
}
