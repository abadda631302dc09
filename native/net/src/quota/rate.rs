//! The rate of a usage over a window of samples, and the throttle time above its limit: Kafka's `Rate`, `SampledStat` and
//! `QuotaUtils`.
//!
//! Must not know a clock: time is an argument, in milliseconds. It may go back a little, as threads read the clock before
//! they take the lock.

/// The window of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// `quota.window.num`.
    pub samples: usize,
    /// `quota.window.size.seconds`, in milliseconds.
    pub sample_ms: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    began_ms: u64,
    /// The time of its last usage.
    last_ms: u64,
    value: f64,
}

/// Recent usage. Kafka keeps one sample more than the window has, as the oldest overlaps the window's beginning.
#[derive(Debug, Default)]
pub struct Rate {
    samples: Vec<Sample>,
    current: usize,
}

impl Sample {
    fn new(now_ms: u64) -> Self {
        Self { began_ms: now_ms, last_ms: now_ms, value: 0.0 }
    }
}

impl Rate {
    /// Records the usage `value`; a negative value reverts one.
    pub fn record(&mut self, window: Window, value: f64, now_ms: u64) {
        match self.samples.get(self.current) {
            None => self.samples.push(Sample::new(now_ms)),
            Some(current) if now_ms.saturating_sub(current.began_ms) >= window.sample_ms => {
                self.current = (self.current + 1) % (window.samples + 1);
                match self.samples.get_mut(self.current) {
                    Some(oldest) => *oldest = Sample::new(now_ms),
                    None => self.samples.push(Sample::new(now_ms)),
                }
            }
            Some(_) => {}
        }
        let current = &mut self.samples[self.current];
        current.value += value;
        current.last_ms = now_ms;
    }

    /// The time until the rate is at `limit` a second again, in milliseconds; 0 if it does not exceed the limit.
    pub fn throttle_ms(&mut self, window: Window, limit: f64, now_ms: u64) -> f64 {
        let window_ms = self.window_ms(window, now_ms) as f64;
        let value: f64 = self.samples.iter().map(|sample| sample.value).sum();
        let rate = value / (window_ms / 1000.0);
        if rate <= limit {
            return 0.0;
        }
        // Java's `Math.round`: rounds half a millisecond up.
        ((rate - limit) / limit * window_ms + 0.5).floor()
    }

    /// The span of the rate: since the oldest sample began, and at least all samples but the last.
    fn window_ms(&mut self, window: Window, now_ms: u64) -> u64 {
        let expired_ms = window.sample_ms.saturating_mul(window.samples as u64);
        for sample in &mut self.samples {
            if now_ms.saturating_sub(sample.last_ms) >= expired_ms {
                *sample = Sample::new(now_ms);
            }
        }
        let oldest = self.samples.iter().map(|sample| sample.began_ms).min().unwrap_or(now_ms);
        let elapsed = now_ms.saturating_sub(oldest);
        let whole = elapsed / window.sample_ms;
        let missing = (window.samples as u64).saturating_sub(1).saturating_sub(whole);
        elapsed.saturating_add(missing.saturating_mul(window.sample_ms)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Rate, Window};

    const KAFKAS: Window = Window { samples: 11, sample_ms: 1000 };

    #[test]
    fn a_burst_counts_over_all_samples_but_the_last_and_is_waited_for() {
        let mut rate = Rate::default();
        rate.record(KAFKAS, 10_000.0, 5_000);
        assert_eq!(rate.throttle_ms(KAFKAS, 1000.0, 5_000), 0.0, "10,000 in 10 s are 1,000 a second");
        rate.record(KAFKAS, 5_000.0, 5_000);
        assert_eq!(rate.throttle_ms(KAFKAS, 1000.0, 5_000), 5_000.0, "15,000 are 15 s at 1,000 a second");
        assert_eq!(rate.throttle_ms(KAFKAS, 1000.0, 5_500), 4_500.0, "half a second of it is over");
        rate.record(KAFKAS, -5_000.0, 5_500);
        assert_eq!(rate.throttle_ms(KAFKAS, 1000.0, 5_500), 0.0, "what is taken back was never used");
    }

    #[test]
    fn what_was_used_before_the_window_is_forgotten() {
        let mut rate = Rate::default();
        rate.record(KAFKAS, 1e9, 0);
        assert!(rate.throttle_ms(KAFKAS, 1.0, 10_999) > 0.0);
        assert_eq!(rate.throttle_ms(KAFKAS, 1.0, 11_000), 0.0);
    }

    #[test]
    fn no_time_and_one_sample_are_a_millisecond() {
        let mut rate = Rate::default();
        rate.record(Window { samples: 1, ..KAFKAS }, 2.0, 0);
        assert_eq!(rate.throttle_ms(Window { samples: 1, ..KAFKAS }, 1000.0, 0), 1.0);
    }

    #[test]
    fn who_waits_as_long_as_it_is_said_uses_its_limit_on_average() {
        const LIMIT: f64 = 1_000_000.0;
        for size in [16_000.0, 100_000.0, 500_000.0] {
            let (mut rate, mut now_ms, mut used) = (Rate::default(), 0_u64, 0.0);
            while now_ms < 600_000 {
                rate.record(KAFKAS, size, now_ms);
                used += size;
                now_ms += (rate.throttle_ms(KAFKAS, LIMIT, now_ms) as u64).max(1);
            }
            let of_limit = used / (now_ms as f64 / 1000.0) / LIMIT;
            assert!((0.98..1.02).contains(&of_limit), "{of_limit} of the limit in pieces of {size}");
        }
    }

    /// Windows, limits, and usages: milliseconds since the previous one (the first is at 7), the value, and the resulting
    /// wait.
    /// The waits are those of `QuotaUtils.throttleTime` of Kafka 4.3.1, for a `Sensor` with a `Rate`.
    const KAFKAS_WAITS: [(Window, f64, &str); 3] = [
        (
            Window { samples: 11, sample_ms: 1000 },
            1000.0,
            "878 2231 0, 753 1673 0, 745 2219 0, 664 1764 0, 139 2686 272, 595 75 0, \
             32 1280 1000, 16449 2962 0, 1005 1899 0, 396 2951 0, 136 793 0, 454 1098 0, \
             653 1704 763, 440 2945 4268, 693 2632 6207, 1252 517 7472, 950 2875 9397, 173 2939 13163, \
             9 307 13461, 772 1752 14441, 445 335 15331, 688 1010 16653, 380 1544 17817, 3204 1304 15960",
        ),
        (
            Window { samples: 2, sample_ms: 5000 },
            700.0,
            "2546 3990 700, 5972 5154 7091, 5357 5168 9389, 74 10351 24102, 3808 10356 35088, 2706 7603 41238, \
             5359 4633 42497, 11363 3660 229, 1355 3785 4281, 3300 3683 6242, 152 1038 7573, 921 8198 23363, \
             1910 5023 28629, 808 3165 32343, 5718 781 27740, 1250 1734 17315, 5832 2135 0, 2576 3432 1888, \
             577 6899 11166, 4178 1867 13145, 239 10279 27590, 1725 6621 35324, 2317 1354 34941, 11848 1258 0",
        ),
        (
            Window { samples: 3, sample_ms: 1000 },
            40.0,
            "515 36 0, 525 23 0, 416 86 684, 885 92 3099, 931 91 5443, 1155 24 4888, \
             1094 71 3770, 2381 43 469, 228 80 2241, 205 54 3386, 482 101 4035, 710 47 5500, \
             1127 86 7523, 298 30 7975, 770 108 9905, 2912 74 1638, 785 33 0, 10 29 605, \
             343 81 3287, 545 15 3117, 233 3 2959, 409 74 5400, 1160 60 5740, 3084 75 0",
        ),
    ];

    #[test]
    fn waits_are_those_that_kafka_computed() {
        for (window, limit, uses) in KAFKAS_WAITS {
            let (mut rate, mut now) = (Rate::default(), 7);
            for line in uses.split(", ") {
                let numbers: Vec<u32> = line.split(' ').map(|number| number.parse().unwrap()).collect();
                now += u64::from(numbers[0]);
                rate.record(window, f64::from(numbers[1]), now);
                let wait = rate.throttle_ms(window, limit, now);
                assert_eq!(wait, f64::from(numbers[2]), "{line} at {now} of {window:?}");
            }
        }
    }

    /// Kafka's classes, transcribed: a sample is reset in place, and searched for each time.
    #[derive(Default)]
    struct Model {
        samples: Vec<(u64, u64, f64)>,
        current: usize,
    }

    impl Model {
        fn record(&mut self, window: Window, value: f64, now: u64) {
            if self.samples.is_empty() {
                self.samples.push((now, now, 0.0));
            }
            if now - self.samples[self.current].0 >= window.sample_ms {
                self.current = (self.current + 1) % (window.samples + 1);
                if self.current >= self.samples.len() {
                    self.samples.push((now, now, 0.0));
                } else {
                    self.samples[self.current] = (now, now, 0.0);
                }
            }
            self.samples[self.current].2 += value;
            self.samples[self.current].1 = now;
        }

        fn throttle_ms(&mut self, window: Window, limit: f64, now: u64) -> f64 {
            for sample in &mut self.samples {
                if now - sample.1 >= window.sample_ms * window.samples as u64 {
                    *sample = (now, now, 0.0);
                }
            }
            let oldest = self.samples.iter().map(|sample| sample.0).min().unwrap_or(now);
            let mut elapsed = now - oldest;
            let full = elapsed / window.sample_ms;
            if full < window.samples as u64 - 1 {
                elapsed += (window.samples as u64 - 1 - full) * window.sample_ms;
            }
            let rate = self.samples.iter().map(|sample| sample.2).sum::<f64>() / (elapsed as f64 / 1000.0);
            if rate <= limit { 0.0 } else { ((rate - limit) / limit * elapsed as f64 + 0.5).floor() }
        }
    }

    proptest! {
        #[test]
        fn every_wait_is_that_of_kafkas_classes(
            samples in 2_usize..13,
            sample_ms in prop::sample::select(vec![1000_u64, 2000, 5000]),
            limit in 1_u32..5_000,
            uses in prop::collection::vec((0_u64..4_000, 0_u32..20_000, any::<bool>()), 1..120),
        ) {
            let window = Window { samples, sample_ms };
            let (mut rate, mut model, mut now) = (Rate::default(), Model::default(), 7_u64);
            for (after, value, taken_back) in uses {
                now += after;
                rate.record(window, f64::from(value), now);
                model.record(window, f64::from(value), now);
                let wait = model.throttle_ms(window, f64::from(limit), now);
                prop_assert_eq!(rate.throttle_ms(window, f64::from(limit), now), wait);
                if taken_back {
                    rate.record(window, -f64::from(value), now);
                    model.record(window, -f64::from(value), now);
                }
            }
        }
    }
}
