//! Variable-length integers of the record format: 7 bits a byte, lowest first; signed ones zigzag-coded (Protocol
//! Buffers' encoding; Kafka's `ByteUtils`).

use super::RecordError;

/// Bytes of the longest varint and varlong.
pub const MAX_VARINT: usize = 5;
/// Bytes of the longest varlong.
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
pub fn put_unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a zigzag varint or varlong; the two encodings agree.
pub fn put_varlong(out: &mut Vec<u8>, value: i64) {
    put_unsigned(out, zigzag(value));
}

/// Appends a zigzag varint.
pub fn put_varint(out: &mut Vec<u8>, value: i32) {
    put_varlong(out, i64::from(value));
}

/// Bytes of an unsigned varint.
pub const fn unsigned_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Bytes of a zigzag varint or varlong.
pub const fn varlong_len(value: i64) -> usize {
    unsigned_len(zigzag(value))
}

/// Reads an unsigned varint of at most `max` bytes at `at`; the value and where it ends.
#[inline]
pub fn unsigned(bytes: &[u8], at: usize, max: usize) -> Result<(u64, usize), RecordError> {
    // One byte is by far the most frequent length in records.
    if let Some(&byte) = bytes.get(at)
        && byte < 0x80
    {
        return Ok((u64::from(byte), at + 1));
    }
    unsigned_long(bytes, at, max)
}

fn unsigned_long(bytes: &[u8], at: usize, max: usize) -> Result<(u64, usize), RecordError> {
    let mut value = 0_u64;
    for place in 0..max {
        let byte = *bytes.get(at + place).ok_or(RecordError::Truncated {
            what: "a varint",
            wanted: place + 1,
            left: place,
        })?;
        let bits = u64::from(byte & 0x7f);
        if place == 9 && byte > 1 {
            return Err(RecordError::Varint);
        }
        value |= bits << (7 * place);
        if byte < 0x80 {
            return Ok((value, at + place + 1));
        }
    }
    Err(RecordError::Varint)
}

/// Reads a zigzag varint at `at`; the value and where it ends.
#[inline]
pub fn varint(bytes: &[u8], at: usize) -> Result<(i32, usize), RecordError> {
    let (value, end) = unsigned(bytes, at, MAX_VARINT)?;
    let value = u32::try_from(value).map_err(|_| RecordError::Varint)?;
    Ok((unzigzag(u64::from(value)) as i32, end))
}

/// Reads a zigzag varlong at `at`; the value and where it ends.
#[inline]
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

    proptest! {
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
