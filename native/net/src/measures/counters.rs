//! The data plane's counters for metrics: requests, bytes, requests in work and errors, by API and by processor; appended
//! and fetched records by topic, waiting requests, and request times.
//!
//! Each processor has counters that only its thread writes: an add is a load and a store, without a lock prefix and without
//! a cache line that another thread writes. Responses that the control plane's threads send themselves
//! ([`crate::scheduling::cross_thread`]) have one more set, with atomic adds. A snapshot sums them. Must not know the
//! content of requests.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

use crate::connection::connection_number::MOST_PROCESSORS;
pub use crate::measures::times::API_KEYS;
use crate::measures::times::{RequestTimes, ThreadTimes, TimesOfKind};
use pybroker_replica::{Topic, TopicCounts, TopicLine};
use pybroker_wire::{ApiKey, ErrorCode};

/// APIs whose responses the data plane writes, so that it knows their errors: Produce (0) and Fetch (1).
const HOT_APIS: usize = 2;
/// Error codes from -1 (UNKNOWN_SERVER_ERROR) on.
const ERROR_CODES: usize = 160;

/// Counters of one API, in one half of a cache line.
#[derive(Debug, Default)]
#[repr(align(32))]
struct Api {
    begun: AtomicU64,
    /// Requests that have completed, with or without a response, or whose connection ended. Over all sets at most `begun`.
    ended: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

/// Waits of the requests of one hot-path API.
#[derive(Debug, Default)]
struct Waits {
    begun: AtomicU64,
    /// Over all sets at most `begun`.
    ended: AtomicU64,
    expired: AtomicU64,
}

/// One thread's counters. Two cache lines apart from the next thread's, as processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub struct ThreadCounters {
    apis: [Api; API_KEYS],
    errors: [[AtomicU64; ERROR_CODES]; HOT_APIS],
    waits: [Waits; HOT_APIS],
    /// The sum over all topics.
    topics: TopicLine,
    /// Bytes of records in responses to followers.
    replicated: AtomicU64,
    times: ThreadTimes,
    /// The number of the thread that writes these, and the number of threads at the start.
    thread: (usize, usize),
    /// The system's id of that thread; 0 without a thread of its own.
    system_thread: AtomicI32,
}

/// The counters of one topic on one thread.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    all: &'a TopicLine,
    topic: &'a TopicLine,
}

impl Counted<'_> {
    /// See [`TopicLine::appended`].
    pub fn appended(self, bytes: usize, records: usize) {
        self.all.appended(bytes, records);
        self.topic.appended(bytes, records);
    }

    /// See [`TopicLine::not_appended`].
    pub fn not_appended(self, unexpectedly: bool) {
        self.all.not_appended(unexpectedly);
        self.topic.not_appended(unexpectedly);
    }

    /// See [`TopicLine::rejected`].
    pub fn rejected(self, bytes: usize) {
        self.all.rejected(bytes);
        self.topic.rejected(bytes);
    }

    /// See [`TopicLine::read`].
    pub fn read(self, failed_unexpectedly: bool) {
        self.all.read(failed_unexpectedly);
        self.topic.read(failed_unexpectedly);
    }

    /// See [`TopicLine::sent`].
    pub fn sent(self, bytes: usize) {
        self.all.sent(bytes);
        self.topic.sent(bytes);
    }
}

/// Adds on the only thread that writes the counter.
fn add(count: &AtomicU64, by: u64) {
    count.store(count.load(Relaxed).wrapping_add(by), Relaxed);
}

/// The index of an API's counters; all keys beyond Kafka's share the last one.
fn index(api_key: ApiKey) -> usize {
    usize::try_from(api_key.0).map_or(0, |key| key.min(API_KEYS - 1))
}

impl ThreadCounters {
    fn new(thread: usize, threads: usize) -> Self {
        Self {
            waits: Default::default(),
            topics: TopicLine::default(),
            replicated: AtomicU64::new(0),
            times: ThreadTimes::default(),
            thread: (thread, threads),
            system_thread: AtomicI32::new(0),
            apis: std::array::from_fn(|_| Api::default()),
            errors: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
        }
    }

    /// Counts a new request of `bytes`, size prefix included.
    pub fn begun(&self, api_key: ApiKey, bytes: usize) {
        let api = &self.apis[index(api_key)];
        add(&api.begun, 1);
        add(&api.bytes_in, bytes as u64);
    }

    /// Counts a completed request, with a response of `bytes`, or 0 for none.
    pub fn ended(&self, api_key: ApiKey, bytes: u64) {
        let api = &self.apis[index(api_key)];
        add(&api.ended, 1);
        add(&api.bytes_out, bytes);
    }

    /// Counts an error code in a response of the hot path, for the whole request or for one partition.
    pub fn error(&self, api_key: ApiKey, code: ErrorCode) {
        let of_api = self.errors.get(index(api_key));
        if let Some(count) = of_api.and_then(|of_api| of_api.get(usize::try_from(code.0 + 1).ok()?)) {
            add(count, 1);
        }
    }

    /// The counters of a topic on this thread.
    pub fn of_topic<'a>(&'a self, topic: &'a Topic) -> Counted<'a> {
        let (thread, threads) = self.thread;
        Counted { all: &self.topics, topic: topic.counters.of(thread, threads) }
    }

    /// Counts bytes of records sent to a follower.
    pub fn replicated(&self, bytes: usize) {
        add(&self.replicated, bytes as u64);
    }

    /// Counts a hot-path request that begins to wait.
    pub fn wait_begun(&self, api_key: ApiKey) {
        add(&self.waits[index(api_key)].begun, 1);
    }

    /// Counts the end of a hot-path request's wait, with or without a response.
    pub fn wait_ended(&self, api_key: ApiKey) {
        add(&self.waits[index(api_key)].ended, 1);
    }

    /// Counts a wait that has timed out.
    pub fn wait_expired(&self, api_key: ApiKey) {
        add(&self.waits[index(api_key)].expired, 1);
    }

    /// Records the times of a request whose response was sent, or that has none.
    pub fn took(&self, times: &RequestTimes, now_ns: u64) {
        self.times.record(times, now_ns);
    }

    /// Sets the system's id of the thread that writes these; 0 if the thread also writes other counters.
    pub fn runs_on(&self, system_thread: i32) {
        self.system_thread.store(system_thread, Relaxed);
    }
}

/// The counters of all threads.
#[derive(Debug)]
pub struct Counters {
    /// By number of each processor that has ever run.
    of_processor: Box<[OnceLock<Box<ThreadCounters>>]>,
    /// The number of processors at the start.
    first: usize,
    of_control_plane: ThreadCounters,
}

/// The counts of one API since the start, over all threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiCounters {
    pub api_key: i16,
    /// Requests begun.
    pub requests: u64,
    /// Requests begun and not completed.
    pub in_work: u64,
    /// Bytes of the requests, size prefixes included.
    pub bytes_in: u64,
    /// Bytes of the responses, size prefixes included, counted when a response is created.
    pub bytes_out: u64,
    /// Error codes in responses of the hot path, and their counts; a request has one code for each partition.
    pub errors: Vec<(i16, u64)>,
}

/// The counts of one processor since the start, over all APIs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorCounters {
    /// Requests begun.
    pub requests: u64,
    /// Bytes of the requests.
    pub bytes_in: u64,
    /// Bytes of the responses that this thread created.
    pub bytes_out: u64,
}

/// Further counts for metrics, over all threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkCounters {
    /// The counts of records, over all topics.
    pub topics: TopicCounts,
    /// Bytes of records in responses to followers.
    pub replication_bytes_out: u64,
    /// Requests of Produce and of Fetch that wait.
    pub waiting: [u64; HOT_APIS],
    /// Waits that have timed out since the start.
    pub expired: [u64; HOT_APIS],
    /// The times of completed requests.
    pub times: Vec<TimesOfKind>,
    /// The system's ids of the processors' threads.
    pub system_threads: Vec<i32>,
}

/// All counts, at about the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountersSnapshot {
    /// The APIs that have had requests, by key.
    pub apis: Vec<ApiCounters>,
    /// The processors, by number.
    pub processors: Vec<ProcessorCounters>,
}

impl Counters {
    /// Counters at zero.
    pub fn new(processors: usize) -> Self {
        let of_processor = (0..MOST_PROCESSORS).map(|_| OnceLock::new()).collect();
        // The control plane's threads count nothing by topic.
        let counters = Self { of_processor, first: processors, of_control_plane: ThreadCounters::new(0, 0) };
        for index in 0..processors {
            counters.of(index);
        }
        counters
    }

    /// The counters that only processor number `index` writes.
    pub fn of(&self, index: usize) -> &ThreadCounters {
        self.of_processor[index].get_or_init(|| Box::new(ThreadCounters::new(index, self.first)))
    }

    fn of_processors(&self) -> impl Iterator<Item = &ThreadCounters> + Clone {
        self.of_processor.iter().filter_map(|slot| slot.get().map(|counters| &**counters))
    }

    /// Counts a response sent by one of the control plane's threads.
    pub fn ended_by_control_plane(&self, api_key: ApiKey, bytes: u64) {
        let api = &self.of_control_plane.apis[index(api_key)];
        api.ended.fetch_add(1, Relaxed);
        api.bytes_out.fetch_add(bytes, Relaxed);
    }

    /// Records the times of a request whose response a thread of the control plane has sent.
    pub fn took_by_control_plane(&self, times: &RequestTimes, now_ns: u64) {
        self.of_control_plane.times.record_shared(times, now_ns);
    }

    /// A snapshot of the further counts.
    pub fn work(&self) -> WorkCounters {
        let threads = || self.of_processors();
        let waits = |api: usize, count: fn(&Waits) -> &AtomicU64| -> u64 {
            threads().map(|thread| count(&thread.waits[api]).load(Relaxed)).sum()
        };
        let waiting = |api| {
            // As for requests in work, `ended` is read first.
            let ended = waits(api, |waits| &waits.ended);
            waits(api, |waits| &waits.begun).saturating_sub(ended)
        };
        WorkCounters {
            topics: TopicCounts::of(threads().map(|thread| &thread.topics)),
            replication_bytes_out: threads().map(|thread| thread.replicated.load(Relaxed)).sum(),
            waiting: std::array::from_fn(waiting),
            expired: std::array::from_fn(|api| waits(api, |waits| &waits.expired)),
            times: crate::measures::times::snapshot(
                threads().chain([&self.of_control_plane]).map(|thread| &thread.times),
            ),
            system_threads: threads().map(|thread| thread.system_thread.load(Relaxed)).collect(),
        }
    }

    /// A snapshot of the counts of APIs and processors.
    pub fn snapshot(&self) -> CountersSnapshot {
        let apis = (0..API_KEYS).map(|key| self.api(key)).filter(|api| api.requests > 0).collect();
        let total = |thread: &ThreadCounters, count: fn(&Api) -> &AtomicU64| {
            thread.apis.iter().map(|api| count(api).load(Relaxed)).sum()
        };
        let processor = |thread: &ThreadCounters| ProcessorCounters {
            requests: total(thread, |api| &api.begun),
            bytes_in: total(thread, |api| &api.bytes_in),
            bytes_out: total(thread, |api| &api.bytes_out),
        };
        CountersSnapshot { apis, processors: self.of_processors().map(processor).collect() }
    }

    fn api(&self, key: usize) -> ApiCounters {
        let threads = || self.of_processors().chain([&self.of_control_plane]);
        let total =
            |count: fn(&Api) -> &AtomicU64| threads().map(|thread| count(&thread.apis[key]).load(Relaxed)).sum();
        // `ended` is read before `begun`: a response in between never makes the difference negative.
        let ended: u64 = total(|api| &api.ended);
        let requests: u64 = total(|api| &api.begun);
        let error = |at: usize| threads().filter_map(|thread| Some(thread.errors.get(key)?[at].load(Relaxed))).sum();
        let errors = (0..ERROR_CODES).map(|at| (at as i16 - 1, error(at))).filter(|(_, count)| *count > 0).collect();
        ApiCounters {
            api_key: key as i16,
            requests,
            in_work: requests.saturating_sub(ended),
            bytes_in: total(|api| &api.bytes_in),
            bytes_out: total(|api| &api.bytes_out),
            errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_sums_what_the_threads_have_counted() {
        let counters = Counters::new(2);
        counters.of(0).begun(ApiKey(0), 100);
        counters.of(1).begun(ApiKey(0), 20);
        counters.of(1).begun(ApiKey(19), 7);
        counters.of(0).ended(ApiKey(0), 50);
        counters.of(0).error(ApiKey(0), ErrorCode(3));
        counters.of(1).error(ApiKey(0), ErrorCode(3));
        counters.of(1).error(ApiKey(0), ErrorCode(-1));
        counters.ended_by_control_plane(ApiKey(19), 9);
        let produce = ApiCounters {
            api_key: 0,
            requests: 2,
            in_work: 1,
            bytes_in: 120,
            bytes_out: 50,
            errors: vec![(-1, 1), (3, 2)],
        };
        let create =
            ApiCounters { api_key: 19, requests: 1, in_work: 0, bytes_in: 7, bytes_out: 9, errors: Vec::new() };
        let first = ProcessorCounters { requests: 1, bytes_in: 100, bytes_out: 50 };
        let second = ProcessorCounters { requests: 2, bytes_in: 27, bytes_out: 0 };
        let expected = CountersSnapshot { apis: vec![produce, create], processors: vec![first, second] };
        assert_eq!(counters.snapshot(), expected);
    }

    #[test]
    fn what_waits_is_what_has_begun_to_and_has_not_ended() {
        let counters = Counters::new(2);
        counters.of(0).wait_begun(ApiKey::FETCH);
        counters.of(0).wait_begun(ApiKey::FETCH);
        counters.of(1).wait_begun(ApiKey::PRODUCE);
        counters.of(1).wait_ended(ApiKey::FETCH);
        counters.of(0).wait_expired(ApiKey::PRODUCE);
        counters.of(1).replicated(9);
        let work = counters.work();
        assert_eq!((work.waiting, work.expired, work.replication_bytes_out), ([1, 1], [1, 0], 9));
    }

    #[test]
    fn threads_share_no_cache_line() {
        let counters = Counters::new(2);
        let offsets = [0, 1, MOST_PROCESSORS - 1].map(|index| std::ptr::from_ref(counters.of(index)).addr() % 128);
        assert_eq!((offsets, size_of::<ThreadCounters>() % 128), ([0; 3], 0));
    }

    #[test]
    fn a_processor_that_comes_later_counts_with_the_others() {
        let counters = Counters::new(1);
        counters.of(0).begun(ApiKey(0), 100);
        counters.of(1).begun(ApiKey(0), 20);
        let snapshot = counters.snapshot();
        assert_eq!((snapshot.apis[0].bytes_in, snapshot.processors.len()), (120, 2));
    }
}
