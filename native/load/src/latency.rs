//! The latency of records from `send` to acknowledgement, measured at little cost: on the I/O thread, once for each stride
//! of records that were sent together.
//!
//! A window has the records acknowledged since it was last taken; a phase has all records sent in it (a performance tool has
//! two: warm-up and steady state).

use std::time::Instant;

use parking_lot::Mutex;
use pybroker_client::{DeliveryObserver, Stride};

use super::histogram::LatencyHistogram;

/// The number of phases of a measurement.
pub const PHASES: usize = 2;

/// Sums over the records acknowledged in a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Records acknowledged.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Records that failed.
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

    fn merge(&mut self, other: &Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.failed += other.failed;
        self.latency_sum_us += other.latency_sum_us;
        self.latency_max_us = self.latency_max_us.max(other.latency_max_us);
    }
}

/// The measurements of one producer.
#[derive(Debug, Default)]
pub struct Latency {
    phases: [Phase; PHASES],
}

#[derive(Debug, Default)]
struct Phase {
    all: Tally,
    histogram: LatencyHistogram,
    /// Since it was last taken.
    window: Tally,
    /// The histogram at the end of the last interval; `None` before the first.
    reported: Option<LatencyHistogram>,
}

impl Latency {
    fn phase(&mut self, phase: u8) -> &mut Phase {
        &mut self.phases[usize::from(phase).min(PHASES - 1)]
    }

    /// Add `records` records of `bytes` in all, acknowledged `latency_us` after they were sent.
    pub fn acknowledged(&mut self, phase: u8, records: u64, bytes: u64, latency_us: u64) {
        let phase = self.phase(phase);
        phase.window.add(records, bytes, latency_us);
        phase.all.add(records, bytes, latency_us);
        phase.histogram.record(latency_us, records);
    }

    /// Add records that failed; they count nowhere else.
    pub fn failed(&mut self, phase: u8, records: u64) {
        let phase = self.phase(phase);
        phase.window.failed += records;
        phase.all.failed += records;
    }

    /// The records acknowledged since the last call.
    pub fn take_window(&mut self) -> Tally {
        let mut window = Tally::default();
        self.phases.iter_mut().for_each(|phase| window.merge(&std::mem::take(&mut phase.window)));
        window
    }

    /// The records of a phase acknowledged since the last call, with their latencies; takes the phase's window.
    pub fn take_interval(&mut self, phase: u8) -> (Tally, LatencyHistogram) {
        let phase = self.phase(phase);
        let now = phase.histogram.clone();
        let new = phase.reported.as_ref().map_or_else(|| now.clone(), |reported| now.since(reported));
        phase.reported = Some(now);
        (std::mem::take(&mut phase.window), new)
    }

    /// The tally of the phases from `first_phase` on, and the latency in microseconds at each quantile.
    pub fn summary(&self, first_phase: usize, quantiles: &[f64]) -> (Tally, Vec<u64>) {
        let (mut tally, mut histogram) = (Tally::default(), LatencyHistogram::new());
        for phase in self.phases.iter().skip(first_phase) {
            tally.merge(&phase.all);
            histogram.merge(&phase.histogram);
        }
        (tally, quantiles.iter().map(|q| histogram.at_quantile(*q)).collect())
    }
}

/// The measurements of one producer, shared by its I/O thread and its readers.
#[derive(Debug, Default)]
pub struct Measurement(pub Mutex<Latency>);

impl DeliveryObserver for Measurement {
    fn acknowledged(&self, strides: &[Stride], now: Instant) {
        let mut latency = self.0.lock();
        for stride in strides {
            let waited_us = now.duration_since(stride.sent).as_micros() as u64;
            latency.acknowledged(stride.phase, u64::from(stride.records), stride.bytes, waited_us);
        }
    }

    fn failed(&self, strides: &[Stride]) {
        let mut latency = self.0.lock();
        strides.iter().for_each(|stride| latency.failed(stride.phase, u64::from(stride.records)));
    }
}

#[cfg(test)]
mod tests {
    use super::Latency;

    #[test]
    fn window_is_taken_and_phases_stay() {
        let mut latency = Latency::default();
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

    #[test]
    fn intervals_of_a_phase_hold_what_is_new_in_it() {
        let mut latency = Latency::default();
        latency.acknowledged(0, 10, 1000, 5_000);
        latency.acknowledged(1, 1, 100, 70);
        let (tally, histogram) = latency.take_interval(0);
        assert_eq!((10, 1000, 5_000, 10), (tally.records, tally.bytes, tally.latency_max_us, histogram.count()));
        latency.acknowledged(0, 20, 2000, 1_000);
        latency.failed(0, 3);
        let (tally, histogram) = latency.take_interval(0);
        assert_eq!((20, 3, 1_000), (tally.records, tally.failed, tally.latency_max_us));
        assert_eq!((20, 1_000), (histogram.count(), histogram.max_us()));
        assert_eq!((0, 0), (latency.take_interval(0).0.records, latency.take_interval(0).1.count()));
        assert_eq!(1, latency.take_window().records);
        assert_eq!(31, latency.summary(0, &[]).0.records);
    }
}
