//! Stamped values: the producer of a record, its sequence in its partition, and when it was sent or due.
//!
//! Load generators write them; consumers compute latencies from them, and audits find lost, duplicated or reordered records.
//! Owns the layout: producer u64, sequence u64, time i64 in microseconds since the epoch, big-endian; filler follows.

use pybroker_client::{Chunk, ClientError, Count};

use super::histogram::LatencyHistogram;
use super::latency::Tally;

/// Bytes of a stamp; a stamped value has at least as many.
pub const STAMP_BYTES: usize = 24;

/// The beginning of a stamped value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The producer's number.
    pub producer: u64,
    /// How many records of this producer precede it in its partition.
    pub sequence: u64,
    /// When it was sent, or when it was due if a schedule paces the producer.
    pub sent_us: i64,
}

impl Stamp {
    /// Write the stamp into a value of at least `STAMP_BYTES` bytes.
    pub fn write(self, value: &mut [u8]) {
        value[..8].copy_from_slice(&self.producer.to_be_bytes());
        value[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        value[16..STAMP_BYTES].copy_from_slice(&self.sent_us.to_be_bytes());
    }

    /// The stamp of a value; `None` if the value is too short.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (producer, rest) = value.split_first_chunk()?;
        let (sequence, rest) = rest.split_first_chunk()?;
        let sent_us = i64::from_be_bytes(*rest.first_chunk()?);
        Some(Self { producer: u64::from_be_bytes(*producer), sequence: u64::from_be_bytes(*sequence), sent_us })
    }
}

/// Latencies of stamped records, from their stamp to their arrival.
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
            // A clock behind the producer's gives no negative latency.
            let latency_us = now_us.saturating_sub(stamp.sent_us).max(0) as u64;
            self.tally.latency_sum_us += latency_us;
            self.tally.latency_max_us = self.tally.latency_max_us.max(latency_us);
            self.histogram.record(latency_us, 1);
        })?;
        self.tally.records += count.records;
        self.tally.bytes += count.bytes;
        Ok(count)
    }

    /// The records that arrived since the last call.
    pub fn take(&mut self) -> (Tally, LatencyHistogram) {
        (std::mem::take(&mut self.tally), std::mem::take(&mut self.histogram))
    }
}

#[cfg(test)]
mod tests {
    use super::{STAMP_BYTES, Stamp};

    #[test]
    fn a_stamp_is_three_big_endian_numbers() {
        let (stamp, mut value) = (Stamp { producer: 1, sequence: 0x0203, sent_us: -2 }, [b'A'; 30]);
        stamp.write(&mut value);
        assert_eq!([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 3], value[..16]);
        assert_eq!(b"\xff\xff\xff\xff\xff\xff\xff\xfeAAAAAA", &value[16..]);
        assert_eq!(Some(stamp), Stamp::parse(&value));
        assert_eq!(None, Stamp::parse(&value[..STAMP_BYTES - 1]));
    }
}
