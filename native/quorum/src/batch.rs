//! The record batches of Raft entries, in Kafka's format, so that Kafka's own tools can read the metadata log.
//!
//! Owns batches of metadata records (values without keys, never compressed), and the control batch at the start of a
//! leader's term (KIP-595 `LeaderChangeMessage`). Must not know the content of values. A batch is built with base
//! offset 0 and leader epoch 0; the log sets both, which the checksum does not cover.

use thiserror::Error;

use pybroker_record::{
    BatchHeader, Compression, HEADER_LEN, LOG_OVERHEAD, RecordError, Records, batch_crc, seal, varint,
};

pub(crate) const CONTROL: i16 = 0x20;
/// Kafka's `ControlRecordType.LEADER_CHANGE`, after the key's version 0.
const LEADER_CHANGE_KEY: [u8; 4] = [0, 0, 0, 2];
/// Kafka's `ControlRecordType.KRAFT_VOTERS`, after the key's version 0 (KIP-853).
const VOTERS_KEY: [u8; 4] = [0, 0, 0, 6];

/// Why bytes are not valid batches of the metadata log.
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
        /// Description of the error.
        what: String,
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
    /// Timestamp of the first record, ms.
    pub timestamp: i64,
    /// Whether it is a control batch of the quorum, without metadata.
    pub is_control: bool,
    /// The values of the records.
    pub values: Vec<&'a [u8]>,
}

/// Builds a batch of metadata records, which are committed atomically.
pub fn build_records(values: &[&[u8]], timestamp: i64) -> Vec<u8> {
    let mut batch = begin(values.iter().map(|value| value.len() + 16).sum());
    for (delta, value) in values.iter().enumerate() {
        put_record(&mut batch, delta, None, value);
    }
    finish(&mut batch, values.len(), timestamp, 0);
    batch
}

/// Builds the control batch at the start of the term of `leader`. `granting` are those of `voters` that voted for it.
pub fn build_leader_change(leader: i32, voters: &[i32], granting: &[i32], timestamp: i64) -> Vec<u8> {
    let mut value = vec![0, 0];
    value.extend_from_slice(&leader.to_be_bytes());
    for ids in [voters, granting] {
        varint::put_unsigned(&mut value, ids.len() as u64 + 1);
        for voter in ids {
            value.extend_from_slice(&voter.to_be_bytes());
            value.push(0);
        }
    }
    value.push(0);
    build_control(&LEADER_CHANGE_KEY, &value, timestamp)
}

/// Returns whether a batch changes the voters.
pub fn changes_voters(batch: &[u8]) -> bool {
    let Ok(header) = BatchHeader::parse(batch) else { return false };
    header.is_control()
        && Records::new(&batch[HEADER_LEN..], header.record_count)
            .any(|record| record.is_ok_and(|record| record.key == Some(&VOTERS_KEY[..])))
}

/// Checks that the bytes are exactly one complete, valid batch, as every entry of a peer must be.
pub fn check_one(bytes: &[u8]) -> Result<(), BatchError> {
    let (_, size) = batch_at(bytes, 0)?;
    if size != bytes.len() {
        return Err(BatchError::Corrupt { at: size, what: "bytes follow it".to_owned() });
    }
    Ok(())
}

fn build_control(key: &[u8], value: &[u8], timestamp: i64) -> Vec<u8> {
    let mut batch = begin(value.len() + 32);
    put_record(&mut batch, 0, Some(key), value);
    finish(&mut batch, 1, timestamp, CONTROL);
    batch
}

/// Parses the complete batches at the start of `buffer` and checks them including checksums.
///
/// Returns them with the number of bytes that they take. An incomplete batch at the end is left out. If it is the
/// first one, that is an error.
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
    let corrupt = |what: &str| BatchError::Corrupt { at, what: what.to_owned() };
    let header = checked_header(buffer, at)?;
    let batch = &buffer[at..at + header.size()];
    let mut values = Vec::new();
    let mut records = Records::new(&batch[HEADER_LEN..], header.record_count);
    for (delta, record) in (0..).zip(&mut records) {
        let record = record.map_err(|error| corrupt(&error.to_string()))?;
        if record.offset_delta != delta {
            return Err(corrupt("its offsets are not consecutive"));
        }
        values.push(record.value.ok_or_else(|| corrupt("a record has no value"))?);
    }
    if records.left() > 0 {
        return Err(corrupt("bytes follow its records"));
    }
    let read = MetadataBatch {
        base_offset: header.base_offset,
        last_offset: header.last_offset(),
        epoch: header.partition_leader_epoch,
        timestamp: header.base_timestamp,
        is_control: header.is_control(),
        values,
    };
    Ok((read, header.size()))
}

/// Returns the header of the batch at `at`, which must be complete. Checks its checksum and counts.
pub(crate) fn checked_header(buffer: &[u8], at: usize) -> Result<BatchHeader, BatchError> {
    let corrupt = |what: &str| BatchError::Corrupt { at, what: what.to_owned() };
    let rest = &buffer[at..];
    let header = match BatchHeader::parse(rest) {
        Ok(header) => header,
        Err(RecordError::Truncated { .. }) => return Err(BatchError::Short { at }),
        Err(error) => return Err(corrupt(&error.to_string())),
    };
    let batch = rest.get(..header.size()).ok_or(BatchError::Short { at })?;
    if batch_crc(batch) != header.crc {
        return Err(corrupt("its checksum is wrong"));
    }
    if header.compression() != Ok(Compression::None) {
        return Err(corrupt("it is compressed"));
    }
    if header.record_count < 1 || header.last_offset_delta != header.record_count - 1 {
        return Err(corrupt("its record count and offsets disagree"));
    }
    Ok(header)
}

pub(crate) fn begin(capacity: usize) -> Vec<u8> {
    let mut batch = Vec::with_capacity(HEADER_LEN + capacity);
    batch.resize(HEADER_LEN, 0);
    batch
}

pub(crate) fn finish(batch: &mut [u8], count: usize, timestamp: i64, attributes: i16) {
    let header = BatchHeader {
        base_offset: 0,
        batch_length: (batch.len() - LOG_OVERHEAD) as i32,
        partition_leader_epoch: 0,
        magic: 2,
        crc: 0,
        attributes,
        last_offset_delta: count as i32 - 1,
        base_timestamp: timestamp,
        max_timestamp: timestamp,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        record_count: count as i32,
    };
    header.write(batch);
    seal(batch);
}

pub(crate) fn put_record(batch: &mut Vec<u8>, delta: usize, key: Option<&[u8]>, value: &[u8]) {
    let mut record = Vec::with_capacity(value.len() + 16);
    record.push(0);
    varint::put_varlong(&mut record, 0);
    varint::put_varlong(&mut record, delta as i64);
    match key {
        None => varint::put_varlong(&mut record, -1),
        Some(key) => {
            varint::put_varlong(&mut record, key.len() as i64);
            record.extend_from_slice(key);
        }
    }
    varint::put_varlong(&mut record, value.len() as i64);
    record.extend_from_slice(value);
    varint::put_varlong(&mut record, 0);
    varint::put_varlong(batch, record.len() as i64);
    batch.extend_from_slice(&record);
}
