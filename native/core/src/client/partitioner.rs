//! Which partition a record goes to when its sender does not say: by the key's hash, as every Kafka client does it, or, for
//! records without a key, the one that is being filled (KIP-480).

/// Kafka's hash of keys (murmur2 with Kafka's seed), so that a key goes to the same partition from every client.
pub fn murmur2(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut h = 0x9747_b28c_u32 ^ key.len() as u32;
    let mut words = key.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes([word[0], word[1], word[2], word[3]]).wrapping_mul(M);
        k ^= k >> 24;
        h = h.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    for (i, byte) in rest.iter().enumerate().rev() {
        h ^= u32::from(*byte) << (8 * i);
    }
    if !rest.is_empty() {
        h = h.wrapping_mul(M);
    }
    h ^= h >> 13;
    h = h.wrapping_mul(M);
    h ^ (h >> 15)
}

/// The partition of a key among `count` (at least 1).
pub fn for_key(key: &[u8], count: usize) -> usize {
    (murmur2(key) & 0x7fff_ffff) as usize % count.max(1)
}

#[cfg(test)]
mod tests {
    use super::murmur2;

    #[test]
    fn hashes_are_those_of_kafkas_own_tests() {
        // org.apache.kafka.common.utils.UtilsTest.testMurmur2
        let cases: [(&[u8], i32); 5] = [
            (b"21", -973932308),
            (b"foobar", -790332482),
            (b"a-little-bit-long-string", -985981536),
            (b"abc", 479470107),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ];
        for (key, hash) in cases {
            assert_eq!(hash, murmur2(key) as i32, "{key:?}");
        }
    }
}
