//! The slow walk over the records of a rejected batch, which finds the invalid records and the reasons.
//!
//! It may be slow and allocate, because no valid batch is passed to it.

use super::records::{Headers, Record, Records};
use super::{BatchHeader, InvalidBatch, RecordError, ValidateRules};

/// Most records to report, so that the response is not larger than the batch.
pub(super) const MOST_NAMED: usize = 64;

/// Returns the errors of a batch that [`super::walk`] rejects.
///
/// Reports all records without a key or with a timestamp out of bounds, up to a limit. After a malformed record the
/// walk ends.
pub(super) fn blame(header: &BatchHeader, section: &[u8], rules: &ValidateRules) -> InvalidBatch {
    let mut found: Vec<Fault> = Vec::new();
    let mut records = Records::new(section, header.record_count);
    for (index, record) in (0_i32..).zip(records.by_ref()) {
        match record {
            Ok(record) => found.extend(fault(header, &record, index, rules)),
            Err(RecordError::Record { index, reason }) => found.push(Fault::of_record(index, reason)),
            Err(error) => found.push(Fault::of_record(index, error)),
        }
        if found.len() == MOST_NAMED {
            break;
        }
    }
    refuse(found, || format!("{} bytes after the last of {} records", records.left(), header.record_count))
}

/// Returns the error for the `found` faults, or with the reason `otherwise` if there are none.
pub(super) fn refuse(found: Vec<Fault>, otherwise: impl FnOnce() -> String) -> InvalidBatch {
    let reason = match &found[..] {
        [] => otherwise(),
        [only] => only.text.clone(),
        [first, others @ ..] => format!("{}; {} more records are refused", first.text, others.len()),
    };
    // As in Kafka, the error is INVALID_TIMESTAMP only if all faults are about timestamps.
    let only_time = !found.is_empty() && found.iter().all(|fault| fault.is_time);
    let records = found.into_iter().map(|fault| (fault.index, fault.text)).collect();
    if only_time {
        InvalidBatch::InvalidTimestamp { records, reason }
    } else {
        InvalidBatch::InvalidRecord { records, reason }
    }
}

/// An invalid record.
pub(super) struct Fault {
    index: i32,
    is_time: bool,
    text: String,
}

impl Fault {
    fn of_record(index: i32, reason: impl std::fmt::Display) -> Self {
        Self { index, is_time: false, text: format!("record {index}: {reason}") }
    }

    pub(super) fn of_time(index: i32, reason: impl std::fmt::Display) -> Self {
        Self { index, is_time: true, text: format!("record {index}: {reason}") }
    }

    /// Checks a record against the topic's rules. The timestamp -1 means none and is always allowed.
    pub(super) fn of_rules(index: i32, has_key: bool, timestamp: i64, rules: &ValidateRules) -> Option<Self> {
        if rules.require_keys && !has_key {
            return Some(Self::of_record(index, "it has no key; a compacted topic needs one"));
        }
        let (earliest, latest) = rules.bounds().into_inner();
        let in_time = (earliest..=latest).contains(&timestamp) || timestamp == -1;
        let text = || format!("timestamp {timestamp}; {earliest} to {latest} are allowed");
        (!in_time).then(|| Self::of_time(index, text()))
    }
}

fn fault(header: &BatchHeader, record: &Record<'_>, index: i32, rules: &ValidateRules) -> Option<Fault> {
    if record.offset_delta != index {
        return Some(Fault::of_record(index, format_args!("its offset delta is {}", record.offset_delta)));
    }
    let mut headers = Headers::new(record);
    if headers.by_ref().any(|header| header.is_err()) || !headers.rest().is_empty() {
        return Some(Fault::of_record(index, "its headers do not fill it"));
    }
    let timestamp = header.base_timestamp.wrapping_add(record.timestamp_delta);
    Fault::of_rules(index, record.key.is_some(), timestamp, rules)
}
