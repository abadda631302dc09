//! Reads the records of a batch as Kafka's reader does, so that damage is reported with Kafka's messages.
//!
//! The broker's own reader ([`pybroker_record::Records`]) reports the broken rule. This one reports the errors of
//! Kafka's tools and stops where they stop. Only dumps use it.

use crate::walk::log_walk::WalkedBatch;
use pybroker_record::varint::{varint, varlong};
use pybroker_record::{BatchHeader, Compression, RecordError, TimestampType, records_section};

/// A record for a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkedRecord<'a> {
    /// Its offset in the log.
    pub offset: i64,
    /// Its timestamp, ms.
    pub timestamp: i64,
    /// Its sequence number; -1 for none.
    pub sequence: i32,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// The names of its headers.
    pub headers: Vec<&'a [u8]>,
}

const STRUCTURE: &str = "Found invalid record structure";

/// Reads the records of a batch of format 2 and calls `each` with each. The batch decompresses to at most `max`
/// bytes.
///
/// # Errors
/// Kafka's message for the first unreadable part.
pub fn read_records(
    header: &BatchHeader,
    batch: &[u8],
    max: usize,
    mut each: impl FnMut(WalkedRecord<'_>),
) -> Result<(), String> {
    if header.record_count < 0 {
        return Err(format!("Found invalid record count {} in magic v{} batch", header.record_count, header.magic));
    }
    let mut scratch = Vec::new();
    let section = records_section(header, batch, &mut scratch, max).map_err(|error| match error {
        RecordError::Codec(codec) => format!("Unknown compression type id: {codec}"),
        _ => "Failed to decompress record stream".to_owned(),
    })?;
    let streamed = header.compression() != Ok(Compression::None);
    let mut at = 0;
    for index in 0..header.record_count {
        let (record, end) = record_at(header, section, at, streamed)?;
        at = end;
        if index + 1 == header.record_count && at < section.len() {
            return Err("Incorrect declared batch size, records still remaining in file".to_owned());
        }
        each(record);
    }
    Ok(())
}

impl WalkedBatch<'_> {
    /// [`read_records`] of this batch. Reads nothing for formats before 2.
    ///
    /// # Errors
    /// As [`read_records`].
    pub fn read_records(&self, max: usize, each: impl FnMut(WalkedRecord<'_>)) -> Result<(), String> {
        self.header.map_or(Ok(()), |header| read_records(&header, self.bytes, max, each))
    }
}

/// Reads the record at `at`. Returns it and its end. Compressed records are read one by one, uncompressed ones as a
/// whole.
fn record_at<'a>(
    header: &BatchHeader,
    section: &'a [u8],
    at: usize,
    streamed: bool,
) -> Result<(WalkedRecord<'a>, usize), String> {
    let Ok((size, begin)) = varint(section, at) else {
        return Err("Incorrect declared batch size, premature EOF reached".to_owned());
    };
    let left = section.len() - begin;
    let fits = usize::try_from(size).is_ok_and(|size| size <= left);
    if size >= 0 && !fits {
        let why = if streamed {
            "the record payload reached EOF.".to_owned()
        } else {
            format!("the buffer has only {left} remaining bytes.")
        };
        return Err(format!("Invalid record size: expected {size} bytes in record payload, but instead {why}"));
    }
    let bytes = if streamed && fits { &section[..begin + size as usize] } else { section };
    let (record, end) = body(header, bytes, begin)?;
    let read = (end - begin) as i64;
    if read != i64::from(size) {
        return Err(format!(
            "Invalid record size: expected to read {size} bytes in record payload, but instead read {read}"
        ));
    }
    Ok((record, end))
}

fn body<'a>(header: &BatchHeader, bytes: &'a [u8], begin: usize) -> Result<(WalkedRecord<'a>, usize), String> {
    let malformed = |_| STRUCTURE.to_owned();
    let (timestamp_delta, at) = varlong(bytes, begin + 1).map_err(malformed)?;
    let (offset_delta, at) = varint(bytes, at).map_err(malformed)?;
    let (key, at) = part(bytes, at)?;
    let (value, at) = part(bytes, at)?;
    let (count, mut at) = varint(bytes, at).map_err(malformed)?;
    if count < 0 {
        return Err(format!("Found invalid number of record headers {count}"));
    }
    if count as usize > bytes.len() - at {
        return Err(format!(
            "Found invalid number of record headers. {count} is larger than the remaining size of the buffer"
        ));
    }
    let mut headers = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let (size, _) = varint(bytes, at).map_err(malformed)?;
        let (name, after) = part(bytes, at)?;
        headers.push(name.ok_or_else(|| format!("Invalid negative header key size {size}"))?);
        (_, at) = part(bytes, after)?;
    }
    let timestamp = match header.timestamp_type() {
        TimestampType::CreateTime => header.base_timestamp.wrapping_add(timestamp_delta),
        TimestampType::LogAppendTime => header.max_timestamp,
    };
    let sequence = match header.base_sequence {
        none @ ..0 => none,
        base => ((i64::from(base) + i64::from(offset_delta)) & i64::from(i32::MAX)) as i32,
    };
    let offset = header.base_offset.wrapping_add(i64::from(offset_delta));
    Ok((WalkedRecord { offset, timestamp, sequence, key, value, headers }, at))
}

/// Reads a length and its bytes. Any negative length is null.
fn part(bytes: &[u8], at: usize) -> Result<(Option<&[u8]>, usize), String> {
    let (size, at) = varint(bytes, at).map_err(|_| STRUCTURE.to_owned())?;
    let Ok(size) = usize::try_from(size) else { return Ok((None, at)) };
    let part = bytes.get(at..at + size).ok_or(STRUCTURE)?;
    Ok((Some(part), at + size))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use pybroker_record::{BatchBuilder, HEADER_LEN};

    fn batch(codec: Compression) -> Vec<u8> {
        let mut builder = BatchBuilder::new(codec, None, usize::MAX);
        builder.try_append(7, Some(b"k"), Some(b"v"), &[(b"h", None), (b"g", Some(b"x"))]).unwrap();
        builder.try_append(9, None, None, &[]).unwrap();
        let mut bytes = Vec::new();
        builder.finish(1, 0, i32::MAX, &mut bytes).unwrap();
        bytes
    }

    type Shown = Vec<(i64, i64, i32, usize)>;

    fn read(bytes: &[u8], count: i32) -> (Shown, Result<(), String>) {
        let mut shown = Vec::new();
        let header = BatchHeader { record_count: count, ..BatchHeader::parse(bytes).unwrap() };
        let result = read_records(&header, bytes, 1 << 20, |record| {
            shown.push((record.offset, record.timestamp, record.sequence, record.headers.len()));
        });
        (shown, result)
    }

    #[test]
    fn whole_batches_are_read() {
        for codec in [Compression::None, Compression::Zstd] {
            assert_eq!(read(&batch(codec), 2), (vec![(0, 7, i32::MAX, 2), (1, 9, 0, 0)], Ok(())));
        }
    }

    #[test]
    fn damage_is_reported_in_kafkas_words() {
        let whole = batch(Compression::None);
        let error = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[HEADER_LEN + at] = byte;
            read(&bytes, 2).1.unwrap_err()
        };
        assert_eq!(read(&whole, -1).1.unwrap_err(), "Found invalid record count -1 in magic v2 batch");
        assert_eq!(
            read(&whole, 1),
            (vec![], Err("Incorrect declared batch size, records still remaining in file".into()))
        );
        assert_eq!(read(&whole, 3).1.unwrap_err(), "Incorrect declared batch size, premature EOF reached");
        assert!(
            error(0, 0x7e).starts_with("Invalid record size: expected 63 bytes in record payload, but instead the")
        );
        assert!(error(0, 0x02).starts_with("Invalid record size: expected to read 1 bytes in record payload"));
        assert_eq!(error(4, 0x7e), STRUCTURE);
        assert_eq!(error(8, 0x01), "Found invalid number of record headers -1");
        assert_eq!(error(9, 0x01), "Invalid negative header key size -1");
    }

    proptest! {
        #[test]
        fn arbitrary_sections_never_panic(section: Vec<u8>, count in -1..5i32, codec in 0..5i16) {
            let mut bytes = batch(Compression::None)[..HEADER_LEN].to_vec();
            bytes.extend_from_slice(&section);
            let header = BatchHeader { record_count: count, attributes: codec, ..BatchHeader::parse(&bytes).unwrap() };
            let _ = read_records(&header, &bytes, 1 << 16, |_| {});
        }
    }
}
