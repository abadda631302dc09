//! The times of requests, by API, in the parts of Kafka's `RequestMetrics`.
//!
//! Owns the times recorded during a request ([`RequestTimes`]), and the histograms that they are added to: log-linear
//! buckets of microseconds, eight for each power of two (as an HDR histogram of one digit), so that histograms of several
//! threads and brokers can be summed. A part shorter than a microsecond is counted only by the number of requests: most
//! requests have no queue, no wait and no throttle, and cost nothing there. Must not know sockets, nor the content of a
//! request.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::scheduling::clock::Clock;
use pybroker_wire::ApiKey;

/// API keys run from 0; a larger key is no request of Kafka's protocol.
pub const API_KEYS: usize = 128;
/// The parts of a request's time, in the order of [`PhaseTimes`].
pub const PHASES: usize = 6;
/// Sub-buckets of a power of two.
const SUB_BUCKETS: usize = 8;
/// Powers of two of microseconds with buckets: longer times, from 134 s on, count in the last bucket.
const POWERS: usize = 27;
const BUCKETS: usize = (POWERS - 2) * SUB_BUCKETS;
/// Kinds of requests: one for each API, and one for Fetches of followers, which wait by design and would hide the times of
/// consumers.
pub const KINDS: usize = API_KEYS + 1;
/// The kind of Fetches of followers.
const FOLLOWER_FETCH: usize = API_KEYS;

/// The times of a request so far, in nanoseconds of the data plane's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestTimes {
    kind: usize,
    arrived: u64,
    /// The start of the current part.
    since: u64,
    queue: u64,
    local: u64,
    remote: u64,
    throttle: u64,
}

/// The index of the kind of an API's requests; all keys beyond Kafka's share the last one.
fn kind(api_key: ApiKey) -> usize {
    usize::try_from(api_key.0).map_or(0, |key| key.min(API_KEYS - 1))
}

impl RequestTimes {
    /// Times of a request whose last byte was read at `arrived`, and whose execution begins at `now`.
    pub fn begin(api_key: ApiKey, arrived: u64, now: u64) -> Self {
        let queue = now.saturating_sub(arrived);
        Self { kind: kind(api_key), arrived, since: now, queue, ..Self::default() }
    }

    /// Records that the request waits from `now` on: for data, for other clients or for the control plane.
    pub fn wait(&mut self, now: u64) {
        self.local += now.saturating_sub(self.since);
        self.since = now;
    }

    /// Records that the request's execution continues.
    pub fn resume(&mut self, now: u64) {
        self.remote += now.saturating_sub(self.since);
        self.since = now;
    }

    /// Records that the response is ready; the throttle time of its client is `throttle`.
    pub fn responded(&mut self, now: u64, throttle: u64) {
        self.wait(now);
        self.throttle = throttle;
    }

    /// As [`RequestTimes::responded`], for a request that the control plane executed.
    pub fn responded_above(&mut self, now: u64, steps: &ControlSteps) {
        let begun = match steps.begun.load(Relaxed) {
            0 => now,
            begun => begun.clamp(self.arrived.min(now), now),
        };
        let waits = steps.waits.load(Relaxed);
        let local_end = if waits >= begun { waits.min(now) } else { now };
        self.queue = begun.saturating_sub(self.arrived);
        (self.local, self.remote, self.since) = (local_end - begun, now - local_end, now);
        self.throttle = steps.throttle.load(Relaxed);
    }

    /// Records that the request is a follower's Fetch.
    pub fn is_of_follower(&mut self) {
        self.kind = FOLLOWER_FETCH;
    }

    /// The parts, after the last byte of the response was sent.
    fn sent(&self, now: u64) -> [u64; PHASES] {
        let (send, total) = (now.saturating_sub(self.since), now.saturating_sub(self.arrived));
        [self.queue, self.local, self.remote, self.throttle, send, total]
    }
}

/// The control plane's times of a connection's current request: it executes one request of a connection at a time.
#[derive(Debug)]
pub struct ControlSteps {
    clock: Arc<Clock>,
    begun: AtomicU64,
    waits: AtomicU64,
    throttle: AtomicU64,
}

impl ControlSteps {
    /// Returns the time stamps of a connection's first request.
    pub fn new(clock: &Arc<Clock>) -> Self {
        Self { clock: Arc::clone(clock), begun: 0.into(), waits: 0.into(), throttle: 0.into() }
    }

    /// Resets for the next request.
    pub fn reset(&self) {
        for step in [&self.begun, &self.waits, &self.throttle] {
            step.store(0, Relaxed);
        }
    }

    /// Records that the execution begins.
    pub fn begin(&self) {
        self.begun.store(self.clock.now_ns(), Relaxed);
    }

    /// Records that the request waits for other clients.
    pub fn wait(&self) {
        self.waits.store(self.clock.now_ns(), Relaxed);
    }

    /// Records the throttle time of its client.
    pub fn throttle(&self, nanoseconds: u64) {
        self.throttle.store(nanoseconds, Relaxed);
    }
}

/// The bucket of a duration in microseconds.
fn bucket(micros: u64) -> usize {
    if micros < SUB_BUCKETS as u64 {
        return micros as usize;
    }
    let power = 63 - micros.leading_zeros() as usize;
    let within = (micros >> (power - 3)) as usize & (SUB_BUCKETS - 1);
    ((power - 2) * SUB_BUCKETS + within).min(BUCKETS - 1)
}

/// The end of a bucket in microseconds, exclusive.
fn end_of(bucket: usize) -> u64 {
    let (power, within) = (bucket / SUB_BUCKETS + 2, bucket % SUB_BUCKETS);
    if power == 2 { within as u64 + 1 } else { ((SUB_BUCKETS + within) as u64 + 1) << (power - 3) }
}

/// One kind's histograms of one thread.
#[derive(Debug)]
#[repr(align(128))]
struct KindTimes {
    requests: AtomicU64,
    sums: [AtomicU64; PHASES],
    buckets: [[AtomicU64; BUCKETS]; PHASES],
}

impl KindTimes {
    fn new() -> Self {
        let buckets = std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0)));
        Self { requests: AtomicU64::new(0), sums: std::array::from_fn(|_| AtomicU64::new(0)), buckets }
    }

    fn record(&self, times: [u64; PHASES], add: impl Fn(&AtomicU64, u64)) {
        add(&self.requests, 1);
        for (phase, nanoseconds) in times.into_iter().enumerate() {
            if nanoseconds == 0 {
                continue;
            }
            add(&self.sums[phase], nanoseconds);
            let micros = nanoseconds / 1000;
            if micros > 0 {
                add(&self.buckets[phase][bucket(micros)], 1);
            }
        }
    }
}

/// One thread's histograms; those of a kind are allocated when its first request completes.
#[derive(Debug)]
pub struct ThreadTimes([OnceLock<Box<KindTimes>>; KINDS]);

impl Default for ThreadTimes {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OnceLock::new()))
    }
}

impl ThreadTimes {
    fn of(&self, times: &RequestTimes) -> &KindTimes {
        self.0[times.kind].get_or_init(|| Box::new(KindTimes::new()))
    }

    /// Records a completed request; only one thread may call this.
    pub fn record(&self, times: &RequestTimes, now: u64) {
        let add = |count: &AtomicU64, by: u64| count.store(count.load(Relaxed).wrapping_add(by), Relaxed);
        self.of(times).record(times.sent(now), add);
    }

    /// Records a completed request; several threads may call this.
    pub fn record_shared(&self, times: &RequestTimes, now: u64) {
        let add = |count: &AtomicU64, by: u64| {
            count.fetch_add(by, Relaxed);
        };
        self.of(times).record(times.sent(now), add);
    }
}

/// The durations of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseTimes {
    /// Their sum, in nanoseconds.
    pub sum_ns: u64,
    /// The number of durations below each bound of [`bounds_us`], ascending, and at the end all.
    pub cumulative: Vec<u64>,
}

/// The durations of completed requests of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimesOfKind {
    pub api_key: i16,
    /// For Fetch: whether these are fetches of followers.
    pub of_followers: bool,
    pub requests: u64,
    /// Queue, local, remote, throttle, send, total.
    pub phases: Vec<PhaseTimes>,
}

/// The bounds of a snapshot, in microseconds: each power of two from 16 µs to 67 s.
pub fn bounds_us() -> impl Iterator<Item = u64> {
    (4..POWERS).map(|power| 1 << power)
}

/// The sum of the threads' histograms, for each kind that has had requests.
pub fn snapshot<'a>(threads: impl Iterator<Item = &'a ThreadTimes> + Clone) -> Vec<TimesOfKind> {
    let of_kind = |kind: usize| {
        let found: Vec<_> = threads.clone().filter_map(|thread| thread.0[kind].get().map(Box::as_ref)).collect();
        let requests = found.iter().map(|times| times.requests.load(Relaxed)).sum();
        let phase = |phase: usize| phase_times(&found, phase, requests);
        let of_followers = kind == FOLLOWER_FETCH;
        let api_key = if of_followers { ApiKey::FETCH.0 } else { kind as i16 };
        TimesOfKind { api_key, of_followers, requests, phases: (0..PHASES).map(phase).collect() }
    };
    (0..KINDS).map(of_kind).filter(|times| times.requests > 0).collect()
}

fn phase_times(found: &[&KindTimes], phase: usize, requests: u64) -> PhaseTimes {
    let count = |bucket: usize| found.iter().map(|times| times.buckets[phase][bucket].load(Relaxed)).sum::<u64>();
    let counts: Vec<u64> = (0..BUCKETS).map(count).collect();
    // A request recorded meanwhile may be counted only in its bucket.
    let requests = requests.max(counts.iter().sum());
    let at_once = requests - counts.iter().sum::<u64>();
    let mut buckets = counts.iter().enumerate().peekable();
    let mut below = at_once;
    let mut cumulative = Vec::new();
    for bound in bounds_us() {
        while let Some((_, count)) = buckets.next_if(|(bucket, _)| end_of(*bucket) <= bound) {
            below += count;
        }
        cumulative.push(below);
    }
    cumulative.push(requests);
    PhaseTimes { sum_ns: found.iter().map(|times| times.sums[phase].load(Relaxed)).sum(), cumulative }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn phases(times: &TimesOfKind) -> Vec<u64> {
        times.phases.iter().map(|phase| phase.sum_ns / MS).collect()
    }

    #[test]
    fn the_parts_of_a_request_make_its_total() {
        let thread = ThreadTimes::default();
        let mut times = RequestTimes::begin(ApiKey::FETCH, 10 * MS, 13 * MS);
        times.wait(15 * MS);
        times.resume(45 * MS);
        times.responded(46 * MS, 7 * MS);
        thread.record(&times, 50 * MS);
        times.is_of_follower();
        thread.record_shared(&times, 60 * MS);
        let found = snapshot([&thread].into_iter());
        assert_eq!(found.iter().map(|times| times.of_followers).collect::<Vec<_>>(), [false, true]);
        assert_eq!(phases(&found[0]), [3, 3, 30, 7, 4, 40]);
        assert_eq!(phases(&found[1]), [3, 3, 30, 7, 14, 50]);
    }

    #[test]
    fn the_control_plane_says_when_it_began_and_when_it_waited() {
        let steps = ControlSteps::new(&Arc::new(Clock::start()));
        let responded = |begun, waits| {
            steps.begun.store(begun, Relaxed);
            steps.waits.store(waits, Relaxed);
            let mut times = RequestTimes::begin(ApiKey(3), 10, 10);
            times.responded_above(100, &steps);
            (times.queue, times.local, times.remote)
        };
        assert_eq!(responded(30, 0), (20, 70, 0));
        assert_eq!(responded(30, 40), (20, 10, 60));
        assert_eq!(responded(0, 0), (90, 0, 0), "nobody has looked at it");
    }

    #[test]
    fn several_threads_are_added_up_to_cumulative_counts() {
        let threads = [ThreadTimes::default(), ThreadTimes::default()];
        for (thread, micros) in [(0, 0), (0, 15), (1, 16), (1, 1000), (1, 200_000_000)] {
            let times = RequestTimes::begin(ApiKey::PRODUCE, 0, 0);
            threads[thread].record(&times, micros * 1000);
        }
        let found = snapshot(threads.iter());
        let total = &found[0].phases[PHASES - 1];
        assert_eq!(found[0].requests, 5);
        assert_eq!(bounds_us().take(3).collect::<Vec<_>>(), [16, 32, 64]);
        assert_eq!((total.cumulative[0], total.cumulative[1]), (2, 3));
        assert_eq!(total.cumulative[6], 4, "1000 is below 1024");
        assert_eq!(total.cumulative.iter().rev().take(2).collect::<Vec<_>>(), [&5, &4]);
        assert_eq!(found[0].phases[0].cumulative.first(), Some(&5), "no request had a queue");
    }

    proptest! {
        #[test]
        fn a_duration_lies_in_its_bucket(micros in 0_u64..1 << POWERS) {
            let bucket = bucket(micros);
            prop_assert!(micros < end_of(bucket));
            prop_assert!(bucket == 0 || micros >= end_of(bucket - 1));
        }
    }
}
