//! What is counted of a topic, or of all topics together, for metrics: records and bytes in and out, and what failed.
//!
//! Each thread of the data plane has a line of its own, which it alone writes, so that an add is a load and a store. The lines
//! of a topic are made when something of it is first counted: an idle topic takes a pointer. Must not know who reads them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What one thread has counted; one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct TopicLine {
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    bytes_rejected: AtomicU64,
    records_in: AtomicU64,
    produces: AtomicU64,
    failed_produces: AtomicU64,
    fetches: AtomicU64,
    failed_fetches: AtomicU64,
}

/// Counts since the start, over all threads; Kafka's `BrokerTopicMetrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicCounts {
    /// Bytes of the batches that producers' appends added to logs.
    pub bytes_in: u64,
    /// Bytes of records in answers to consumers.
    pub bytes_out: u64,
    /// Bytes of batches that were refused as too large.
    pub bytes_rejected: u64,
    /// Records that producers' appends added to logs.
    pub records_in: u64,
    /// Partitions that Produce requests named, and that this broker knows.
    pub produces: u64,
    /// Those of them that failed for a reason that is no client's everyday one.
    pub failed_produces: u64,
    /// Partitions that were read for Fetch requests, once more where a fetch had waited.
    pub fetches: u64,
    /// Those of them that failed for a reason that is no client's everyday one.
    pub failed_fetches: u64,
}

/// An add by the only thread that writes.
fn add(count: &AtomicU64, by: u64) {
    count.store(count.load(Relaxed).wrapping_add(by), Relaxed);
}

impl TopicLine {
    /// A producer's batches were appended.
    pub fn appended(&self, bytes: usize, records: usize) {
        add(&self.produces, 1);
        add(&self.bytes_in, bytes as u64);
        add(&self.records_in, records as u64);
    }

    /// A partition of a Produce was not appended to; `unexpectedly` as [`TopicCounts::failed_produces`] says.
    pub fn not_appended(&self, unexpectedly: bool) {
        add(&self.produces, 1);
        if unexpectedly {
            add(&self.failed_produces, 1);
        }
    }

    /// Batches were too large.
    pub fn rejected(&self, bytes: usize) {
        add(&self.bytes_rejected, bytes as u64);
    }

    /// A partition was read for a Fetch.
    pub fn read(&self, failed_unexpectedly: bool) {
        add(&self.fetches, 1);
        if failed_unexpectedly {
            add(&self.failed_fetches, 1);
        }
    }

    /// Records are on their way to a consumer.
    pub fn sent(&self, bytes: usize) {
        add(&self.bytes_out, bytes as u64);
    }

    fn add_to(&self, counts: &mut TopicCounts) {
        counts.bytes_in += self.bytes_in.load(Relaxed);
        counts.bytes_out += self.bytes_out.load(Relaxed);
        counts.bytes_rejected += self.bytes_rejected.load(Relaxed);
        counts.records_in += self.records_in.load(Relaxed);
        counts.produces += self.produces.load(Relaxed);
        counts.failed_produces += self.failed_produces.load(Relaxed);
        counts.fetches += self.fetches.load(Relaxed);
        counts.failed_fetches += self.failed_fetches.load(Relaxed);
    }
}

impl TopicCounts {
    /// The sum of what threads have counted.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a TopicLine>) -> Self {
        let mut counts = Self::default();
        lines.into_iter().for_each(|line| line.add_to(&mut counts));
        counts
    }
}

/// The lines of so many threads, and of those that came later: as many again, and so on.
#[derive(Debug)]
struct Lines {
    own: Box<[TopicLine]>,
    more: OnceLock<Box<Lines>>,
}

impl Lines {
    fn new(threads: usize) -> Self {
        Self { own: (0..threads).map(|_| TopicLine::default()).collect(), more: OnceLock::new() }
    }
}

/// The lines of one topic; they outlive changes of the table.
#[derive(Debug, Default)]
pub struct TopicCounters {
    lines: OnceLock<Lines>,
}

impl TopicCounters {
    /// The line that thread number `thread` writes, and nobody else. `threads` are those that there were at the start; all
    /// callers name the same, which is not 0.
    pub fn of(&self, thread: usize, threads: usize) -> &TopicLine {
        let mut lines = self.lines.get_or_init(|| Lines::new(threads));
        let (mut at, mut made) = (thread, threads);
        while at >= lines.own.len() {
            at -= lines.own.len();
            lines = lines.more.get_or_init(|| Box::new(Lines::new(made)));
            made *= 2;
        }
        &lines.own[at]
    }

    /// What was counted; `None` where nothing was.
    pub fn counts(&self) -> Option<TopicCounts> {
        let first = self.lines.get()?;
        let chain = std::iter::successors(Some(first), |lines| lines.more.get().map(|more| &**more));
        Some(TopicCounts::of(chain.flat_map(|lines| lines.own.iter())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_sum_of_what_threads_have_counted() {
        let topic = TopicCounters::default();
        assert_eq!(topic.counts(), None);
        topic.of(0, 2).appended(100, 3);
        topic.of(1, 2).appended(50, 1);
        topic.of(1, 2).not_appended(true);
        topic.of(1, 2).not_appended(false);
        topic.of(1, 2).rejected(7);
        topic.of(0, 2).read(false);
        topic.of(0, 2).read(true);
        topic.of(0, 2).sent(11);
        let expected = TopicCounts {
            bytes_in: 150,
            bytes_out: 11,
            bytes_rejected: 7,
            records_in: 4,
            produces: 4,
            failed_produces: 1,
            fetches: 2,
            failed_fetches: 1,
        };
        assert_eq!(topic.counts(), Some(expected));
    }

    #[test]
    fn threads_that_come_later_have_lines_of_their_own() {
        let topic = TopicCounters::default();
        for thread in 0..64 {
            topic.of(thread, 3).sent(1 << (thread % 8));
        }
        assert_eq!(topic.counts().unwrap().bytes_out, 8 * 255);
        let addresses: std::collections::BTreeSet<_> =
            (0..64).map(|thread| std::ptr::from_ref(topic.of(thread, 3)).addr()).collect();
        assert_eq!(addresses.len(), 64);
    }

    #[test]
    fn a_line_is_one_cache_line() {
        assert_eq!((size_of::<TopicLine>(), align_of::<TopicLine>()), (64, 64));
    }
}
