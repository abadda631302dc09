//! The start of records' latency: when each record is sent, or should have been sent by a schedule.

use std::time::{Duration, Instant};

/// Records whose times are closer than this may share one.
const TOGETHER_US: f64 = 50.0;

/// The start times of records.
#[derive(Debug, Clone, Copy)]
pub struct Since {
    schedule: Option<(Instant, f64)>,
}

impl Since {
    /// From the time of sending.
    pub const SENT: Self = Self { schedule: None };

    /// From a schedule: the first record's time, and `every_us` microseconds later for each that follows.
    pub fn schedule(first: Instant, every_us: f64) -> Self {
        Self { schedule: Some((first, every_us)) }
    }

    /// The start time of the record with this index.
    pub fn of(&self, index: usize) -> Instant {
        match self.schedule {
            Some((first, every_us)) => first + Duration::from_nanos((every_us * index as f64 * 1e3) as u64),
            None => Instant::now(),
        }
    }

    /// How many records, at most `most`, may share the start time of the first of them.
    pub fn shared_by(&self, most: usize) -> usize {
        match self.schedule {
            Some((_, every_us)) if every_us > 0.0 => ((TOGETHER_US / every_us) as usize).clamp(1, most),
            _ => most,
        }
    }
}
