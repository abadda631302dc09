//! ListOffsets (API key 2), versions 1 to 7: the first and next offset of a partition, or the offset of a timestamp.
//!
//! Version notes: 2 adds the isolation level (KIP-98), 4 the leader epoch, 6 is flexible. Source: Kafka's
//! `ListOffsetsRequest` and `ListOffsetsResponse` schemas.

use super::primitives::{Malformed, Reader, Writer};
use super::{ErrorCode, TopicRef};

/// First flexible version.
const FLEXIBLE: i16 = 6;
/// The first version with `isolation_level`, and `throttle_time_ms` in the response.
const WITH_ISOLATION_LEVEL: i16 = 2;
/// The first version with `current_leader_epoch` (KIP-320).
const WITH_LEADER_EPOCH: i16 = 4;

/// The timestamp for the offset after the last record.
pub const LATEST: i64 = -1;
/// The timestamp for the first offset.
pub const EARLIEST: i64 = -2;

/// The query for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedOffset {
    pub topic: TopicRef,
    pub index: i32,
    /// Milliseconds since the epoch, [`LATEST`] or [`EARLIEST`].
    pub timestamp: i64,
}

/// Appends a request's message after its header in `out`. Partitions of one topic must be adjacent.
pub fn write_request(out: &mut Vec<u8>, version: i16, read_committed: bool, requested: &[RequestedOffset]) {
    let mut writer = Writer::new(out, version >= FLEXIBLE);
    writer.tags_none();
    writer.i32(-1); // replica_id: not a replica
    if version >= WITH_ISOLATION_LEVEL {
        writer.i8(read_committed.into());
    }
    let topics = requested.chunk_by(|a, b| a.topic == b.topic);
    writer.array_len(topics.clone().count());
    for partitions in topics {
        partitions[0].topic.write(&mut writer);
        writer.array_len(partitions.len());
        for partition in partitions {
            writer.i32(partition.index);
            if version >= WITH_LEADER_EPOCH {
                writer.i32(-1); // current_leader_epoch: not checked
            }
            writer.i64(partition.timestamp);
            writer.tags_none();
        }
        writer.tags_none();
    }
    writer.tags_none();
}

/// The result for one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedOffset {
    pub topic: TopicRef,
    pub index: i32,
    pub error: ErrorCode,
    /// The offset; -1 if there is none.
    pub offset: i64,
}

/// Parses the response with its message at `body` of `frame`.
///
/// # Errors
/// When a length exceeds the frame or a name is not UTF-8.
pub fn parse_response(frame: &[u8], body: usize, version: i16) -> Result<Vec<ListedOffset>, Malformed> {
    let mut reader = Reader::new(frame, body, version >= FLEXIBLE);
    reader.header_tags()?;
    if version >= WITH_ISOLATION_LEVEL {
        reader.i32()?; // throttle_time_ms
    }
    let mut listed = Vec::new();
    for _ in 0..reader.array_len()? {
        let topic = TopicRef::read(&mut reader, false)?;
        for _ in 0..reader.array_len()? {
            let (index, error) = (reader.i32()?, reader.error_code()?);
            reader.i64()?; // timestamp
            let offset = reader.i64()?;
            if version >= WITH_LEADER_EPOCH {
                reader.i32()?; // leader_epoch
            }
            reader.tags()?;
            listed.push(ListedOffset { topic: topic.clone(), index, error, offset });
        }
        reader.tags()?;
    }
    reader.tags()?;
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::topics::tests::topic;

    fn read_request(frame: &[u8], version: i16) -> Result<(bool, Vec<RequestedOffset>), Malformed> {
        let mut reader = Reader::new(frame, 0, version >= FLEXIBLE);
        reader.header_tags()?;
        assert_eq!(reader.i32()?, -1);
        let read_committed = version >= 2 && reader.i8()? == 1;
        let mut requested = Vec::new();
        for _ in 0..reader.array_len()? {
            let topic = TopicRef::read(&mut reader, false)?;
            for _ in 0..reader.array_len()? {
                let index = reader.i32()?;
                assert!(version < 4 || reader.i32()? == -1);
                requested.push(RequestedOffset { topic: topic.clone(), index, timestamp: reader.i64()? });
                reader.tags()?;
            }
            reader.tags()?;
        }
        reader.tags()?;
        assert_eq!(reader.left(), 0);
        Ok((read_committed, requested))
    }

    fn write_response(version: i16, listed: &[ListedOffset]) -> Vec<u8> {
        let mut frame = vec![0xee; 4];
        let mut writer = Writer::new(&mut frame, version >= FLEXIBLE);
        writer.tags_none();
        if version >= 2 {
            writer.i32(0);
        }
        writer.array_len(listed.len());
        for partition in listed {
            partition.topic.write(&mut writer);
            writer.array_len(1);
            writer.i32(partition.index);
            writer.error_code(partition.error);
            writer.i64(-1);
            writer.i64(partition.offset);
            if version >= 4 {
                writer.i32(3);
            }
            writer.tags_none();
            writer.tags_none();
        }
        writer.tags_none();
        frame
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, body in 0_usize..20, version in 1_i16..=7) {
            let _ = parse_response(&bytes, body, version);
        }

        #[test]
        fn a_request_is_read_as_it_was_written(
            version in 1_i16..=7, read_committed: bool,
            requested in prop::collection::vec((topic(false), any::<i32>(), any::<i64>()), 0..6),
        ) {
            let requested = requested.into_iter().map(|(topic, index, timestamp)| RequestedOffset { topic, index, timestamp });
            let (requested, mut out) = (requested.collect::<Vec<_>>(), Vec::new());
            write_request(&mut out, version, read_committed, &requested);
            prop_assert_eq!(read_request(&out, version), Ok((version >= 2 && read_committed, requested)));
        }

        #[test]
        fn a_response_is_read_as_it_was_written(
            version in 1_i16..=7, cut: prop::sample::Index,
            listed in prop::collection::vec((topic(false), any::<i32>(), any::<i16>(), any::<i64>()), 0..6),
        ) {
            let listed = listed.into_iter().map(|(topic, index, error, offset)| {
                ListedOffset { topic, index, error: ErrorCode(error), offset }
            });
            let listed: Vec<_> = listed.collect();
            let frame = write_response(version, &listed);
            prop_assert!(parse_response(&frame[..4 + cut.index(frame.len() - 4)], 4, version).is_err());
            prop_assert_eq!(parse_response(&frame, 4, version), Ok(listed));
        }
    }
}
