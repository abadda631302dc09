//! The sender's state of one partition: waiting batches, retries, batches in flight, and the next sequence number.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::accumulator::Queue;
use super::batch::Batch;
use crate::error::ClientError;
use crate::network::cluster::Leader;
use pybroker_wire::init_producer_id::ProducerIdentity;

/// No transaction: transaction numbers begin at 1.
const NONE_YET: u64 = 0;

/// The sender's state of one partition.
#[derive(Debug)]
pub struct PartitionQueue {
    pub waiting: Arc<Queue>,
    /// Batches to retry, in the order of their ids.
    pub again: Vec<Batch>,
    pub in_flight: usize,
    pub hold_until: Option<Instant>,
    /// The leader that the last batch was sent to.
    pub sent_to: Option<Leader>,
    pub next_sequence: i32,
    /// The identity of the batch that was sent last.
    pub sent_as: ProducerIdentity,
    /// The identity that `next_sequence` belongs to, of a transactional producer.
    pub counts_for: ProducerIdentity,
    /// The last transaction that the partition was added to, and the last that its addition was requested for.
    pub added_to: u64,
    pub wanted_in: u64,
    /// Whether the queue may contain batches.
    pub listed: bool,
}

impl PartitionQueue {
    /// The state of a partition that nothing was sent to yet.
    pub fn new(waiting: Arc<Queue>, next_sequence: i32) -> Self {
        Self {
            waiting,
            again: Vec::new(),
            in_flight: 0,
            hold_until: None,
            sent_to: None,
            next_sequence,
            sent_as: ProducerIdentity::NONE,
            counts_for: ProducerIdentity::NONE,
            added_to: NONE_YET,
            wanted_in: NONE_YET,
            listed: false,
        }
    }

    /// Retry a batch after an error, not before the given time.
    pub fn send_again(&mut self, mut batch: Batch, error: ClientError, not_before: Instant) {
        batch.last_error = Some(error);
        self.hold_until = Some(not_before);
        let place = self.again.partition_point(|other| other.id < batch.id);
        self.again.insert(place, batch);
    }

    /// The end of the back-off, if it is in the future. A batch for a leader of a later epoch than the failed one is sent at
    /// once.
    pub fn held(&self, leader: Option<Leader>, now: Instant) -> Option<Instant> {
        let is_another = leader.is_some_and(|leader| self.sent_to.is_some_and(|sent_to| sent_to.epoch < leader.epoch));
        self.hold_until.filter(|hold| *hold > now && !is_another)
    }

    /// Remove the batch to send next, if `fits` accepts its size.
    pub fn take_next(&mut self, fits: impl FnOnce(usize) -> bool) -> Option<Batch> {
        let size = match self.again.first() {
            Some(batch) => batch.size(),
            None => self.waiting.front()?.size,
        };
        if !fits(size) {
            return None;
        }
        if self.again.is_empty() { self.waiting.pop() } else { Some(self.again.remove(0)) }
    }

    /// Remove the oldest batch, if it was opened at least `limit` ago.
    pub fn take_expired(&mut self, now: Instant, limit: Duration) -> Option<Batch> {
        let opened = match self.again.first() {
            Some(batch) => batch.opened,
            None if self.listed => self.waiting.front()?.opened,
            None => return None,
        };
        if opened + limit <= now { self.take_next(|_| true) } else { None }
    }

    /// Remove the oldest batch of the transactions up to a number, which fails; with `all` also one that was sent before.
    pub fn take_stopped(&mut self, through: u64, all: bool) -> Option<Batch> {
        if all && !self.again.is_empty() {
            return Some(self.again.remove(0));
        }
        let front = self.listed.then(|| self.waiting.front()).flatten()?;
        if front.mark.is_some_and(|mark| mark.number <= through) { self.waiting.pop() } else { None }
    }

    /// Whether a batch of another identity is in flight: a batch of this identity might arrive before the other is retried.
    pub fn has_other_identity_in_flight(&self, identity: ProducerIdentity) -> bool {
        self.in_flight > 0 && self.sent_as != identity
    }

    /// The broker rejected a batch for a gap before it: neither this batch nor those that follow it in the same identity are
    /// written. All of them get new sequence numbers.
    pub fn renumber(&mut self, batch: &mut Batch) {
        batch.sequence = None;
        let followers = self.again.iter_mut().filter(|other| other.id > batch.id && other.identity == batch.identity);
        followers.for_each(|other| other.sequence = None);
    }

    /// Use this identity for sequence numbers: they start at 0 if it differs from the last one.
    pub fn count_for(&mut self, identity: ProducerIdentity) {
        if self.counts_for != identity {
            (self.counts_for, self.next_sequence) = (identity, 0);
        }
    }

    /// Take sequence numbers for so many records; returns the first. After `i32::MAX` they continue at 0 (KIP-98).
    pub fn take_sequence(&mut self, records: u32) -> i32 {
        let first = self.next_sequence;
        self.next_sequence = ((i64::from(first) + i64::from(records)) & i64::from(i32::MAX)) as i32;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pybroker_record::LeaderEpoch;

    #[test]
    fn a_leader_of_a_later_epoch_is_sent_to_without_waiting() {
        let mut queue = PartitionQueue::new(Arc::new(Queue::new("t".into(), 0)), 0);
        let leader = |node, epoch| Some(Leader { node, epoch: LeaderEpoch(epoch) });
        let (now, hold) = (Instant::now(), Instant::now() + Duration::from_secs(1));
        (queue.sent_to, queue.hold_until) = (leader(1, 4), Some(hold));
        assert_eq!((Some(hold), Some(hold)), (queue.held(leader(1, 4), now), queue.held(None, now)));
        assert_eq!((None, None), (queue.held(leader(2, 5), now), queue.held(leader(1, 4), hold)));
    }

    #[test]
    fn sequence_numbers_go_on_from_a_place_and_start_again_at_the_largest() {
        let mut queue = PartitionQueue::new(Arc::new(Queue::new("t".into(), 0)), i32::MAX - 1);
        assert_eq!([i32::MAX - 1, 1, 4], [3, 3, 1].map(|records| queue.take_sequence(records)));
    }
}
