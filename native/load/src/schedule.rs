//! The times at which an open-loop schedule sends the records of one call.

use std::time::{Duration, Instant};

use pybroker_client::{Since, now_us};

/// The times at which an open-loop schedule sends the records of one call. Their latency counts from then, so that it
/// includes the delay of a slow producer (no coordinated omission).
#[derive(Debug, Clone, Copy)]
pub struct Due {
    /// The first one's time, microseconds since the epoch.
    pub first_us: i64,
    /// The interval between records, microseconds.
    pub every_us: f64,
}

impl Due {
    /// The time of the record with this index, microseconds since the epoch.
    pub fn at_us(&self, index: usize) -> i64 {
        self.first_us + (self.every_us * index as f64) as i64
    }
}

/// The start of the latency: the schedule's time, if there is one, else the time of sending.
pub fn since(due: Option<&Due>) -> Since {
    let Some(due) = due else { return Since::SENT };
    let (now, ahead_us) = (Instant::now(), due.first_us - now_us());
    let distance = Duration::from_micros(ahead_us.unsigned_abs());
    let first = if ahead_us < 0 { now.checked_sub(distance) } else { now.checked_add(distance) };
    Since::schedule(first.unwrap_or(now), due.every_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_late_counts_from_its_time() {
        let due = Due { first_us: now_us() - 1_000_000, every_us: 10.0 };
        let (since, now) = (since(Some(&due)), Instant::now());
        let late = now.duration_since(since.of(0));
        assert!(late >= Duration::from_millis(999) && late < Duration::from_secs(10), "{late:?}");
        assert_eq!(Duration::from_micros(70), since.of(7).duration_since(since.of(0)));
        assert_eq!((5, 64), (since.shared_by(64), Since::SENT.shared_by(64)));
        assert_eq!(due.first_us + 70, due.at_us(7));
    }
}
