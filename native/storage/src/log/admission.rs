//! Admission: a leader validates, stamps and converts a producer's records before it assigns offsets.
//!
//! Takes no lock. A batch in the log's format and codec is changed in place. Any other batch is built again.

use std::cell::RefCell;

use crate::{AppendError, LogConfig};
use pybroker_record::{
    BatchHeader, Codec, Compression, HEADER_LEN, InvalidBatch, RecordError, SentRecords, TimestampType, ValidateRules,
    recompress, up_convert, validate_headed,
};

/// A batch of an append: its start in the bytes, and its header (with offsets once they are assigned).
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) start: usize,
    pub(crate) header: BatchHeader,
}

/// Validated batches: the sent bytes, or new batches built from them.
pub(crate) enum Admitted<'a> {
    AsSent(&'a mut [u8], Vec<Placed>),
    Made(Vec<u8>, Vec<Placed>),
}

impl Admitted<'_> {
    /// Returns the bytes, and the position of each batch in them.
    pub(crate) fn parts(&mut self) -> (&mut [u8], &mut Vec<Placed>) {
        match self {
            Self::AsSent(bytes, placed) => (bytes, placed),
            Self::Made(bytes, placed) => (bytes, placed),
        }
    }
}

/// Validated records that have no offsets yet.
pub struct AdmittedRecords<'a> {
    pub(crate) batches: Admitted<'a>,
    /// The timestamp set by the broker, ms; -1 under CreateTime.
    pub(crate) log_append_time: i64,
}

thread_local! {
    /// The buffer for decompression during validation.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}
/// A larger scratch buffer is freed after use.
const SCRATCH_KEPT: usize = 4 << 20;

/// Validates the sent batches, and stamps, converts or recompresses them as the log's settings require.
pub(crate) fn admit<'a>(sent: SentRecords<'a>, config: &LogConfig, now_ms: i64) -> Result<Admitted<'a>, AppendError> {
    let rules = ValidateRules {
        max_message_bytes: config.max_message_bytes,
        timestamp_type: config.timestamp_type,
        timestamp_before_max_ms: config.timestamp_before_max_ms,
        timestamp_after_max_ms: config.timestamp_after_max_ms,
        now_ms,
        require_keys: config.require_keys,
        max_decompressed_bytes: config.max_decompressed_bytes,
    };
    let codec = config.compression.map(|compression| Codec { compression, level: config.compression_level });
    SCRATCH.with_borrow_mut(|scratch| {
        let admitted = match sent.old_format() {
            Some(_) => convert(sent.bytes, &rules, codec, scratch),
            None => keep(sent, &rules, codec, scratch),
        };
        // Also after a rejected batch: batches that decompress to the limit are often rejected.
        if scratch.capacity() > SCRATCH_KEPT {
            *scratch = Vec::new();
        }
        admitted.map_err(AppendError::Invalid)
    })
}

/// Converts a set of old messages to one batch.
fn convert<'a>(
    set: &[u8],
    rules: &ValidateRules,
    codec: Option<Codec>,
    scratch: &mut Vec<u8>,
) -> Result<Admitted<'a>, InvalidBatch> {
    let mut made = Vec::new();
    let mut header = up_convert(set, rules, codec, scratch, &mut made)?;
    if rules.timestamp_type == TimestampType::LogAppendTime {
        header.set_log_append_time(&mut made, rules.now_ms);
    }
    Ok(Admitted::Made(made, vec![Placed { start: 0, header }]))
}

/// Keeps batches as sent. From the first batch in another codec than the topic's on, copies or recompresses them.
fn keep<'a>(
    sent: SentRecords<'a>,
    rules: &ValidateRules,
    codec: Option<Codec>,
    scratch: &mut Vec<u8>,
) -> Result<Admitted<'a>, InvalidBatch> {
    let mut placed = Vec::with_capacity(sent.headers().len());
    let mut made = None;
    let mut start = 0;
    let (bytes, form) = sent.into_parts();
    for header in form.headers() {
        let (before, rest) = bytes.split_at_mut(start);
        let batch = &mut rest[..header.size()];
        let mut checked = validate_headed(*header, batch, rules, scratch)?;
        stamp(&mut checked, header.max_timestamp, batch, rules);
        match codec.filter(|codec| header.compression() != Ok(codec.compression)) {
            Some(codec) => {
                let made = made.get_or_insert_with(|| before.to_vec());
                placed.push(recompressed(&checked, batch, codec, scratch, rules.max_message_bytes, made)?);
            }
            None => match &mut made {
                Some(made) => {
                    placed.push(Placed { start: made.len(), header: checked });
                    made.extend_from_slice(batch);
                }
                None => placed.push(Placed { start, header: checked }),
            },
        }
        start += header.size();
    }
    Ok(match made {
        Some(made) => Admitted::Made(made, placed),
        None => Admitted::AsSent(bytes, placed),
    })
}

/// Sets the broker's time in a batch, or its true largest timestamp where the producer `stated` another.
fn stamp(header: &mut BatchHeader, stated: i64, batch: &mut [u8], rules: &ValidateRules) {
    if rules.timestamp_type == TimestampType::LogAppendTime {
        header.set_log_append_time(batch, rules.now_ms);
    } else if header.max_timestamp != stated {
        // Indexes and retention use this timestamp, so the producer's value is not trusted.
        header.set_max_timestamp(batch, header.max_timestamp);
    }
}

/// Recompresses a batch to the topic's codec and appends it to `made`, at most `limit` bytes. A compressed batch has
/// been decompressed into `scratch` already.
fn recompressed(
    header: &BatchHeader,
    batch: &[u8],
    codec: Codec,
    scratch: &[u8],
    limit: usize,
    made: &mut Vec<u8>,
) -> Result<Placed, InvalidBatch> {
    let plain = header.compression() == Ok(Compression::None);
    let section = if plain { &batch[HEADER_LEN..] } else { scratch };
    let start = made.len();
    let failed = |error: RecordError| InvalidBatch::Corrupt(error.to_string());
    let header = recompress(header, section, codec, made).map_err(failed)?;
    if header.size() > limit {
        return Err(InvalidBatch::TooLarge { size: header.size(), limit });
    }
    Ok(Placed { start, header })
}
