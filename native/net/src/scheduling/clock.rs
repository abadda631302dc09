//! The data plane's clock: one time for deadlines, one for timestamps.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds in a millisecond.
pub const NANOSECONDS_OF_MS: u64 = 1_000_000;

/// The data plane's clock.
#[derive(Debug)]
pub struct Clock {
    started: Instant,
    /// How far the time of appends and fetch sessions is ahead of the system's clock, ms.
    ahead_ms: AtomicI64,
    /// The time of appends and fetch sessions, independent of the system's clock.
    #[cfg(feature = "simulation")]
    stands_at_ms: Option<AtomicI64>,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
            ahead_ms: AtomicI64::new(0),
            #[cfg(feature = "simulation")]
            stands_at_ms: None,
        }
    }

    /// A clock that stands still until [`Clock::set`].
    #[cfg(feature = "simulation")]
    pub fn standing_still() -> Self {
        Self { stands_at_ms: Some(AtomicI64::new(0)), ..Self::start() }
    }

    /// Sets the time of a clock that stands still.
    #[cfg(feature = "simulation")]
    pub fn set(&self, now_ms: i64) {
        if let Some(stands_at_ms) = &self.stands_at_ms {
            stands_at_ms.store(now_ms, Ordering::Relaxed);
        }
    }

    /// Milliseconds of a monotonic clock, for deadlines.
    pub fn now(&self) -> u64 {
        self.now_ns() / NANOSECONDS_OF_MS
    }

    /// Nanoseconds of the same clock, for durations; never 0.
    pub fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64 | 1
    }

    /// Milliseconds since 1970, for record timestamps: the system's clock plus the offset of [`Clock::set_ahead`].
    pub fn wall_ms(&self) -> i64 {
        #[cfg(feature = "simulation")]
        if let Some(stands_at_ms) = &self.stands_at_ms {
            return stands_at_ms.load(Ordering::Relaxed);
        }
        let system = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        system.saturating_add(self.ahead_ms.load(Ordering::Relaxed))
    }

    /// Sets the time of appends and fetch sessions ahead of the system's clock.
    pub fn set_ahead(&self, by_ms: i64) {
        self.ahead_ms.store(by_ms, Ordering::Relaxed);
    }
}
