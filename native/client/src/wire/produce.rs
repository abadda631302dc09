//! Produce (key 0): batches of records to a leader. The records travel beside the fields, uncopied.

use std::sync::Arc;

use super::fields::{FieldError, FieldWriter};
use super::header::{Api, PRODUCE, finish_frame};
use pybroker_wire::ErrorCode;

/// Bytes of a request: fields, then records, then fields, as they go on the wire.
#[derive(Debug, Clone)]
pub enum Segment {
    Fields(Vec<u8>),
    Records(Arc<Vec<u8>>),
}

/// One partition's batch in a request.
#[derive(Debug, Clone)]
pub struct PartitionBatch {
    pub topic: Arc<str>,
    pub index: i32,
    pub records: Arc<Vec<u8>>,
}

/// Everything before the batches.
#[derive(Debug, Clone, Copy)]
pub struct ProduceHead<'a> {
    pub version: i16,
    pub correlation_id: i32,
    pub client_id: &'a str,
    pub acks: i16,
    pub timeout_ms: i32,
}

/// A whole request, size included. Batches of one topic must stand together.
pub fn request(head: ProduceHead<'_>, batches: &[PartitionBatch]) -> Vec<Segment> {
    let flexible = PRODUCE.flexible(head.version);
    let mut segments: Vec<Segment> = Vec::with_capacity(batches.len() * 2 + 1);
    let mut fields = Vec::with_capacity(128);
    Api::start_request(&PRODUCE, &mut fields, head.version, head.correlation_id, head.client_id);
    let mut body = FieldWriter::new(&mut fields, flexible);
    body.null_string();
    body.i16(head.acks);
    body.i32(head.timeout_ms);
    let topics = batches.chunk_by(|a, b| a.topic == b.topic);
    body.array(topics.clone().count());
    for partitions in topics {
        let mut body = FieldWriter::new(&mut fields, flexible);
        body.string(&partitions[0].topic);
        body.array(partitions.len());
        for batch in partitions {
            let mut body = FieldWriter::new(&mut fields, flexible);
            body.i32(batch.index);
            body.bytes_length(batch.records.len());
            segments.push(Segment::Fields(std::mem::take(&mut fields)));
            segments.push(Segment::Records(Arc::clone(&batch.records)));
            FieldWriter::new(&mut fields, flexible).end();
        }
        FieldWriter::new(&mut fields, flexible).end();
    }
    FieldWriter::new(&mut fields, flexible).end();
    segments.push(Segment::Fields(fields));
    let beside = segments.iter().skip(1).map(Segment::len).sum();
    if let Some(Segment::Fields(first)) = segments.first_mut() {
        finish_frame(first, beside);
    }
    segments
}

impl Segment {
    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Fields(bytes) => bytes,
            Self::Records(bytes) => bytes,
        }
    }

    /// How many bytes there are to send.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What became of one partition's batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionOutcome {
    pub topic: String,
    pub index: i32,
    pub error_code: ErrorCode,
    pub base_offset: i64,
    /// -1 where the records keep the producer's timestamps.
    pub log_append_time_ms: i64,
    pub error_message: Option<String>,
}

/// Read the answer.
pub fn read_response(frame: &[u8], version: i16) -> Result<Vec<PartitionOutcome>, FieldError> {
    let (_, mut body) = PRODUCE.response_body(version, frame)?;
    let mut outcomes = Vec::new();
    for _ in 0..body.array()? {
        let topic = body.string()?;
        for _ in 0..body.array()? {
            let (index, error_code, base_offset, log_append_time_ms) =
                (body.i32()?, ErrorCode(body.i16()?), body.i64()?, body.i64()?);
            if version >= 5 {
                body.i64()?;
            }
            let mut error_message = None;
            if version >= 8 {
                for _ in 0..body.array()? {
                    body.i32()?;
                    let text = body.nullable_string()?;
                    error_message = error_message.or(text.map(str::to_owned));
                    body.end()?;
                }
                error_message = body.nullable_string()?.map(str::to_owned).or(error_message);
            }
            body.end()?;
            let topic = topic.to_owned();
            outcomes.push(PartitionOutcome {
                topic,
                index,
                error_code,
                base_offset,
                log_append_time_ms,
                error_message,
            });
        }
        body.end()?;
    }
    Ok(outcomes)
}
