//! Conversion of stored batches to the format of an older client (Kafka's `RecordsUtil.downConvert`).

use std::ops::ControlFlow;

use super::message_set::{MessageSetBuilder, NewMessage};
use super::stored::visit_records;
use super::{BatchHeader, Compression, RecordError};

/// The request of an older client.
#[derive(Clone, Copy, Debug)]
pub struct OlderFormat {
    /// 0 or 1.
    pub magic: i8,
    /// The requested offset.
    pub from: i64,
}

/// Appends a stored `batch` to `out` in an older format, with the same codec. A batch of that format or an older one
/// is copied. Decompresses into `scratch`, at most `max` bytes.
///
/// Headers, producer and transaction fields are dropped, and timestamps in v0. Control batches are left out. For an
/// uncompressed batch only the records from `from` on are converted, so that a client makes progress inside a large
/// batch.
///
/// # Errors
/// [`RecordError::Codec`] for zstd, which the older formats do not support (KIP-110). When the batch cannot be
/// decompressed or is malformed.
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
