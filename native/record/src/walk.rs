//! The fast walk over the records of a batch: returns only whether all are well-formed and follow the rules.
//!
//! It runs on every Produce, so it allocates nothing, builds no record and reports no reason. The slow walk
//! ([`super::blame`]) must agree with it on every batch.

use super::varint::{MAX_VARINT, MAX_VARLONG, try_unsigned, unzigzag};
use super::{BatchHeader, ValidateRules};

/// Walks the record section. Returns the largest timestamp in ms (-1: no record has one), or `None` when a record is
/// malformed or breaks a rule.
pub(super) fn walk(header: &BatchHeader, section: &[u8], rules: &ValidateRules) -> Option<i64> {
    let (earliest, latest) = rules.bounds().into_inner();
    let (mut at, mut smallest, mut largest) = (0, i64::MAX, -1_i64);
    for index in 0..header.record_count {
        let (end, timestamp) = record(section, at, index, rules.require_keys)?;
        let timestamp = header.base_timestamp.wrapping_add(timestamp);
        // -1 means no timestamp and is always allowed.
        smallest = if timestamp == -1 { smallest } else { smallest.min(timestamp) };
        largest = largest.max(timestamp);
        at = end;
    }
    let in_time = smallest >= earliest && (largest <= latest || largest == -1);
    (at == section.len() && in_time).then_some(largest)
}

/// Walks the record at `at`. Returns its end and its timestamp delta.
///
/// Lengths are below 2^31, so no sum overflows. `at` only grows: if it equals the record's end after the last part,
/// no part exceeds the record.
#[inline(always)]
fn record(section: &[u8], at: usize, index: i32, require_key: bool) -> Option<(usize, i64)> {
    let (size, at) = length(section, at)?;
    let end = at + size;
    // The attributes byte of a record is unused.
    let (timestamp, at) = try_unsigned(section, at + 1, MAX_VARLONG)?;
    let (offset_delta, at) = length(section, at)?;
    let (has_key, at) = part(section, at)?;
    let (_, at) = part(section, at)?;
    let (headers, mut at) = length(section, at)?;
    if headers > 0 {
        at = skip_headers(section, at, headers)?;
    }
    let fits = at == end && offset_delta == index as usize && (has_key || !require_key);
    fits.then_some((end, unzigzag(timestamp)))
}

/// Reads a varint that must not be negative.
#[inline(always)]
fn length(section: &[u8], at: usize) -> Option<(usize, usize)> {
    let (raw, at) = try_unsigned(section, at, MAX_VARINT)?;
    (raw & 1 == 0 && raw <= u64::from(u32::MAX)).then_some(((raw >> 1) as usize, at))
}

/// Reads a key or value. Returns whether it is not null, and its end.
#[inline(always)]
fn part(section: &[u8], at: usize) -> Option<(bool, usize)> {
    /// The zigzag encoding of -1: null.
    const NULL: u64 = 1;
    let (raw, at) = try_unsigned(section, at, MAX_VARINT)?;
    if raw == NULL {
        return Some((false, at));
    }
    (raw & 1 == 0 && raw <= u64::from(u32::MAX)).then_some((true, at + (raw >> 1) as usize))
}

#[inline(never)]
fn skip_headers(section: &[u8], mut at: usize, count: usize) -> Option<usize> {
    for _ in 0..count {
        let (key, after) = length(section, at)?;
        (_, at) = part(section, after + key)?;
    }
    Some(at)
}
