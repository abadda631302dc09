//! The common throttle of all cleaner passes, and their stop flag.
//!
//! Owns `log.cleaner.io.max.bytes.per.second`: a pass that has read and written more bytes than the rate allows
//! sleeps. A stop wakes sleeping passes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Interval after which the counter restarts, so that a pause is not followed by a burst (Kafka's check interval).
const WINDOW: Duration = Duration::from_millis(300);
/// Shorter delays are not slept, but added to the next one.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
/// A pass notices an abort within this time.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// The throttle; see the module.
#[derive(Debug)]
pub struct Throttle {
    state: Mutex<State>,
    /// Set under the lock of `state`, so that no pass misses it before it sleeps.
    stopped: AtomicBool,
    woken: Condvar,
}

#[derive(Debug)]
struct State {
    bytes_per_second: f64,
    begun: Instant,
    bytes: f64,
}

impl Throttle {
    /// Creates a throttle with a rate in bytes per second.
    #[must_use]
    pub fn new(bytes_per_second: f64) -> Self {
        let state = State { bytes_per_second, begun: Instant::now(), bytes: 0.0 };
        Self { state: Mutex::new(state), stopped: AtomicBool::new(false), woken: Condvar::new() }
    }

    /// Changes the rate.
    pub fn set_pace(&self, bytes_per_second: f64) {
        *self.state.lock() = State { bytes_per_second, begun: Instant::now(), bytes: 0.0 };
    }

    /// Stops all passes, current and future.
    pub fn stop(&self) {
        let _state = self.state.lock();
        self.stopped.store(true, Ordering::Release);
        self.woken.notify_all();
    }

    /// Returns whether passes must stop.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Counts bytes read or written, and sleeps while they exceed the rate. Ends the sleep when `is_over` returns
    /// true.
    pub(crate) fn count(&self, bytes: usize, is_over: impl Fn() -> bool) {
        let mut state = self.state.lock();
        state.bytes += bytes as f64;
        loop {
            // Other passes count meanwhile, and may start a new window.
            let due = Duration::try_from_secs_f64(state.bytes / state.bytes_per_second).unwrap_or(Duration::MAX);
            let ahead = due.saturating_sub(state.begun.elapsed());
            if ahead < SHORTEST_SLEEP || self.is_stopped() || is_over() {
                break;
            }
            self.woken.wait_for(&mut state, ahead.min(LONGEST_SLEEP));
        }
        if state.begun.elapsed() >= WINDOW {
            state.begun = Instant::now();
            state.bytes = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_time_that_the_pace_allows() {
        let throttle = Throttle::new(10_000_000.0);
        let begun = Instant::now();
        (0..10).for_each(|_| throttle.count(100_000, || false));
        assert!(begun.elapsed() >= Duration::from_millis(95), "{:?}", begun.elapsed());
        throttle.set_pace(f64::MAX);
        let begun = Instant::now();
        (0..10).for_each(|_| throttle.count(1 << 40, || false));
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_stop_ends_a_sleep() {
        let throttle = Throttle::new(1.0);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| throttle.count(1_000_000, || false));
            throttle.stop();
            sleeper.join().unwrap();
        });
        throttle.count(1_000_000, || false);
        Throttle::new(1.0).count(1_000_000, || true);
        assert!(throttle.is_stopped());
    }
}
