//! Variable-length integers of the record format: 7 bits per byte, lowest first; signed ones are zigzag-encoded (the
//! encoding of Protocol Buffers; Kafka's `ByteUtils`).

use super::RecordError;

/// Size of the longest varint in bytes.
pub const MAX_VARINT: usize = 5;
/// Size of the longest varlong in bytes.
pub const MAX_VARLONG: usize = 10;

/// Maps small magnitudes of either sign to small unsigned numbers.
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Appends an unsigned varint.
#[inline]
pub fn put_unsigned(out: &mut Vec<u8>, mut value: u64) {
    if value < 0x80 {
        return out.push(value as u8);
    }
    let (mut bytes, mut len) = ([0; MAX_VARLONG], 0);
    while value >= 0x80 {
        bytes[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    bytes[len] = value as u8;
    out.extend_from_slice(&bytes[..=len]);
}

/// Number of bytes after the end that [`write_unsigned`] may overwrite.
pub(super) const SLACK: usize = MAX_VARLONG;

/// Writes an unsigned varint at `at`. Returns the end. `bytes` must reach at least [`SLACK`] beyond `at`.
#[inline(always)]
pub(super) fn write_unsigned(bytes: &mut [u8], at: usize, mut value: u64) -> usize {
    let capacity = &mut bytes[at..at + SLACK];
    if value < 0x80 {
        capacity[0] = value as u8;
        return at + 1;
    }
    if value < 0x4000 {
        capacity[0] = value as u8 | 0x80;
        capacity[1] = (value >> 7) as u8;
        return at + 2;
    }
    let mut len = 0;
    while value >= 0x80 && len < MAX_VARLONG - 1 {
        capacity[len] = value as u8 | 0x80;
        value >>= 7;
        len += 1;
    }
    capacity[len] = value as u8;
    at + len + 1
}

/// Appends a zigzag varint or varlong, which have the same encoding.
pub fn put_varlong(out: &mut Vec<u8>, value: i64) {
    put_unsigned(out, zigzag(value));
}

/// Appends a zigzag varint.
pub fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_varlong(out, i64::from(value));
}

/// Returns the size of an unsigned varint in bytes.
pub const fn unsigned_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Returns the size of a zigzag varint or varlong in bytes.
pub const fn varlong_len(value: i64) -> usize {
    unsigned_len(zigzag(value))
}

/// Reads an unsigned varint of at most `max` bytes at `at`. Returns the value and its end.
///
/// # Errors
/// [`RecordError::Truncated`] when the bytes end too early, [`RecordError::Varint`] when it does not end within `max`
/// bytes or 64 bits.
#[inline(always)]
pub fn unsigned(bytes: &[u8], at: usize, max: usize) -> Result<(u64, usize), RecordError> {
    try_unsigned(bytes, at, max).ok_or_else(|| what_is_wrong(bytes, at, max))
}

/// [`unsigned`] for hot loops, which find the reason of an error in a second, slow walk.
///
/// Lengths, deltas and counts have one to three bytes. One load covers these, and the branches are predictable.
#[inline(always)]
pub(super) fn try_unsigned(bytes: &[u8], at: usize, max: usize) -> Option<(u64, usize)> {
    let Some(head) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) else { return unsigned_slow(bytes, at, max) };
    let word = u64::from_le_bytes(*head);
    if word & 0x80 == 0 {
        Some((word & 0x7f, at + 1))
    } else if word & 0x8000 == 0 {
        Some((word & 0x7f | word >> 1 & 0x3f80, at + 2))
    } else if word & 0x80_0000 == 0 {
        Some((word & 0x7f | word >> 1 & 0x3f80 | word >> 2 & 0x1f_c000, at + 3))
    } else {
        unsigned_in_word(word, at, max).or_else(|| unsigned_slow(bytes, at, max))
    }
}

/// Decodes a varint of up to eight bytes at the start of `word`, without a branch on its length.
#[inline]
fn unsigned_in_word(word: u64, at: usize, max: usize) -> Option<(u64, usize)> {
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return None;
    }
    let len = ends.trailing_zeros() as usize / 8 + 1;
    // Keeps the bytes up to the last one, then joins their 7-bit groups: first pairs, then pairs of pairs, then
    // halves.
    let bytes = word & (ends ^ (ends - 1));
    let pairs = bytes & 0x007f_007f_007f_007f | (bytes & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let value = fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4;
    (len <= max).then_some((value, at + len))
}

#[inline(never)]
fn unsigned_slow(bytes: &[u8], at: usize, max: usize) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (place, byte) in bytes.get(at..)?.iter().take(max).enumerate() {
        if place == MAX_VARLONG - 1 && *byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << (7 * place);
        if *byte < 0x80 {
            return Some((value, at + place + 1));
        }
    }
    None
}

#[cold]
fn what_is_wrong(bytes: &[u8], at: usize, max: usize) -> RecordError {
    let left = bytes.get(at..).unwrap_or_default();
    match left.iter().take(max).all(|byte| *byte >= 0x80) && left.len() < max {
        true => RecordError::Truncated { what: "a varint", wanted: left.len() + 1, left: left.len() },
        false => RecordError::Varint,
    }
}

/// Reads a zigzag varint at `at`. Returns the value and its end.
///
/// # Errors
/// The errors of [`unsigned`], and [`RecordError::Varint`] beyond 32 bits.
#[inline(always)]
pub fn varint(bytes: &[u8], at: usize) -> Result<(i32, usize), RecordError> {
    let (value, end) = unsigned(bytes, at, MAX_VARINT)?;
    let value = u32::try_from(value).map_err(|_| RecordError::Varint)?;
    Ok((unzigzag(u64::from(value)) as i32, end))
}

/// Reads a zigzag varlong at `at`. Returns the value and its end.
///
/// # Errors
/// The errors of [`unsigned`].
#[inline(always)]
pub fn varlong(bytes: &[u8], at: usize) -> Result<(i64, usize), RecordError> {
    let (value, end) = unsigned(bytes, at, MAX_VARLONG)?;
    Ok((unzigzag(value), end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_encodings() {
        for (value, bytes) in
            [(0_i64, &[0_u8][..]), (-1, &[1]), (1, &[2]), (63, &[126]), (-65, &[0x81, 1]), (300, &[0xd8, 4])]
        {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn a_varint_that_is_cut_or_does_not_end_is_refused_by_meaning() {
        let cut = RecordError::Truncated { what: "a varint", wanted: 3, left: 2 };
        assert_eq!(varint(&[0x80, 0x80], 0), Err(cut.clone()));
        assert_eq!(varlong(&[9, 0x80, 0x80], 1), Err(cut));
        assert_eq!(varint(&[0x80; 9], 0), Err(RecordError::Varint));
        assert_eq!(varint(&[0xff, 0xff, 0xff, 0xff, 0x1f], 0), Err(RecordError::Varint), "33 bits");
        assert_eq!(varlong(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], 0), Err(RecordError::Varint));
        assert!(varint(&[], 7).is_err());
    }

    proptest! {
        #[test]
        fn every_length_of_encoding_agrees(value: u64, shift in 0_u32..64, behind in 0_usize..12) {
            let value = value >> shift;
            let mut out = vec![0xee; 3];
            put_unsigned(&mut out, value);
            let end = out.len();
            prop_assert_eq!(end, 3 + unsigned_len(value));
            let mut written = vec![0xee; 3 + SLACK];
            prop_assert_eq!(write_unsigned(&mut written, 3, value), end);
            prop_assert_eq!(&written[..end], &out[..]);
            out.resize(end + behind, 0xff);
            prop_assert_eq!(unsigned(&out, 3, MAX_VARLONG), Ok((value, end)));
        }

        #[test]
        fn every_number_comes_back(value: i64, small: i32) {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            prop_assert_eq!(out.len(), varlong_len(value));
            prop_assert_eq!(varlong(&out, 0), Ok((value, out.len())));
            out.clear();
            put_varint(&mut out, small);
            prop_assert_eq!(varint(&out, 0), Ok((small, out.len())));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>, at in 0_usize..20) {
            let _ = (varint(&bytes, at), varlong(&bytes, at));
        }
    }
}
