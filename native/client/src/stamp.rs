//! Stamped values: who made a record, the how-manieth of its partition it is, and when it was sent or due.
//!
//! Load generators write them; consumers take latencies from them, and audits find what was lost, duplicated or reordered.
//! Owns the layout: producer u64, sequence u64, time i64 in microseconds since the epoch, big-endian; filler follows.

use std::time::{Duration, Instant};

use super::chunk::{Chunk, Count};
use super::clock::now_us;
use super::error::ClientError;
use super::histogram::LatencyHistogram;
use super::latency::Tally;

/// Bytes of a stamp; a stamped value has at least as many.
pub const STAMP_BYTES: usize = 24;

/// What a stamped value begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Who made the record.
    pub producer: u64,
    /// How many records of this producer precede it in its partition.
    pub sequence: u64,
    /// When it was sent; where a schedule paces its producer, when it was due.
    pub sent_us: i64,
}

impl Stamp {
    /// Put it in front of a value of at least `STAMP_BYTES` bytes.
    pub fn write(self, value: &mut [u8]) {
        value[..8].copy_from_slice(&self.producer.to_be_bytes());
        value[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        value[16..STAMP_BYTES].copy_from_slice(&self.sent_us.to_be_bytes());
    }

    /// The stamp of a value; `None` where it is too short for one.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (producer, rest) = value.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let sent_us = i64::from_be_bytes(*rest.first_chunk()?);
        Some(Self { producer: u64::from_be_bytes(*producer), sequence: u64::from_be_bytes(*sequence), sent_us })
    }
}

/// When the records of one call should have been sent by an open-loop schedule: their latency counts from then, so that a
/// producer that falls behind shows it (no coordinated omission).
#[derive(Debug, Clone, Copy)]
pub struct Due {
    /// The first one's time, microseconds since the epoch.
    pub first_us: i64,
    /// From each to the next, microseconds.
    pub every_us: f64,
}

impl Due {
    /// The time of the record with this index, microseconds since the epoch.
    pub fn at_us(&self, index: usize) -> i64 {
        self.first_us + (self.every_us * index as f64) as i64
    }
}

/// What latency counts from: the moment at which a record is sent, or due.
#[derive(Debug, Clone, Copy)]
pub struct Since {
    due: Option<(Instant, f64)>,
}

/// Records whose times lie closer together than this may share one.
const TOGETHER_US: f64 = 50.0;

impl Since {
    /// From the moment of sending.
    pub const SENT: Self = Self { due: None };

    /// From the schedule's time, where there is one.
    pub fn due(due: Option<&Due>) -> Self {
        let Some(due) = due else { return Self::SENT };
        let (now, ahead_us) = (Instant::now(), due.first_us - now_us());
        let distance = Duration::from_micros(ahead_us.unsigned_abs());
        let first = if ahead_us < 0 { now.checked_sub(distance) } else { now.checked_add(distance) };
        Self { due: Some((first.unwrap_or(now), due.every_us)) }
    }

    /// The moment for the record with this index.
    pub fn of(&self, index: usize) -> Instant {
        match self.due {
            Some((first, every_us)) => first + Duration::from_nanos((every_us * index as f64 * 1e3) as u64),
            None => Instant::now(),
        }
    }

    /// How many records, at most `most`, may share the moment of the first of them.
    pub fn shared_by(&self, most: usize) -> usize {
        match self.due {
            Some((_, every_us)) if every_us > 0.0 => ((TOGETHER_US / every_us) as usize).clamp(1, most),
            _ => most,
        }
    }
}

/// Latencies of stamped records, from their stamp to their arrival here.
#[derive(Debug, Default)]
pub struct Arrivals {
    tally: Tally,
    histogram: LatencyHistogram,
}

impl Arrivals {
    /// Read every record of a chunk that arrived at `now_us`. A value too short for a stamp counts as failed.
    pub fn read(&mut self, chunk: &Chunk, scratch: &mut Vec<u8>, now_us: i64) -> Result<Count, ClientError> {
        let mut count = Count::default();
        chunk.for_each(scratch, |fetched| {
            let value = fetched.record.value.unwrap_or_default();
            count.records += 1;
            count.bytes += (fetched.record.key.map_or(0, <[u8]>::len) + value.len()) as u64;
            let Some(stamp) = Stamp::parse(value) else {
                self.tally.failed += 1;
                return;
            };
            // A clock that is behind the producer's gives no latency below zero.
            let latency_us = now_us.saturating_sub(stamp.sent_us).max(0) as u64;
            self.tally.latency_sum_us += latency_us;
            self.tally.latency_max_us = self.tally.latency_max_us.max(latency_us);
            self.histogram.record(latency_us, 1);
        })?;
        self.tally.records += count.records;
        self.tally.bytes += count.bytes;
        Ok(count)
    }

    /// What arrived since the last call.
    pub fn take(&mut self) -> (Tally, LatencyHistogram) {
        (std::mem::take(&mut self.tally), std::mem::take(&mut self.histogram))
    }
}

#[cfg(test)]
mod tests {
    use super::{Due, STAMP_BYTES, Since, Stamp};
    use crate::clock::now_us;
    use std::time::{Duration, Instant};

    #[test]
    fn a_stamp_is_three_big_endian_numbers() {
        let (stamp, mut value) = (Stamp { producer: 1, sequence: 0x0203, sent_us: -2 }, [b'A'; 30]);
        stamp.write(&mut value);
        assert_eq!([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3], value[..16]);
        assert_eq!(b"\xff\xff\xff\xff\xff\xff\xff\xfeAAAAAA", &value[16..]);
        assert_eq!(Some(stamp), Stamp::parse(&value));
        assert_eq!(None, Stamp::parse(&value[..STAMP_BYTES - 1]));
    }

    #[test]
    fn a_record_that_is_late_counts_from_its_time() {
        let due = Due { first_us: now_us() - 1_000_000, every_us: 10.0 };
        let (since, now) = (Since::due(Some(&due)), Instant::now());
        let late = now.duration_since(since.of(0));
        assert!(late >= Duration::from_millis(999) && late < Duration::from_secs(10), "{late:?}");
        assert_eq!(Duration::from_micros(70), since.of(7).duration_since(since.of(0)));
        assert_eq!((5, 64), (since.shared_by(64), Since::SENT.shared_by(64)));
        assert_eq!(due.first_us + 70, due.at_us(7));
    }
}
