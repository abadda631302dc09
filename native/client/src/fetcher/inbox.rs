//! What a fetcher's caller and its I/O thread share: which partitions are read from where, and what has arrived.
//!
//! Every change of one partition (added, moved, paused) gives it a new mark. What was asked for under an older mark is
//! thrown away when it arrives, so a change of one partition costs nothing that was read of the others.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::chunk::Chunk;
use crate::error::ClientError;
use pybroker_record::LeaderEpoch;

/// Where reading of a partition starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At this offset.
    Offset(i64),
    /// At the first record of this time or later (ms), at the first offset (-2), or after the last (-1).
    Time(i64),
}

/// A partition and where to read it from.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub topic: Arc<str>,
    /// The partition.
    pub index: i32,
    /// Where to begin.
    pub start: Start,
}

/// Distinguishes one change of a partition from the next; never used twice.
pub type Mark = u64;

/// A partition as the I/O thread gets it.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub topic: Arc<str>,
    pub index: i32,
    pub start: Start,
    pub mark: Mark,
    /// Nothing is read of it, but its beginning is found.
    pub paused: bool,
    /// Leader epoch of the record before the start; -1 where it is not known.
    pub epoch: LeaderEpoch,
}

#[derive(Debug)]
struct Place {
    start: Start,
    mark: Mark,
    paused: bool,
    /// Leader epoch of the last batch that was handed out since reading began there; -1 without one.
    epoch: i32,
    /// Records between the last batch that was handed out and the high watermark of its response.
    behind: u64,
}

#[derive(Debug)]
struct Item {
    mark: Mark,
    /// Which response it came in.
    response: u64,
    outcome: Result<Chunk, ClientError>,
}

/// A partition: its topic and its index.
pub type Key = (Arc<str>, i32);

/// The shared state; its owner guards it with a lock.
#[derive(Debug, Default)]
pub struct Inbox {
    items: VecDeque<Item>,
    /// By response, how many of its chunks wait.
    responses: FxHashMap<u64, usize>,
    last_response: u64,
    last_mark: Mark,
    places: FxHashMap<Key, Place>,
    /// Whether the I/O thread has not looked since the last change.
    changed: bool,
}

impl Inbox {
    /// Read these partitions too, or from another position when they are read already.
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

    /// Read these partitions no longer.
    pub fn remove(&mut self, partitions: &[Key]) {
        for key in partitions {
            if let Some(old) = self.places.remove(key) {
                self.changed = true;
                self.forget(old.mark);
            }
        }
    }

    /// Read nothing any more.
    pub fn clear(&mut self) {
        self.places.clear();
        self.items.clear();
        self.responses.clear();
        self.changed = true;
    }

    /// Read one partition from another position; false when it is not read at all.
    pub fn seek(&mut self, key: &Key, start: Start) -> bool {
        let mark = self.next_mark();
        let Some(place) = self.places.get_mut(key) else { return false };
        place.start = start;
        place.epoch = -1;
        let old = std::mem::replace(&mut place.mark, mark);
        match start {
            Start::Offset(_) => self.forget_data(old, mark),
            // A beginning that is looked up is one of the new leader's log.
            Start::Time(_) => self.forget(old),
        }
        true
    }

    /// Read a chunk's partition from an offset within the chunk, if it was the last that was handed out of it.
    pub fn seek_within(&mut self, chunk: &Chunk, to: i64) {
        let key = (Arc::clone(&chunk.topic), chunk.index);
        if self.position(&key) == Some(Start::Offset(chunk.next_offset)) {
            self.seek(&key, Start::Offset(to));
        }
    }

    /// Stop handing out a partition, or go on; false when it is not read at all. What waits is asked for again later.
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

    /// Where the caller has read a partition to.
    pub fn position(&self, key: &Key) -> Option<Start> {
        self.places.get(key).map(|place| place.start)
    }

    /// Leader epoch of the last batch before the caller's position; -1 where it has read none, or is not known.
    pub fn epoch(&self, key: &Key) -> i32 {
        self.places.get(key).map_or(-1, |place| place.epoch)
    }

    /// Where the caller has read every partition to.
    pub fn positions(&self) -> Vec<Assignment> {
        let places = self.places.iter();
        places
            .map(|((topic, index), p)| Assignment { topic: Arc::clone(topic), index: *index, start: p.start })
            .collect()
    }

    /// What the I/O thread has to read from now on, when that has changed.
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

    /// Whether the I/O thread has something to look at.
    pub fn has_changed(&self) -> bool {
        self.changed
    }

    /// Responses of which something waits.
    pub fn waiting_responses(&self) -> usize {
        self.responses.len()
    }

    /// Put the chunks of one response in, without those whose partition has changed since; whether any was left.
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

    /// Put a failure in, unless the partition that met it has changed since.
    pub fn deliver_error(&mut self, mark: Mark, error: ClientError) -> bool {
        let current = self.places.values().any(|place| place.mark == mark);
        if current {
            self.items.push_back(Item { mark, response: 0, outcome: Err(error) });
        }
        current
    }

    /// A look-up has found where a partition begins.
    pub fn found(&mut self, key: &Key, mark: Mark, offset: i64) {
        if self.items.iter().any(|item| item.mark == mark) {
            return; // What waits lies before it, and is read first.
        }
        if let Some(place) = self.places.get_mut(key).filter(|place| place.mark == mark) {
            place.start = Start::Offset(offset);
        }
    }

    /// The next thing that arrived; the position follows it.
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

    /// By partition, how many records it is behind, as far as its last response says.
    pub fn behind(&self) -> Vec<(Key, u64)> {
        self.places.iter().map(|(key, place)| (key.clone(), place.behind)).collect()
    }

    /// The most records that a partition is behind, as far as its last response says.
    pub fn most_behind(&self) -> u64 {
        self.places.values().map(|place| place.behind).max().unwrap_or(0)
    }

    /// Whether nothing waits.
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

    /// Forget what arrived under a mark that another one follows, but for this: a leader is new only once.
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
