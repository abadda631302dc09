//! The record batches that Raft entries are: Kafka's format, so that Kafka's own tools read the metadata log.
//!
//! Owns batches of metadata records (values without keys, never compressed), and the control batch by which a leader
//! begins its term (KIP-595 `LeaderChangeMessage`). Must not know what the values say. A batch is made with base offset 0
//! and leader epoch 0; the log patches both, which lie outside the checksum.

use thiserror::Error;

const HEADER: usize = 61;
const OVERHEAD: usize = 12;
const CRC_AT: usize = 17;
const CHECKSUMMED_FROM: usize = 21;
const CONTROL: i16 = 0x20;
const COMPRESSION_BITS: i16 = 0x07;
const MAGIC: u8 = 2;
/// Kafka's `ControlRecordType.LEADER_CHANGE`, after the key's version 0.
const LEADER_CHANGE_KEY: [u8; 4] = [0, 0, 0, 2];

/// Why bytes of the metadata log are not batches as they are written here.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchError {
    /// The buffer ends inside a batch.
    #[error("the batch at byte {at} is cut short")]
    Short {
        /// Position of the batch in the buffer.
        at: usize,
    },
    /// Checksum, format or structure is wrong.
    #[error("the batch at byte {at} is corrupt: {what}")]
    Corrupt {
        /// Position of the batch in the buffer.
        at: usize,
        /// What is wrong with it.
        what: &'static str,
    },
}

/// One batch of the metadata log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataBatch<'a> {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// Leader epoch, which is the Raft term.
    pub epoch: i32,
    /// Of the first record, in milliseconds.
    pub timestamp: i64,
    /// A control batch speaks to the quorum and holds no metadata.
    pub is_control: bool,
    /// The values of the records.
    pub values: Vec<&'a [u8]>,
}

/// Makes the batch of some metadata records, all of them committed together or not at all.
pub fn build_records(values: &[&[u8]], timestamp: i64) -> Vec<u8> {
    let mut batch = begin(values.iter().map(|value| value.len() + 16).sum());
    for (delta, value) in values.iter().enumerate() {
        put_record(&mut batch, delta, None, value);
    }
    finish(&mut batch, values.len(), timestamp, 0);
    batch
}

/// Makes the control batch by which `leader` begins a term; every voter granted it its vote.
pub fn build_leader_change(leader: i32, voters: &[i32], timestamp: i64) -> Vec<u8> {
    let mut value = vec![0, 0];
    value.extend_from_slice(&leader.to_be_bytes());
    for granting in [voters, voters] {
        put_unsigned(&mut value, granting.len() as u64 + 1);
        for voter in granting {
            value.extend_from_slice(&voter.to_be_bytes());
            value.push(0);
        }
    }
    value.push(0);
    let mut batch = begin(value.len() + 32);
    put_record(&mut batch, 0, Some(&LEADER_CHANGE_KEY), &value);
    finish(&mut batch, 1, timestamp, CONTROL);
    batch
}

/// Reads the whole batches at the front of `buffer` and checks them wholly, checksums included.
///
/// Returns them with the number of bytes that they take. A batch that the buffer does not hold to its end is left; it is
/// an error only where it would be the first.
pub fn parse(buffer: &[u8]) -> Result<(Vec<MetadataBatch<'_>>, usize), BatchError> {
    let mut batches = Vec::new();
    let mut at = 0;
    while at < buffer.len() {
        match batch_at(buffer, at) {
            Ok((batch, size)) => {
                batches.push(batch);
                at += size;
            }
            Err(BatchError::Short { .. }) if at > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok((batches, at))
}

fn batch_at(buffer: &[u8], at: usize) -> Result<(MetadataBatch<'_>, usize), BatchError> {
    let corrupt = |what| BatchError::Corrupt { at, what };
    let rest = &buffer[at..];
    let head: &[u8; HEADER] = rest.first_chunk().ok_or(BatchError::Short { at })?;
    let length = i32_at(head, 8);
    let size = usize::try_from(length).ok().filter(|size| *size >= HEADER - OVERHEAD);
    let size = size.ok_or(corrupt("its length is too small"))? + OVERHEAD;
    let batch = rest.get(..size).ok_or(BatchError::Short { at })?;
    if head[16] != MAGIC {
        return Err(corrupt("its format is not version 2"));
    }
    if crc32c(&batch[CHECKSUMMED_FROM..]) != i32_at(head, CRC_AT) as u32 {
        return Err(corrupt("its checksum is wrong"));
    }
    let attributes = i16_at(head, 21);
    if attributes & COMPRESSION_BITS != 0 {
        return Err(corrupt("it is compressed"));
    }
    let count = i32_at(head, 57);
    if count < 1 || i32_at(head, 23) != count - 1 {
        return Err(corrupt("its record count and offsets disagree"));
    }
    let values = values_of(&batch[HEADER..], count).ok_or(corrupt("a record is malformed"))?;
    let base_offset = i64_at(head, 0);
    let read = MetadataBatch {
        base_offset,
        last_offset: base_offset + i64::from(count) - 1,
        epoch: i32_at(head, 12),
        timestamp: i64_at(head, 27),
        is_control: attributes & CONTROL != 0,
        values,
    };
    Ok((read, size))
}

fn values_of(mut records: &[u8], count: i32) -> Option<Vec<&[u8]>> {
    // Every record takes seven bytes at least, so a count beyond that is not believed before memory is taken for it.
    let mut values = Vec::with_capacity((count as usize).min(records.len() / 7));
    for delta in 0..count {
        let length = usize::try_from(take_signed(&mut records)?).ok()?;
        let mut record = records.get(..length)?;
        records = &records[length..];
        record = record.get(1..)?;
        take_signed(&mut record)?;
        if take_signed(&mut record)? != i64::from(delta) {
            return None;
        }
        take_octets(&mut record)?;
        values.push(take_octets(&mut record)??);
        if take_signed(&mut record)? != 0 || !record.is_empty() {
            return None;
        }
    }
    records.is_empty().then_some(values)
}

fn begin(capacity: usize) -> Vec<u8> {
    let mut batch = Vec::with_capacity(HEADER + capacity);
    batch.resize(HEADER, 0);
    batch
}

fn finish(batch: &mut [u8], count: usize, timestamp: i64, attributes: i16) {
    let length = (batch.len() - OVERHEAD) as i32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[16] = MAGIC;
    batch[21..23].copy_from_slice(&attributes.to_be_bytes());
    batch[23..27].copy_from_slice(&(count as i32 - 1).to_be_bytes());
    batch[27..35].copy_from_slice(&timestamp.to_be_bytes());
    batch[35..43].copy_from_slice(&timestamp.to_be_bytes());
    // No producer: id, epoch and sequence are -1.
    batch[43..57].fill(0xFF);
    batch[57..61].copy_from_slice(&(count as i32).to_be_bytes());
    let crc = crc32c(&batch[CHECKSUMMED_FROM..]);
    batch[CRC_AT..CHECKSUMMED_FROM].copy_from_slice(&crc.to_be_bytes());
}

fn put_record(batch: &mut Vec<u8>, delta: usize, key: Option<&[u8]>, value: &[u8]) {
    let mut record = Vec::with_capacity(value.len() + 16);
    record.push(0);
    put_signed(&mut record, 0);
    put_signed(&mut record, delta as i64);
    match key {
        None => put_signed(&mut record, -1),
        Some(key) => {
            put_signed(&mut record, key.len() as i64);
            record.extend_from_slice(key);
        }
    }
    put_signed(&mut record, value.len() as i64);
    record.extend_from_slice(value);
    put_signed(&mut record, 0);
    put_signed(batch, record.len() as i64);
    batch.extend_from_slice(&record);
}

fn put_signed(buffer: &mut Vec<u8>, value: i64) {
    put_unsigned(buffer, ((value << 1) ^ (value >> 63)) as u64);
}

fn put_unsigned(buffer: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        buffer.push(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.push(value as u8);
}

fn take_signed(buffer: &mut &[u8]) -> Option<i64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = buffer.split_first()?;
        *buffer = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    None
}

/// Outer `None` for malformed bytes, inner `None` for null.
fn take_octets<'a>(buffer: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = take_signed(buffer)?;
    if length < 0 {
        return Some(None);
    }
    let length = usize::try_from(length).ok()?;
    let octets = buffer.get(..length)?;
    *buffer = &buffer[length..];
    Some(Some(octets))
}

fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn i16_at(head: &[u8; HEADER], at: usize) -> i16 {
    i16::from_be_bytes([head[at], head[at + 1]])
}

fn i32_at(head: &[u8; HEADER], at: usize) -> i32 {
    i32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

fn i64_at(head: &[u8; HEADER], at: usize) -> i64 {
    i64::from(i32_at(head, at)) << 32 | i64::from(i32_at(head, at + 4) as u32)
}
