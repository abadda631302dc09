//! The topics that records are sent to: their metadata, and the choice of a record's partition.
//!
//! The sender updates them from metadata; callers read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use rustc_hash::FxHashMap;

use super::accumulator::Queue;
use super::batch::Batch;
use super::new_record::NewRecord;
use super::partitioner::{Choice, Partitioner, for_key};
use crate::clock::now_ms;
use crate::error::ClientError;
use crate::network::cluster::Topic;
use pybroker_wire::ErrorCode;

/// A topic that records can be sent to.
#[derive(Debug)]
pub struct Destination {
    /// The topic's name.
    pub name: Arc<str>,
    pub(crate) queues: ArcSwap<Vec<Arc<Queue>>>,
    partitioner: Partitioner,
    /// Partitions that have a leader.
    available: ArcSwap<Vec<i32>>,
    /// The number of records assigned round-robin.
    turn: AtomicUsize,
    /// The current partition of records without key or partition.
    sticky: AtomicUsize,
    /// Bytes sent to that partition since it was chosen.
    sticky_bytes: AtomicUsize,
}

/// A snapshot of a topic's partitions, to choose partitions for many records.
#[derive(Debug, Clone)]
pub struct Partitions {
    pub(crate) queues: Arc<Vec<Arc<Queue>>>,
}

impl Partitions {
    /// The partition of a key (Kafka's default partitioner).
    pub fn of_key(&self, key: &[u8]) -> usize {
        for_key(key, self.queues.len())
    }
}

/// The topics that callers requested, and their metadata.
#[derive(Debug, Default)]
pub struct Directory {
    pub known: FxHashMap<Arc<str>, Arc<Destination>>,
    /// Error codes of topics whose metadata has no partitions.
    pub refused: FxHashMap<String, ErrorCode>,
    /// Topics to add to the sender's next metadata request.
    pub requested: Vec<String>,
}

impl Destination {
    /// The number of partitions.
    pub fn partitions(&self) -> usize {
        self.queues.load().len()
    }

    /// The queue of a partition; -1 lets the partitioner choose.
    pub(crate) fn queue(&self, partition: i32, key: Option<&[u8]>) -> Result<Arc<Queue>, ClientError> {
        let queues = self.queues.load();
        let index = usize::try_from(partition).unwrap_or_else(|_| self.choose(key, queues.len()));
        queues.get(index).cloned().ok_or_else(|| self.unknown_partition(partition, queues.len()))
    }

    /// The queues of the topic's partitions.
    pub(crate) fn queues(&self) -> Arc<Vec<Arc<Queue>>> {
        self.queues.load_full()
    }

    /// A snapshot of the topic's partitions.
    pub fn snapshot(&self) -> Partitions {
        Partitions { queues: self.queues() }
    }

    /// The partitions that have a leader, by the last metadata.
    pub fn available(&self) -> Arc<Vec<i32>> {
        self.available.load_full()
    }

    /// The partition of a record without one, among so many: by the partitioner, or the sticky partition.
    #[inline]
    pub(crate) fn choose(&self, key: Option<&[u8]>, partitions: usize) -> usize {
        match self.partitioner.choose(key, partitions) {
            Choice::Partition(partition) => partition,
            Choice::Sticky => self.sticky.load(Ordering::Relaxed) % partitions.max(1),
            Choice::Turn => {
                let (turn, available) = (self.turn.fetch_add(1, Ordering::Relaxed), self.available.load());
                let chosen = available.get(turn % available.len().max(1)).map(|index| *index as usize);
                // The topic may have grown since the caller read its queues.
                chosen.filter(|index| *index < partitions).unwrap_or(turn % partitions.max(1))
            }
        }
    }

    pub(crate) fn unknown_partition(&self, partition: i32, partitions: usize) -> ClientError {
        ClientError::UnknownPartition { topic: self.name.to_string(), partition, partitions }
    }

    /// Count a record with a chosen partition.
    #[inline]
    pub(crate) fn count(&self, record: &NewRecord<'_>, batch_size: usize) {
        if self.partitioner.is_sticky(record.key) {
            self.count_bytes(record.value.map_or(0, <[u8]>::len), batch_size);
        }
    }

    /// Bytes until records without key switch to the next partition; `None` if each of them gets its own partition.
    pub(crate) fn capacity(&self, batch_size: usize) -> Option<usize> {
        let filled = self.sticky_bytes.load(Ordering::Relaxed);
        self.partitioner.is_sticky(None).then(|| batch_size.saturating_sub(filled))
    }

    /// Count bytes: after `batch.size` bytes, records without key switch to the next partition (KIP-794).
    pub(crate) fn count_bytes(&self, bytes: usize, batch_size: usize) {
        if self.sticky_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes >= batch_size {
            self.sticky_bytes.store(0, Ordering::Relaxed);
            self.sticky.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Directory {
    /// Request the metadata of a topic from the sender.
    pub fn query(&mut self, topic: &str) {
        if !self.requested.iter().any(|requested| requested == topic) {
            self.requested.push(topic.to_owned());
        }
    }

    /// Batches added to a queue after it was last listed, when the producer is closed.
    pub fn leftovers(&self) -> Vec<Batch> {
        let queues = self.queues();
        queues.iter().flat_map(|queue| std::iter::from_fn(|| queue.pop())).collect()
    }

    /// The queues of all topics.
    pub fn queues(&self) -> Vec<Arc<Queue>> {
        self.known.values().flat_map(|destination| destination.queues.load_full().to_vec()).collect()
    }

    /// Apply the metadata of one topic.
    pub fn update(&mut self, name: &str, topic: &Topic, partitioner: Partitioner) {
        if topic.leaders.is_empty() {
            self.refused.insert(name.to_owned(), topic.error_code);
            return;
        }
        self.refused.remove(name);
        let name: Arc<str> = name.into();
        let destination = self.known.entry(Arc::clone(&name)).or_insert_with(|| {
            let queues = ArcSwap::from_pointee(Vec::new());
            Arc::new(Destination {
                name: Arc::clone(&name),
                queues,
                partitioner,
                available: ArcSwap::default(),
                turn: AtomicUsize::new(now_ms() as usize),
                sticky: AtomicUsize::new(now_ms() as usize),
                sticky_bytes: AtomicUsize::new(0),
            })
        });
        let available = topic.leaders.iter().enumerate().filter(|(_, leader)| leader.is_some());
        destination.available.store(Arc::new(available.map(|(index, _)| index as i32).collect()));
        let known = destination.queues.load_full();
        if known.len() < topic.leaders.len() {
            let new =
                (known.len()..topic.leaders.len()).map(|index| Arc::new(Queue::new(Arc::clone(&name), index as i32)));
            destination.queues.store(Arc::new(known.iter().cloned().chain(new).collect()));
        }
    }
}
