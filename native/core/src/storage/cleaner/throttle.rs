//! The pace of all passes together, and the word that ends them.
//!
//! Owns `log.cleaner.io.max.bytes.per.second`: bytes read and written are counted against the clock, and who is ahead of it
//! sleeps. A pass that is to end is woken from that sleep.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The count begins anew this often, so that a pause is not made up for by a burst (Kafka's check interval).
const WINDOW: Duration = Duration::from_millis(300);

/// See the module.
#[derive(Debug)]
pub struct Throttle {
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Debug)]
struct State {
    bytes_per_second: f64,
    begun: Instant,
    bytes: f64,
    stopped: bool,
}

impl Throttle {
    /// A pace in bytes a second.
    #[must_use]
    pub fn new(bytes_per_second: f64) -> Self {
        let state = State { bytes_per_second, begun: Instant::now(), bytes: 0.0, stopped: false };
        Self { state: Mutex::new(state), stopped: Condvar::new() }
    }

    /// Changes the pace from now on.
    pub fn set_pace(&self, bytes_per_second: f64) {
        let mut state = self.state.lock();
        *state = State { bytes_per_second, begun: Instant::now(), bytes: 0.0, stopped: state.stopped };
    }

    /// Ends every pass that asks, now and later.
    pub fn stop(&self) {
        self.state.lock().stopped = true;
        self.stopped.notify_all();
    }

    /// Whether passes are to end.
    pub fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Counts bytes that were read or written, and sleeps while they are ahead of the pace.
    pub(crate) fn count(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.bytes += bytes as f64;
        let due = Duration::try_from_secs_f64(state.bytes / state.bytes_per_second).unwrap_or(WINDOW * 1000);
        let ahead = due.saturating_sub(state.begun.elapsed());
        if ahead > Duration::from_millis(1) && !state.stopped {
            self.stopped.wait_for(&mut state, ahead);
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
        (0..10).for_each(|_| throttle.count(100_000));
        assert!(begun.elapsed() >= Duration::from_millis(95), "{:?}", begun.elapsed());
        throttle.set_pace(f64::MAX);
        let begun = Instant::now();
        (0..10).for_each(|_| throttle.count(1 << 40));
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_stop_ends_a_sleep() {
        let throttle = Throttle::new(1.0);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| throttle.count(1_000_000));
            throttle.stop();
            sleeper.join().unwrap();
        });
        throttle.count(1_000_000);
        assert!(throttle.is_stopped());
    }
}
