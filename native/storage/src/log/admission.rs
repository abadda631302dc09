//! What a leader makes of records as a producer sent them, before they are placed: checked, stamped, in the format and the
//! codec that the log keeps.
//!
//! No lock is held here. A batch of the log's own format and codec is patched where it lies; anything else is made anew.

use std::cell::RefCell;

use crate::{AppendError, LogConfig};
use pybroker_record::{
    BatchHeader, Codec, Compression, HEADER_LEN, InvalidBatch, RecordError, SentRecords, TimestampType, ValidateRules,
    recompress, up_convert, validate_headed,
};

/// A batch of an append: where it starts in the bytes, and its header (with offsets as soon as they are known).
#[derive(Clone, Copy)]
pub(crate) struct Placed {
    pub(crate) start: usize,
    pub(crate) header: BatchHeader,
}

/// Batches that may be appended: those sent, or those made of them.
pub(crate) enum Admitted<'a> {
    AsSent(&'a mut [u8], Vec<Placed>),
    Made(Vec<u8>, Vec<Placed>),
}

impl Admitted<'_> {
    /// The bytes, and where each batch stands in them.
    pub(crate) fn parts(&mut self) -> (&mut [u8], &mut Vec<Placed>) {
        match self {
            Self::AsSent(bytes, placed) => (bytes, placed),
            Self::Made(bytes, placed) => (bytes, placed),
        }
    }
}

/// Records that a log's rules allow, which have no place in it yet.
pub struct AdmittedRecords<'a> {
    pub(crate) batches: Admitted<'a>,
    /// The timestamp that the broker has set, ms; -1 under CreateTime.
    pub(crate) log_append_time: i64,
}

thread_local! {
    /// Where compressed batches decompress while they are checked.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}
/// A scratch buffer that grew beyond this is not kept.
const SCRATCH_KEPT: usize = 4 << 20;

/// Checks what was sent by the log's rules, and stamps, converts or recompresses it as they ask.
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
        // Also after a batch that was refused: what decompresses to the limit is the likeliest to be.
        if scratch.capacity() > SCRATCH_KEPT {
            *scratch = Vec::new();
        }
        admitted.map_err(AppendError::Invalid)
    })
}

/// Makes one batch of a set of old messages.
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

/// Takes batches as they are; from the first on that is in another codec than the topic's they are made anew.
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

/// Writes the broker's time into a batch, or its largest timestamp where it `stated` another.
fn stamp(header: &mut BatchHeader, stated: i64, batch: &mut [u8], rules: &ValidateRules) {
    if rules.timestamp_type == TimestampType::LogAppendTime {
        header.set_log_append_time(batch, rules.now_ms);
    } else if header.max_timestamp != stated {
        // Indexes and retention go by it, so it is not taken on the producer's word.
        header.set_max_timestamp(batch, header.max_timestamp);
    }
}

/// Appends a batch in the topic's codec to `made`, at most `limit` bytes. It has been decompressed into the scratch already, if it was compressed.
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
