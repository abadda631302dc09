//! The counters of a client.
//!
//! The code that does the work updates a total by one relaxed addition for a request, a batch or a chunk, never for a
//! record. A caller reads the totals. The I/O thread keeps a few older samples, from which rates are computed (as Kafka's
//! SampledStat). Must not know the names of metrics.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::producer::batch::Batch;

/// A counter that only increases.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub enum Total {
    /// Requests queued for sending.
    Requests,
    /// Responses received.
    Responses,
    /// Bytes of requests.
    BytesOut,
    /// Bytes of responses.
    BytesIn,
    /// Connections started.
    ConnectionsMade,
    ConnectionsEnded,
    /// Produce or Fetch requests that have a response.
    HotResponses,
    /// Sum of the microseconds from such a request to its response.
    ResponseTimeUs,
    /// Bytes of such responses.
    ResponseBytes,
    /// Batches acknowledged.
    Batches,
    /// Records acknowledged, or returned to the caller.
    Records,
    /// Wire size of acknowledged batches, or of batches returned to the caller.
    RecordBytes,
    /// Records sent again, counted each time.
    Retries,
    /// Records that failed.
    Errors,
    /// Batches sent for the first time.
    Sent,
    /// Sum of the microseconds that such batches were open or waited.
    QueuedUs,
}

const TOTALS: usize = Total::QueuedUs as usize + 1;

/// A maximum so far.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub enum Peak {
    /// Bytes of an acknowledged batch.
    Batch,
    /// Microseconds from a Produce or Fetch request to its response.
    ResponseTimeUs,
    /// Bytes of such a response.
    ResponseBytes,
    /// Microseconds in which batches waited and none was acknowledged.
    GapUs,
    /// Microseconds that a batch was open or waited before it was first sent.
    QueuedUs,
}

const PEAKS: usize = Peak::QueuedUs as usize + 1;

#[derive(Debug)]
struct Sample {
    at: Instant,
    totals: [u64; TOTALS],
}

/// The counters of one client.
#[derive(Debug)]
pub struct Counters {
    totals: [AtomicU64; TOTALS],
    peaks: [AtomicU64; PEAKS],
    /// Requests in flight.
    in_flight: AtomicU64,
    /// Connections that are open, or being opened.
    connections: AtomicU64,
    /// The number of leader changes of partitions.
    leader_changes: AtomicU64,
    window: Duration,
    most: usize,
    /// Older samples, oldest first; never empty.
    samples: Mutex<VecDeque<Sample>>,
}

impl Counters {
    /// Counters at zero, with at most `most` older samples, one for each `window`.
    pub fn new(window: Duration, most: usize) -> Self {
        let first = Sample { at: Instant::now(), totals: [0; TOTALS] };
        Self {
            totals: Default::default(),
            peaks: Default::default(),
            in_flight: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            leader_changes: AtomicU64::new(0),
            window,
            most: most.max(1),
            samples: Mutex::new(VecDeque::from([first])),
        }
    }

    /// Add to a total.
    #[inline]
    pub fn add(&self, total: Total, count: u64) {
        self.totals[total as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// Raise a maximum.
    pub fn raise(&self, peak: Peak, value: u64) {
        self.peaks[peak as usize].fetch_max(value, Ordering::Relaxed);
    }

    /// Count the response to a Produce or Fetch request.
    pub fn responded(&self, waited: Duration, bytes: u64) {
        let waited_us = waited.as_micros() as u64;
        self.add(Total::HotResponses, 1);
        self.add(Total::ResponseTimeUs, waited_us);
        self.add(Total::ResponseBytes, bytes);
        self.raise(Peak::ResponseTimeUs, waited_us);
        self.raise(Peak::ResponseBytes, bytes);
    }

    /// Count a batch that is sent for the first time.
    pub fn sent(&self, queued: Duration) {
        let queued_us = queued.as_micros() as u64;
        self.add(Total::Sent, 1);
        self.add(Total::QueuedUs, queued_us);
        self.raise(Peak::QueuedUs, queued_us);
    }

    /// Count a batch that was acknowledged or failed.
    pub fn decided(&self, batch: &Batch, acknowledged: bool) {
        let (records, bytes) = (u64::from(batch.records), batch.size() as u64);
        self.add(Total::Retries, records * u64::from(batch.attempts.saturating_sub(1)));
        if !acknowledged {
            return self.add(Total::Errors, records);
        }
        self.add(Total::Batches, 1);
        self.add(Total::Records, records);
        self.add(Total::RecordBytes, bytes);
        self.raise(Peak::Batch, bytes);
    }

    /// Set the numbers of open connections and of requests in flight, and take the samples that are due.
    pub fn look(&self, connections: usize, in_flight: usize, now: Instant) {
        self.connections.store(connections as u64, Ordering::Relaxed);
        self.in_flight.store(in_flight as u64, Ordering::Relaxed);
        let mut samples = self.samples.lock();
        if samples.back().is_none_or(|last| now.saturating_duration_since(last.at) >= self.window) {
            samples.push_back(Sample { at: now, totals: self.totals() });
            while samples.len() > self.most {
                samples.pop_front();
            }
        }
    }

    /// A total so far.
    pub fn total(&self, total: Total) -> u64 {
        self.totals[total as usize].load(Ordering::Relaxed)
    }

    /// A maximum so far.
    pub fn peak(&self, peak: Peak) -> u64 {
        self.peaks[peak as usize].load(Ordering::Relaxed)
    }

    /// The rate of a total in a second, since the oldest sample.
    pub fn rate(&self, total: Total, now: Instant) -> f64 {
        let samples = self.samples.lock();
        let Some(oldest) = samples.front() else { return 0.0 };
        let seconds = now.saturating_duration_since(oldest.at).as_secs_f64();
        let count = self.total(total).saturating_sub(oldest.totals[total as usize]);
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }

    /// Connections that are open, or being opened.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Set the number of leader changes.
    pub fn set_leader_changes(&self, changes: u64) {
        self.leader_changes.store(changes, Ordering::Relaxed);
    }

    /// The number of leader changes; a new epoch of the same leader counts too.
    pub fn leader_changes(&self) -> u64 {
        self.leader_changes.load(Ordering::Relaxed)
    }

    fn totals(&self) -> [u64; TOTALS] {
        std::array::from_fn(|index| self.totals[index].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_readings_that_are_kept() {
        let counters = Counters::new(Duration::from_secs(10), 2);
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        counters.add(Total::Records, 1000);
        assert!((counters.rate(Total::Records, after(10)) - 100.0).abs() < 1.0);
        counters.look(1, 2, after(11));
        counters.look(1, 2, after(12));
        counters.look(3, 4, after(22));
        assert_eq!((3, 4), (counters.connections(), counters.in_flight()));
        assert_eq!(0.0, counters.rate(Total::Records, after(23)), "the first reading is gone");
        counters.add(Total::Records, 90);
        assert!((counters.rate(Total::Records, after(41)) - 3.0).abs() < 0.1, "since the one at 11");
        assert_eq!(1090, counters.total(Total::Records));
    }
}
