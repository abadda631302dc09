//! The replication throttle (KIP-73): the rate over a window of samples, computed like Kafka's `SimpleRate`.
//!
//! Only replicas that are not in sync are delayed, so that a throttle never removes a replica from the ISR. The bytes
//! of in-sync replicas count too. Must not read a clock: time is an argument, in milliseconds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// The value for no limit, as in `leader.replication.throttled.rate`.
const UNLIMITED: i64 = i64::MAX;

/// A limit and its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleLimit {
    /// `i64::MAX` for none.
    pub bytes_per_second: i64,
    /// `replication.quota.window.num`.
    pub samples: usize,
    /// `replication.quota.window.size.seconds`, in milliseconds.
    pub sample_ms: i64,
}

impl ThrottleLimit {
    /// No limit.
    pub const NONE: Self = Self { bytes_per_second: UNLIMITED, samples: 1, sample_ms: 1 };
}

/// The measured rate and its limit. Shared by threads.
#[derive(Debug)]
pub struct ReplicationThrottle {
    /// Whether there is a limit. Read without the lock.
    is_limited: AtomicBool,
    taken: Mutex<Taken>,
}

#[derive(Debug)]
struct Taken {
    limit: ThrottleLimit,
    /// Oldest first. None is older than the window.
    samples: VecDeque<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    began_ms: i64,
    /// Time of the last count. The sample expires a window after it, as in Kafka's `SampledStat`.
    last_ms: i64,
    bytes: i64,
}

/// The sides on which a partition's replica is throttled, from the topic's settings.
#[derive(Debug, Default)]
pub struct ThrottledSides {
    leader: AtomicBool,
    follower: AtomicBool,
}

impl ReplicationThrottle {
    /// Creates a throttle without samples.
    pub fn new(limit: ThrottleLimit) -> Self {
        let is_limited = AtomicBool::new(limit.bytes_per_second != UNLIMITED);
        Self { is_limited, taken: Mutex::new(Taken { limit, samples: VecDeque::new() }) }
    }

    /// Changes the limit and keeps the samples.
    pub fn set_limit(&self, limit: ThrottleLimit) {
        let mut taken = self.taken.lock();
        taken.limit = limit;
        let is_limited = limit.bytes_per_second != UNLIMITED;
        if !is_limited {
            taken.samples.clear();
        }
        self.is_limited.store(is_limited, Ordering::Release);
    }

    /// Counts `bytes`.
    pub fn record(&self, bytes: usize, now_ms: i64) {
        if bytes == 0 || !self.is_limited.load(Ordering::Acquire) {
            return;
        }
        let mut taken = self.taken.lock();
        taken.forget_old(now_ms);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let sample_ms = taken.limit.sample_ms;
        match taken.samples.back_mut() {
            Some(last) if now_ms - last.began_ms < sample_ms => {
                (last.bytes, last.last_ms) = (last.bytes.saturating_add(bytes), now_ms);
            }
            _ => taken.samples.push_back(Sample { began_ms: now_ms, last_ms: now_ms, bytes }),
        }
    }

    /// Returns the milliseconds until the rate can be at its limit again; 0 if the limit is not exceeded.
    pub fn wait_ms(&self, now_ms: i64) -> i64 {
        if !self.is_limited.load(Ordering::Acquire) {
            return 0;
        }
        let mut taken = self.taken.lock();
        taken.forget_old(now_ms);
        taken.wait_ms(now_ms)
    }

    /// Returns whether the limit is exceeded.
    pub fn is_exceeded(&self, now_ms: i64) -> bool {
        self.wait_ms(now_ms) > 0
    }
}

impl Taken {
    fn window_ms(&self) -> i64 {
        self.limit.sample_ms.saturating_mul(i64::try_from(self.limit.samples).unwrap_or(i64::MAX))
    }

    fn forget_old(&mut self, now_ms: i64) {
        let window_ms = self.window_ms();
        while self.samples.front().is_some_and(|oldest| now_ms - oldest.last_ms >= window_ms) {
            self.samples.pop_front();
        }
    }

    fn wait_ms(&self, now_ms: i64) -> i64 {
        let Some(oldest) = self.samples.front() else { return 0 };
        let bytes: i128 = self.samples.iter().map(|sample| i128::from(sample.bytes)).sum();
        let since_ms = now_ms - oldest.began_ms;
        let elapsed_ms = since_ms.max(self.limit.sample_ms);
        let limit = i128::from(self.limit.bytes_per_second);
        if bytes * 1000 <= limit * i128::from(elapsed_ms) {
            return 0;
        }
        let forgotten_in = self.window_ms() - (now_ms - oldest.last_ms);
        // Without further bytes the rate sinks. It reaches the limit when the elapsed time equals the bytes divided
        // by the limit.
        let at_limit = (bytes * 1000 + limit - 1).checked_div(limit);
        let reached_in = at_limit.map_or(i128::MAX, |at_limit| at_limit - i128::from(since_ms));
        i64::try_from(reached_in).unwrap_or(i64::MAX).min(forgotten_in).max(1)
    }
}

impl ThrottledSides {
    /// Sets the sides from the topic's settings.
    pub fn set(&self, leader: bool, follower: bool) {
        self.leader.store(leader, Ordering::Release);
        self.follower.store(follower, Ordering::Release);
    }

    /// Returns whether the leader side is throttled (`leader.replication.throttled.replicas`).
    pub fn leader(&self) -> bool {
        self.leader.load(Ordering::Acquire)
    }

    /// Returns whether the follower side is throttled (`follower.replication.throttled.replicas`).
    pub fn follower(&self) -> bool {
        self.follower.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ReplicationThrottle, ThrottleLimit};

    fn throttle(bytes_per_second: i64) -> ReplicationThrottle {
        ReplicationThrottle::new(ThrottleLimit { bytes_per_second, samples: 11, sample_ms: 1000 })
    }

    #[test]
    fn a_rate_is_seen_over_the_time_since_the_oldest_sample_and_a_sample_at_least() {
        let throttle = throttle(100);
        throttle.record(100, 5_000);
        assert_eq!(throttle.wait_ms(5_000), 0, "100 bytes in a sample of a second");
        throttle.record(200, 5_500);
        assert_eq!(throttle.wait_ms(5_500), 2_500, "300 bytes are 3 s at 100 a second");
        assert_eq!(throttle.wait_ms(7_999), 1);
        assert_eq!(throttle.wait_ms(8_000), 0);
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let throttle = throttle(1);
        throttle.record(1_000, 0);
        assert_eq!(throttle.wait_ms(0), 11_000);
        assert!(throttle.is_exceeded(10_999));
        assert!(!throttle.is_exceeded(11_000));
    }

    #[test]
    fn a_limit_of_nothing_lets_one_answer_through_in_a_window() {
        let throttle = throttle(0);
        assert!(!throttle.is_exceeded(0));
        throttle.record(1, 0);
        assert!(throttle.is_exceeded(10_999));
        assert!(!throttle.is_exceeded(11_000));
    }

    #[test]
    fn without_a_limit_nothing_is_counted() {
        let throttle = throttle(i64::MAX);
        throttle.record(usize::MAX, 0);
        assert!(!throttle.is_exceeded(0));
        throttle.set_limit(ThrottleLimit { bytes_per_second: 1, samples: 11, sample_ms: 1000 });
        assert!(!throttle.is_exceeded(0));
        throttle.record(2_000, 0);
        assert!(throttle.is_exceeded(0));
        throttle.set_limit(ThrottleLimit::NONE);
        assert!(!throttle.is_exceeded(0));
    }

    const KAFKAS: &str = "682 213 false, 153 1734 true, 1057 383 true, 361 2698 true, 395 1213 true, 505 769 true, \
         339 1436 true, 10497 170 false, 127 860 false, 800 1707 true, 581 1262 true, 1191 1194 true, \
         631 778 true, 383 1474 true, 378 150 true, 13548 1053 true, 206 1192 true, 49 897 true, \
         424 1005 true, 611 73 true, 438 997 true, 286 84 true, 229 688 true, 10007 768 false, \
         796 2040 false, 838 1767 true, 186 631 true, 1046 1770 true, 748 2661 true, 389 2200 true, \
         681 1002 true, 3111 2420 true, 430 1309 true, 350 1578 true, 420 2525 true, 467 112 true, \
         853 1213 true, 1061 2001 true, 13 2504 true, 13155 1841 true";

    #[test]
    fn rates_are_exceeded_when_kafka_finds_them_exceeded() {
        let (throttle, mut now) = (throttle(1000), 7);
        for step in KAFKAS.split(", ") {
            let words: Vec<&str> = step.split(' ').collect();
            now += words[0].parse::<i64>().unwrap();
            throttle.record(words[1].parse().unwrap(), now);
            assert_eq!(throttle.is_exceeded(now), words[2] == "true", "{step} at {now}");
        }
    }

    proptest! {
        #[test]
        fn who_waits_takes_no_more_than_a_window_allows(sizes in prop::collection::vec(1_usize..50_000, 1..60)) {
            let throttle = throttle(10_000);
            let (mut now, mut taken) = (0_i64, Vec::new());
            for size in sizes {
                while throttle.is_exceeded(now) {
                    now += throttle.wait_ms(now);
                }
                // The bytes of the last ten seconds are in samples of the last eleven.
                let lately: usize = taken.iter().filter(|(at, _)| now - at < 10_000).map(|(_, size)| size).sum();
                prop_assert!(lately <= 11 * 10_000);
                throttle.record(size, now);
                taken.push((now, size));
            }
        }
    }
}
