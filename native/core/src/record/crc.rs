//! CRC-32C (Castagnoli), the checksum of v2 batches, by the crc-fast crate, which uses what the processor has.

use crc_fast::CrcAlgorithm::Crc32Iscsi;

/// The CRC-32C of `bytes` (RFC 3720, appendix B.4).
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(Crc32Iscsi, bytes) as u32
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn the_vectors_of_rfc_3720() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }
}
