//! The state shared by a fetcher's caller and its I/O thread: the partitions to read, their positions, and received chunks.
//!
//! Every change of one partition (added, moved, paused) gives it a new mark. Data requested under an older mark is dropped
//! on arrival, so a change of one partition drops no data of the others.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::chunk::Chunk;
use crate::error::ClientError;
use pybroker_record::LeaderEpoch;

/// The position at which reading of a partition starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At this offset.
    Offset(i64),
    /// At the first record of this time or later (ms), at the first offset (-2), or after the last (-1).
    Time(i64),
}

/// A partition and its start position.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub topic: Arc<str>,
    /// The partition.
    pub index: i32,
    /// The start position.
    pub start: Start,
}

/// Number of a change of a partition; never used twice.
pub type Mark = u64;

/// A partition, as the I/O thread gets it.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub topic: Arc<str>,
    pub index: i32,
    pub start: Start,
    pub mark: Mark,
    /// No records are read, but the start offset is looked up.
    pub paused: bool,
    /// Leader epoch of the record before the start; -1 if unknown.
    pub epoch: LeaderEpoch,
}

#[derive(Debug)]
struct Place {
    start: Start,
    mark: Mark,
    paused: bool,
    /// Leader epoch of the last batch returned since reading began there; -1 without one.
    epoch: i32,
    /// Records between the last batch returned and the high watermark of its response.
    behind: u64,
}

#[derive(Debug)]
struct Item {
    mark: Mark,
    /// The number of its response.
    response: u64,
    outcome: Result<Chunk, ClientError>,
}

/// A partition: its topic and its index.
pub type Key = (Arc<str>, i32);

/// The shared state; its owner has it under a lock.
#[derive(Debug, Default)]
pub struct Inbox {
    items: VecDeque<Item>,
    /// By response, the number of its chunks that wait.
    responses: FxHashMap<u64, usize>,
    last_response: u64,
    last_mark: Mark,
    places: FxHashMap<Key, Place>,
    /// Whether there is a change that the I/O thread has not taken.
    changed: bool,
}

impl Inbox {
    /// Add partitions, or move those that are already read to another position.
    pub fn add(&mut self, assignment: Vec<Assignment>) {
        for Assignment { topic, index, start } in assignment {
            let mark = self.next_mark();
            if let Some(old) =
                self.places.insert((topic, index), Place { start, mark, paused: false, epoch: -1, behind: 0 })
            {
                self.forget(old.mark);
            }
        }
    }

    /// Stop reading these partitions.
    pub fn remove(&mut self, partitions: &[Key]) {
        for key in partitions {
            if let Some(old) = self.places.remove(key) {
                self.changed = true;
                self.forget(old.mark);
            }
        }
    }

    /// Stop reading all partitions.
    pub fn clear(&mut self) {
        self.places.clear();
        self.items.clear();
        self.responses.clear();
        self.changed = true;
    }

    /// Move one partition to another position; false if it is not read.
    pub fn seek(&mut self, key: &Key, start: Start) -> bool {
        let mark = self.next_mark();
        let Some(place) = self.places.get_mut(key) else { return false };
        place.start = start;
        place.epoch = -1;
        let old = std::mem::replace(&mut place.mark, mark);
        match start {
            Start::Offset(_) => self.forget_data(old, mark),
            // A start that is looked up is an offset in the new leader's log.
            Start::Time(_) => self.forget(old),
        }
        true
    }

    /// Move a chunk's partition to an offset within the chunk, if the chunk is the last one returned of the partition.
    pub fn seek_within(&mut self, chunk: &Chunk, to: i64) {
        let key = (Arc::clone(&chunk.topic), chunk.index);
        if self.position(&key) == Some(Start::Offset(chunk.next_offset)) {
            self.seek(&key, Start::Offset(to));
        }
    }

    /// Pause or resume a partition; false if it is not read. Waiting chunks are dropped and fetched again later.
    pub fn pause(&mut self, key: &Key, paused: bool) -> bool {
        let mark = self.next_mark();
        let Some(place) = self.places.get_mut(key) else { return false };
        if place.paused != paused {
            place.paused = paused;
            let old = std::mem::replace(&mut place.mark, mark);
            self.forget_data(old, mark);
        }
        true
    }

    /// The caller's position in a partition.
    pub fn position(&self, key: &Key) -> Option<Start> {
        self.places.get(key).map(|place| place.start)
    }

    /// Leader epoch of the last batch before the caller's position; -1 if it has read none, or the epoch is unknown.
    pub fn epoch(&self, key: &Key) -> i32 {
        self.places.get(key).map_or(-1, |place| place.epoch)
    }

    /// The caller's position in every partition.
    pub fn positions(&self) -> Vec<Assignment> {
        let places = self.places.iter();
        places
            .map(|((topic, index), p)| Assignment { topic: Arc::clone(topic), index: *index, start: p.start })
            .collect()
    }

    /// The partitions to read, for the I/O thread; `None` without a change since the last call.
    pub fn take_change(&mut self) -> Option<Vec<Wanted>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let as_wanted = |((topic, index), place): (&Key, &Place)| {
            let Place { start, mark, paused, epoch, .. } = *place;
            Wanted { topic: Arc::clone(topic), index: *index, start, mark, paused, epoch: LeaderEpoch(epoch) }
        };
        let mut wanted: Vec<Wanted> = self.places.iter().map(as_wanted).collect();
        wanted.sort_by(|a, b| (&a.topic, a.index).cmp(&(&b.topic, b.index)));
        Some(wanted)
    }

    /// Whether there is a change for the I/O thread.
    pub fn has_changed(&self) -> bool {
        self.changed
    }

    /// The number of responses with waiting chunks.
    pub fn waiting_responses(&self) -> usize {
        self.responses.len()
    }

    /// Add the chunks of one response, without those of partitions changed since the request; returns whether one was added.
    pub fn deliver(&mut self, chunks: Vec<(Mark, Chunk)>) -> bool {
        self.last_response += 1;
        let (response, before) = (self.last_response, self.items.len());
        for (mark, chunk) in chunks {
            if self.is_current(&chunk.topic, chunk.index, mark) {
                self.items.push_back(Item { mark, response, outcome: Ok(chunk) });
            }
        }
        let count = self.items.len() - before;
        if count > 0 {
            self.responses.insert(response, count);
        }
        count > 0
    }

    /// Add an error of a partition, unless the partition has changed since the request.
    pub fn deliver_error(&mut self, mark: Mark, error: ClientError) -> bool {
        let current = self.places.values().any(|place| place.mark == mark);
        if current {
            self.items.push_back(Item { mark, response: 0, outcome: Err(error) });
        }
        current
    }

    /// Set the start offset of a partition, after its look-up.
    pub fn found(&mut self, key: &Key, mark: Mark, offset: i64) {
        if self.items.iter().any(|item| item.mark == mark) {
            return; // The waiting chunks are before this offset, and are read first.
        }
        if let Some(place) = self.places.get_mut(key).filter(|place| place.mark == mark) {
            place.start = Start::Offset(offset);
        }
    }

    /// Remove the next chunk or error; moves the partition's position past the chunk.
    pub fn next(&mut self) -> Option<Result<Chunk, ClientError>> {
        let item = self.items.pop_front()?;
        self.count_down(item.response);
        if let Ok(chunk) = &item.outcome
            && let Some(place) = self.places.get_mut(&(Arc::clone(&chunk.topic), chunk.index))
        {
            place.start = Start::Offset(chunk.next_offset);
            place.epoch = chunk.leader_epoch.0;
            place.behind = u64::try_from(chunk.readable_end - chunk.next_offset).unwrap_or(0);
        }
        Some(item.outcome)
    }

    /// By partition, the lag in records, as of its last response.
    pub fn behind(&self) -> Vec<(Key, u64)> {
        self.places.iter().map(|(key, place)| (key.clone(), place.behind)).collect()
    }

    /// The largest lag of a partition in records, as of its last response.
    pub fn most_behind(&self) -> u64 {
        self.places.values().map(|place| place.behind).max().unwrap_or(0)
    }

    /// Whether no chunk or error waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn next_mark(&mut self) -> Mark {
        self.changed = true;
        self.last_mark += 1;
        self.last_mark
    }

    fn is_current(&self, topic: &Arc<str>, index: i32, mark: Mark) -> bool {
        self.places.get(&(Arc::clone(topic), index)).is_some_and(|place| place.mark == mark)
    }

    fn forget(&mut self, mark: Mark) {
        let items = std::mem::take(&mut self.items);
        for item in items {
            if item.mark == mark { self.count_down(item.response) } else { self.items.push_back(item) }
        }
    }

    /// Drop the data of an old mark. A [`ClientError::NewLeader`] is kept under the new mark: a new leader is reported once.
    fn forget_data(&mut self, old: Mark, mark: Mark) {
        let is_lasting =
            |item: &&mut Item| item.mark == old && matches!(item.outcome, Err(ClientError::NewLeader { .. }));
        self.items.iter_mut().filter(is_lasting).for_each(|item| item.mark = mark);
        self.forget(old);
    }

    fn count_down(&mut self, response: u64) {
        if let Some(count) = self.responses.get_mut(&response) {
            *count -= 1;
            if *count == 0 {
                self.responses.remove(&response);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: i32) -> Key {
        ("t".into(), index)
    }

    fn inbox(count: i32) -> Inbox {
        let mut inbox = Inbox::default();
        inbox.add((0..count).map(|index| Assignment { topic: "t".into(), index, start: Start::Offset(0) }).collect());
        inbox
    }

    fn marks(inbox: &mut Inbox) -> Vec<(i32, Mark)> {
        inbox.take_change().unwrap().iter().map(|w| (w.index, w.mark)).collect()
    }

    fn failure() -> ClientError {
        ClientError::Closed { what: "fetcher" }
    }

    #[test]
    fn a_change_is_told_once_and_marks_only_what_it_concerns() {
        let mut inbox = inbox(3);
        let before = marks(&mut inbox);
        assert!(inbox.take_change().is_none());
        assert!(inbox.seek(&key(1), Start::Offset(9)) && !inbox.seek(&key(7), Start::Offset(9)));
        inbox.remove(&[key(2)]);
        let after = marks(&mut inbox);
        assert_eq!((before[0], 2), (after[0], after.len()));
        assert!(after[1].1 > before[1].1 && inbox.position(&key(1)) == Some(Start::Offset(9)));
    }

    #[test]
    fn a_paused_partition_is_not_read_and_keeps_its_position() {
        let mut inbox = inbox(2);
        let before = marks(&mut inbox);
        assert!(inbox.deliver_error(before[0].1, failure()));
        assert!(inbox.pause(&key(0), true) && inbox.is_empty());
        assert_eq!(vec![true, false], inbox.take_change().unwrap().iter().map(|w| w.paused).collect::<Vec<_>>());
        assert!(inbox.pause(&key(0), true) && inbox.pause(&key(0), false));
        assert_eq!((2, Some(Start::Offset(0))), (marks(&mut inbox).len(), inbox.position(&key(0))));
    }

    #[test]
    fn a_new_leader_is_reported_also_where_the_partition_was_paused_or_moved_meanwhile() {
        let mut inbox = inbox(1);
        let mark = marks(&mut inbox)[0].1;
        let news = ClientError::NewLeader { topic: "t".to_owned(), partition: 0, epoch: 3 };
        assert!(inbox.deliver_error(mark, news));
        assert!(inbox.seek(&key(0), Start::Offset(5)) && inbox.pause(&key(0), true) && inbox.pause(&key(0), false));
        assert!(matches!(inbox.next(), Some(Err(ClientError::NewLeader { .. }))));
        assert!(inbox.is_empty());
    }

    #[test]
    fn a_beginning_that_is_looked_up_is_found_also_behind_a_new_leader() {
        let mut inbox = inbox(1);
        let news = ClientError::NewLeader { topic: "t".to_owned(), partition: 0, epoch: 3 };
        let mark = marks(&mut inbox)[0].1;
        assert!(inbox.deliver_error(mark, news) && inbox.seek(&key(0), Start::Time(-1)));
        let mark = marks(&mut inbox)[0].1;
        inbox.found(&key(0), mark, 5);
        assert_eq!((Some(Start::Offset(5)), true), (inbox.position(&key(0)), inbox.is_empty()));
    }

    #[test]
    fn what_was_asked_for_under_an_older_mark_is_dropped() {
        let mut inbox = inbox(1);
        let old = marks(&mut inbox)[0].1;
        inbox.seek(&key(0), Start::Time(-1));
        assert!(!inbox.deliver_error(old, failure()));
        let mark = marks(&mut inbox)[0].1;
        inbox.found(&key(0), old, 5);
        assert_eq!(Some(Start::Time(-1)), inbox.position(&key(0)));
        inbox.found(&key(0), mark, 5);
        assert_eq!(Some(Start::Offset(5)), inbox.position(&key(0)));
        assert!(inbox.deliver_error(mark, failure()) && inbox.next().is_some_and(|item| item.is_err()));
        assert_eq!((0, true), (inbox.waiting_responses(), inbox.next().is_none()));
    }
}
