//! The rate of new connections, counted in samples of which the oldest is dropped, as in Kafka's `Rate`.
//!
//! Arithmetic on times that the caller passes. A rate is `connections / span`. The span reaches from the oldest sample to
//! the current time and is never shorter than all samples but one: at the start as many connections are allowed at once as
//! in that span.

use std::collections::VecDeque;

use crate::accepting::connection_limits::Windows;

/// The samples of a rate.
#[derive(Debug, Default)]
pub struct ConnectionRate {
    /// The newest is last.
    samples: VecDeque<Sample>,
}

#[derive(Debug)]
struct Sample {
    began_ms: u64,
    /// When it last counted a connection: the sample is dropped a span after that, as in Kafka's `SampledStat`.
    last_ms: u64,
    count: u32,
}

impl ConnectionRate {
    /// Milliseconds until one more connection keeps the rate at or below `limit` a second; at most one sample's length,
    /// after which the caller checks again.
    pub fn wait_ms(&mut self, now: u64, limit: f64, windows: Windows) -> u64 {
        self.drop_old(now, windows);
        let count = self.samples.iter().map(|sample| f64::from(sample.count)).sum::<f64>() + 1.0;
        let (span, needed) = (self.span_ms(now, windows) as f64, count * 1000.0 / limit);
        if needed <= span { 0 } else { ((needed - span).ceil() as u64).clamp(1, windows.length_ms.max(1)) }
    }

    /// Counts a connection.
    pub fn record(&mut self, now: u64, windows: Windows) {
        match self.samples.back_mut() {
            Some(last) if now.saturating_sub(last.began_ms) < windows.length_ms => {
                (last.count, last.last_ms) = (last.count + 1, now);
            }
            _ => self.samples.push_back(Sample { began_ms: now, last_ms: now, count: 1 }),
        }
        self.drop_old(now, windows);
    }

    /// Whether there are no samples.
    pub fn is_idle(&mut self, now: u64, windows: Windows) -> bool {
        self.drop_old(now, windows);
        self.samples.is_empty()
    }

    fn drop_old(&mut self, now: u64, windows: Windows) {
        let span = windows.length_ms * u64::from(windows.count);
        while self.samples.front().is_some_and(|oldest| now.saturating_sub(oldest.last_ms) >= span) {
            self.samples.pop_front();
        }
    }

    fn span_ms(&self, now: u64, windows: Windows) -> u64 {
        let elapsed = self.samples.front().map_or(0, |oldest| now.saturating_sub(oldest.began_ms));
        let least = u64::from(windows.count.saturating_sub(1));
        let full = elapsed / windows.length_ms.max(1);
        // With one sample alone, no complete sample extends the span.
        let span = elapsed + least.saturating_sub(full) * windows.length_ms;
        span.max(windows.length_ms.min(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows { length_ms: 1000, count: 11 };

    /// How many connections are accepted in each second, if clients connect all the time.
    fn admitted(limit: f64, seconds: u64) -> Vec<u64> {
        let (mut rate, mut per_second, mut now) = (ConnectionRate::default(), vec![0; seconds as usize], 0);
        while now < seconds * 1000 {
            match rate.wait_ms(now, limit, WINDOWS) {
                0 => {
                    rate.record(now, WINDOWS);
                    per_second[(now / 1000) as usize] += 1;
                }
                wait => now += wait,
            }
        }
        per_second
    }

    #[test]
    fn as_many_as_are_allowed_are_let_in_in_each_span() {
        let admitted = admitted(5.0, 110);
        assert!((50..=55).contains(&admitted[0]), "{admitted:?}");
        assert!(admitted.windows(11).all(|span| (50..=60).contains(&span.iter().sum::<u64>())), "{admitted:?}");
    }

    #[test]
    fn nothing_is_remembered_when_the_span_is_over() {
        let mut rate = ConnectionRate::default();
        rate.record(0, WINDOWS);
        assert!(!rate.is_idle(10_999, WINDOWS));
        assert!(rate.is_idle(11_000, WINDOWS));
    }

    /// Kafka's `Rate` of the same connections is 0.995 after the first one at 11,050 ms, and 1.086 after the second.
    #[test]
    fn a_sample_is_remembered_a_span_after_its_last_connection() {
        let mut rate = ConnectionRate::default();
        rate.record(0, WINDOWS);
        (0..9).for_each(|_| rate.record(900, WINDOWS));
        assert_eq!(rate.wait_ms(11_050, 1.0, WINDOWS), 0);
        rate.record(11_050, WINDOWS);
        assert!(rate.wait_ms(11_050, 1.0, WINDOWS) > 0);
    }

    #[test]
    fn a_wait_is_no_longer_than_a_sample() {
        let mut rate = ConnectionRate::default();
        for _ in 0..1000 {
            rate.record(0, WINDOWS);
        }
        assert_eq!(rate.wait_ms(0, 0.5, WINDOWS), 1000);
    }
}
