//! How long records take from `send` to acknowledgement, counted where it costs next to nothing: per stride of records
//! that were sent together, on the I/O thread.
//!
//! A window holds what was acknowledged since it was last taken; a phase holds everything sent in it (a performance tool
//! has two: warm-up and steady state).

use hdrhistogram::Histogram;

/// Phases of a measurement that can be told apart.
pub const PHASES: usize = 2;

/// Highest latency told apart, in microseconds (ten minutes); longer ones count as this.
const HIGHEST_US: u64 = 600_000_000;

/// Sums over the records acknowledged in some stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records acknowledged.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Records given up.
    pub failed: u64,
    /// Sum over the records of the microseconds from `send` to the acknowledgement.
    pub latency_sum_us: u64,
    /// The longest of them.
    pub latency_max_us: u64,
}

impl Tally {
    fn add(&mut self, records: u64, bytes: u64, latency_us: u64) {
        self.records += records;
        self.bytes += bytes;
        self.latency_sum_us += latency_us * records;
        self.latency_max_us = self.latency_max_us.max(latency_us);
    }
}

/// All that one producer has measured.
#[derive(Debug)]
pub struct Latency {
    window: Tally,
    phases: [(Tally, Histogram<u64>); PHASES],
}

impl Latency {
    /// Nothing measured yet; three significant digits.
    pub fn new() -> Self {
        let histogram =
            || Histogram::new_with_bounds(1, HIGHEST_US, 3).unwrap_or_else(|_| unreachable!("constant bounds"));
        Self { window: Tally::default(), phases: std::array::from_fn(|_| (Tally::default(), histogram())) }
    }

    /// `records` records of `bytes` in all were acknowledged `latency_us` after they were sent.
    pub fn acknowledged(&mut self, phase: u8, records: u64, bytes: u64, latency_us: u64) {
        self.window.add(records, bytes, latency_us);
        let (tally, histogram) = &mut self.phases[usize::from(phase).min(PHASES - 1)];
        tally.add(records, bytes, latency_us);
        histogram.saturating_record_n(latency_us.max(1), records);
    }

    /// Records given up; they count nowhere else.
    pub fn failed(&mut self, phase: u8, records: u64) {
        self.window.failed += records;
        self.phases[usize::from(phase).min(PHASES - 1)].0.failed += records;
    }

    /// What was acknowledged since the last call.
    pub fn take_window(&mut self) -> Tally {
        std::mem::take(&mut self.window)
    }

    /// The tally of the phases from `first_phase` on, and the latency in microseconds at each quantile.
    pub fn summary(&self, first_phase: usize, quantiles: &[f64]) -> (Tally, Vec<u64>) {
        let mut tally = Tally::default();
        let mut histogram = self.phases[PHASES - 1].1.clone();
        for (phase, (t, h)) in self.phases.iter().enumerate().skip(first_phase) {
            tally.records += t.records;
            tally.bytes += t.bytes;
            tally.failed += t.failed;
            tally.latency_sum_us += t.latency_sum_us;
            tally.latency_max_us = tally.latency_max_us.max(t.latency_max_us);
            if phase != PHASES - 1 {
                // Same bounds and precision, so adding cannot fail.
                let _ = histogram.add(h);
            }
        }
        (tally, quantiles.iter().map(|q| histogram.value_at_quantile(*q)).collect())
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::Latency;

    #[test]
    fn window_is_taken_and_phases_stay() {
        let mut latency = Latency::new();
        latency.acknowledged(0, 10, 1000, 5_000);
        latency.acknowledged(1, 30, 3000, 1_000);
        assert_eq!((40, 4000, 5_000), {
            let w = latency.take_window();
            (w.records, w.bytes, w.latency_max_us)
        });
        assert_eq!(0, latency.take_window().records);
        let (all, quantiles) = latency.summary(0, &[0.5, 0.99]);
        assert_eq!((40, 80_000), (all.records, all.latency_sum_us));
        assert!(quantiles[0].abs_diff(1_000) < 2 && quantiles[1].abs_diff(5_000) < 5);
        assert_eq!(30, latency.summary(1, &[]).0.records);
    }
}
