//! CRC-32C (Castagnoli), the checksum of v2 batches, and CRC-32, that of older messages. The crc-fast crate computes
//! both with the processor's instructions.

use crc_fast::CrcAlgorithm::{Crc32Iscsi, Crc32IsoHdlc};
use crc_fast::Digest;

/// Computes the CRC-32C of `bytes` (RFC 3720, appendix B.4).
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(Crc32Iscsi, bytes) as u32
}

/// Computes the CRC-32 of `bytes` (ISO 3309, the checksum of gzip).
pub fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::checksum(Crc32IsoHdlc, bytes) as u32
}

/// An incremental CRC-32C.
#[derive(Clone, Debug)]
pub struct Crc32c(Digest);

impl Crc32c {
    /// Creates a checksum over no bytes.
    #[expect(clippy::new_without_default, reason = "it is no setting, and `new` says what it is")]
    pub fn new() -> Self {
        Self(Digest::new(Crc32Iscsi))
    }

    /// Adds `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the checksum of all bytes so far.
    pub fn value(&self) -> u32 {
        self.0.finalize() as u32
    }
}

/// Returns the CRC-32C of bytes with the checksum `crc` (0 for none) followed by `more`.
pub fn crc32c_continued(crc: u32, more: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(Crc32Iscsi, u64::from(!crc));
    digest.update(more);
    digest.finalize() as u32
}

/// Returns the CRC-32C of concatenated bytes, from the checksums of both parts and the length of the second.
///
/// A checksum is a polynomial modulo P, and each following byte multiplies it by x⁸. The constant parts of both
/// checksums cancel out. The same function of crc-fast squares matrices and takes 100 µs; this one takes less than 1
/// µs.
pub fn joined(first: u32, second: u32, second_len: usize) -> u32 {
    let mut shifted = first;
    let mut left = second_len;
    while left != 0 {
        shifted = product(shifted, SHIFTS[left.trailing_zeros() as usize]);
        left &= left - 1;
    }
    shifted ^ second
}

/// P of CRC-32C in reflected form: bit 31 is x⁰, and x³² is left out.
const CASTAGNOLI: u32 = 0x82f6_3b78;

/// x to the power of 8·2ⁿ, modulo P: the factor of 2ⁿ following bytes.
const SHIFTS: [u32; usize::BITS as usize] = {
    let mut shifts = [1 << (31 - 8); usize::BITS as usize];
    let mut n = 1;
    while n < shifts.len() {
        shifts[n] = product(shifts[n - 1], shifts[n - 1]);
        n += 1;
    }
    shifts
};

/// Returns the product of two polynomials over GF(2), modulo P.
const fn product(left: u32, mut right: u32) -> u32 {
    let mut sum = 0;
    let mut bit = 1 << 31;
    while bit != 0 {
        // A mask of all ones if the term is present. Branches on the bits would be mispredicted half of the time.
        sum ^= right & ((left & bit != 0) as u32).wrapping_neg();
        right = right >> 1 ^ CASTAGNOLI & (right & 1).wrapping_neg();
        bit >>= 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Crc32c, crc32, crc32c, crc32c_continued, joined};

    /// The definition, bit by bit: polynomial 0x1edc6f41, reflected.
    fn by_definition(bytes: &[u8]) -> u32 {
        let step = |crc: u32| if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0x82f6_3b78 };
        !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc)))
    }

    proptest! {
        #[test]
        fn parts_and_whole_agree_with_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..2000), cut: prop::sample::Index) {
            let expected = by_definition(&bytes);
            prop_assert_eq!(crc32c(&bytes), expected);
            let mut parts = Crc32c::new();
            let (front, back) = bytes.split_at(cut.index(bytes.len() + 1));
            parts.update(front);
            parts.update(back);
            prop_assert_eq!(parts.value(), expected);
            prop_assert_eq!(crc32c_continued(crc32c(front), back), expected);
            prop_assert_eq!(crc32c_continued(0, &bytes), expected);
            prop_assert_eq!(joined(crc32c(front), crc32c(back), back.len()), expected);
        }
    }

    #[test]
    fn checksums_of_large_parts_are_joined_too() {
        let bytes: Vec<u8> = (0..3_000_001_u32).map(|n| ((n * 31) >> 3) as u8).collect();
        for cut in [1, 40, 1 << 20, 3_000_000] {
            let (front, back) = bytes.split_at(cut);
            assert_eq!(joined(crc32c(front), crc32c(back), back.len()), crc32c(&bytes), "cut at {cut}");
        }
    }

    #[test]
    fn the_vectors_of_rfc_3720() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn the_check_value_of_crc_32() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
