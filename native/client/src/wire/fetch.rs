//! Fetch (key 1): records from a leader. Sessions (KIP-227) are not used: each request names its partitions.

use std::ops::Range;
use std::sync::Arc;

use super::fields::{FieldError, FieldWriter};
use super::header::FETCH;
use pybroker_wire::ErrorCode;

/// What bounds one request. Field names are Kafka's keys.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    pub max_wait_ms: i32,
    pub min_bytes: i32,
    pub max_bytes: i32,
    pub partition_max_bytes: i32,
    pub read_committed: bool,
}

/// One partition to read.
#[derive(Debug, Clone)]
pub struct FetchPosition {
    pub topic: Arc<str>,
    pub index: i32,
    pub offset: i64,
    /// -1: unknown, not checked by the broker (KIP-320).
    pub leader_epoch: i32,
}

/// Ask one leader. Positions of one topic must stand together.
pub fn write_request(out: &mut Vec<u8>, version: i16, limits: FetchLimits, positions: &[FetchPosition]) {
    let mut body = FieldWriter::new(out, FETCH.flexible(version));
    body.i32(-1);
    body.i32(limits.max_wait_ms);
    body.i32(limits.min_bytes);
    body.i32(limits.max_bytes);
    body.i8(i8::from(limits.read_committed));
    if version >= 7 {
        body.i32(0);
        body.i32(-1);
    }
    let topics = positions.chunk_by(|a, b| a.topic == b.topic);
    body.array(topics.clone().count());
    for partitions in topics {
        body.string(&partitions[0].topic);
        body.array(partitions.len());
        for position in partitions {
            body.i32(position.index);
            if version >= 9 {
                body.i32(position.leader_epoch);
            }
            body.i64(position.offset);
            if version >= 12 {
                body.i32(-1);
            }
            if version >= 5 {
                body.i64(-1);
            }
            body.i32(limits.partition_max_bytes);
            body.end();
        }
        body.end();
    }
    if version >= 7 {
        body.array(0);
    }
    if version >= 11 {
        body.string("");
    }
    body.end();
}

/// What one partition sent: an error code, or batches at a place of the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedPartition {
    pub topic: String,
    pub index: i32,
    pub error_code: ErrorCode,
    pub high_watermark: i64,
    pub log_start_offset: i64,
    /// `(producer id, first offset)` of transactions that were aborted, in the order of the log.
    pub aborted: Vec<(i64, i64)>,
    /// Where the batches lie in the frame; the last one may be cut short.
    pub records: Range<usize>,
}

/// Read the answer; the request's error code comes first.
pub fn read_response(frame: &[u8], version: i16) -> Result<(ErrorCode, Vec<FetchedPartition>), FieldError> {
    let (_, mut body) = FETCH.response_body(version, frame)?;
    body.i32()?;
    let mut error_code = ErrorCode::NONE;
    if version >= 7 {
        error_code = ErrorCode(body.i16()?);
        body.i32()?;
    }
    let mut fetched = Vec::new();
    for _ in 0..body.array()? {
        let topic = body.string()?;
        for _ in 0..body.array()? {
            let (index, error_code, high_watermark) = (body.i32()?, ErrorCode(body.i16()?), body.i64()?);
            body.i64()?;
            let log_start_offset = if version >= 5 { body.i64()? } else { -1 };
            let mut aborted = Vec::new();
            for _ in 0..body.array()? {
                aborted.push((body.i64()?, body.i64()?));
                body.end()?;
            }
            if version >= 11 {
                body.i32()?;
            }
            let records = body.bytes_range()?;
            body.end()?;
            let topic = topic.to_owned();
            fetched.push(FetchedPartition {
                topic,
                index,
                error_code,
                high_watermark,
                log_start_offset,
                aborted,
                records,
            });
        }
        body.end()?;
    }
    Ok((error_code, fetched))
}
