//! From what is stored to what an older client reads (Kafka's `RecordsUtil.downConvert`).

use std::ops::ControlFlow;

use super::message_set::{MessageSetBuilder, NewMessage};
use super::stored::visit_records;
use super::{BatchHeader, Compression, RecordError};

/// What an older client asks for.
#[derive(Clone, Copy, Debug)]
pub struct OlderFormat {
    /// 0 or 1.
    pub magic: i8,
    /// The first offset wanted.
    pub from: i64,
}

/// Appends a stored `batch` to `out` in an older format, in its codec; one that is no newer goes as it is. It decompresses
/// into `scratch`, at most `max` bytes.
///
/// What the older format cannot say is left out: headers, producers, transactions, in v0 timestamps; control batches
/// vanish. Of an uncompressed batch only the records from `from` on are given, so that a client that asks for the middle
/// of a large one gets on.
///
/// # Errors
/// [`RecordError::Codec`] for zstd, which the older formats do not have (KIP-110); what does not decompress, or is malformed.
pub fn down_convert(
    header: &BatchHeader,
    batch: &[u8],
    OlderFormat { magic, from }: OlderFormat,
    scratch: &mut Vec<u8>,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<(), RecordError> {
    if header.magic <= magic {
        out.extend_from_slice(batch);
        return Ok(());
    }
    if header.is_control() {
        return Ok(());
    }
    let codec = header.compression()?;
    if codec == Compression::Zstd {
        return Err(RecordError::Codec(codec as i8));
    }
    let mut set = MessageSetBuilder::new(magic, codec, header.timestamp_type());
    visit_records(header, batch, scratch, max, |record| {
        if record.offset >= from || codec != Compression::None {
            let (offset, timestamp) = (record.offset, record.timestamp);
            set.append(&NewMessage { offset, timestamp, key: record.key, value: record.value });
        }
        ControlFlow::Continue(())
    })?;
    set.finish(out)
}
