//! ListOffsets (key 2): where a partition begins or ends.

use super::fields::{FieldError, FieldWriter};
use super::header::LIST_OFFSETS;
use pybroker_wire::ErrorCode;

/// The offset after the last record.
pub const LATEST: i64 = -1;
/// The first offset.
pub const EARLIEST: i64 = -2;

/// What is asked for one partition: a timestamp in ms, `LATEST` or `EARLIEST`.
#[derive(Debug, Clone, Copy)]
pub struct OffsetQuestion<'a> {
    pub topic: &'a str,
    pub index: i32,
    pub timestamp: i64,
}

/// The answer for one partition; offset -1 means none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffsetAnswer {
    pub topic: String,
    pub index: i32,
    pub error_code: ErrorCode,
    pub offset: i64,
}

/// Ask one leader. Questions about one topic must stand together.
pub fn write_request(out: &mut Vec<u8>, version: i16, read_committed: bool, questions: &[OffsetQuestion<'_>]) {
    let mut body = FieldWriter::new(out, LIST_OFFSETS.flexible(version));
    body.i32(-1);
    if version >= 2 {
        body.i8(i8::from(read_committed));
    }
    let topics = questions.chunk_by(|a, b| a.topic == b.topic);
    body.array(topics.clone().count());
    for partitions in topics {
        body.string(partitions[0].topic);
        body.array(partitions.len());
        for question in partitions {
            body.i32(question.index);
            if version >= 4 {
                body.i32(-1);
            }
            body.i64(question.timestamp);
            body.end();
        }
        body.end();
    }
    body.end();
}

/// Read the answer.
pub fn read_response(frame: &[u8], version: i16) -> Result<Vec<OffsetAnswer>, FieldError> {
    let (_, mut body) = LIST_OFFSETS.response_body(version, frame)?;
    if version >= 2 {
        body.i32()?;
    }
    let mut answers = Vec::new();
    for _ in 0..body.array()? {
        let topic = body.string()?;
        for _ in 0..body.array()? {
            let (index, error_code, _timestamp, offset) =
                (body.i32()?, ErrorCode(body.i16()?), body.i64()?, body.i64()?);
            if version >= 4 {
                body.i32()?;
            }
            body.end()?;
            answers.push(OffsetAnswer { topic: topic.to_owned(), index, error_code, offset });
        }
        body.end()?;
    }
    Ok(answers)
}
