//! The metrics counters of one topic, or of all topics: records and bytes in and out, and failures.
//!
//! Each thread of the data plane writes only its own cache line, so that an add is a load and a store. The lines of a
//! topic are allocated at its first count: an idle topic needs one pointer. Must not know the readers of the
//! counters.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of one thread, in one cache line.
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

/// Counts since the start of the broker, over all threads; Kafka's `BrokerTopicMetrics`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicCounts {
    /// Bytes of batches appended by producers.
    pub bytes_in: u64,
    /// Bytes of records in responses to consumers.
    pub bytes_out: u64,
    /// Bytes of batches rejected as too large.
    pub bytes_rejected: u64,
    /// Records appended by producers.
    pub records_in: u64,
    /// Known partitions in Produce requests.
    pub produces: u64,
    /// The `produces` that failed with an unexpected error, not with a usual client error.
    pub failed_produces: u64,
    /// Partition reads of Fetch requests. A delayed fetch is counted again.
    pub fetches: u64,
    /// The `fetches` that failed with an unexpected error, not with a usual client error.
    pub failed_fetches: u64,
}

/// Adds to a counter that only the current thread writes.
fn add(count: &AtomicU64, by: u64) {
    count.store(count.load(Relaxed).wrapping_add(by), Relaxed);
}

impl TopicLine {
    /// Counts an append of a producer's batches.
    pub fn appended(&self, bytes: usize, records: usize) {
        add(&self.produces, 1);
        add(&self.bytes_in, bytes as u64);
        add(&self.records_in, records as u64);
    }

    /// Counts a failed append to a partition; `unexpectedly` as in [`TopicCounts::failed_produces`].
    pub fn not_appended(&self, unexpectedly: bool) {
        add(&self.produces, 1);
        if unexpectedly {
            add(&self.failed_produces, 1);
        }
    }

    /// Counts batches that were rejected as too large.
    pub fn rejected(&self, bytes: usize) {
        add(&self.bytes_rejected, bytes as u64);
    }

    /// Counts a partition read of a Fetch.
    pub fn read(&self, failed_unexpectedly: bool) {
        add(&self.fetches, 1);
        if failed_unexpectedly {
            add(&self.failed_fetches, 1);
        }
    }

    /// Counts records that are sent to a consumer.
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
    /// Returns the sum of the threads' counters.
    pub fn of<'a>(lines: impl IntoIterator<Item = &'a TopicLine>) -> Self {
        let mut counts = Self::default();
        lines.into_iter().for_each(|line| line.add_to(&mut counts));
        counts
    }
}

/// The lines of the initial threads, and a linked list with lines for later threads, of the same length each.
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

/// The counters of one topic. They are kept when the topic table is replaced.
#[derive(Debug, Default)]
pub struct TopicCounters {
    lines: OnceLock<Lines>,
}

impl TopicCounters {
    /// Returns the line of thread number `thread`, which only that thread writes. `threads` is the initial number of
    /// threads, not 0; all callers must pass the same value.
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

    /// Returns the counts; `None` if nothing was counted.
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
