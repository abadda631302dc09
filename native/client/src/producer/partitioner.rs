//! Partitioners for records without a partition: by the hash of the key, as in every Kafka client, or for records without a
//! key the sticky partition (KIP-480). Other partitioners of Kafka and librdkafka are available by their names.

use std::cell::Cell;
use std::str::FromStr;

use crate::clock::now_us;
use crate::random::split_mix;
use pybroker_record::crc32;

/// Kafka's hash of keys (murmur2 with Kafka's seed), so that every client sends a key to the same partition.
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

/// librdkafka's FNV-1a: 32 bits, without the sign (as in Sarama).
fn fnv1a(key: &[u8]) -> u32 {
    let hash = key.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    (hash as i32).unsigned_abs()
}

/// The partitioner of records without a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partitioner {
    /// Kafka's default: by the hash of the key; without a key (or with `partitioner.ignore.keys`) the sticky partition.
    Sticky {
        /// Choose the partition as for a record without a key.
        ignores_keys: bool,
    },
    /// Kafka's `RoundRobinPartitioner`: the next partition with a leader for each record, whatever its key.
    RoundRobin,
    /// librdkafka's, by the hash of the key.
    Hashed {
        /// The hash function.
        hash: KeyHash,
        /// Hash records without key too (with CRC-32 also those with an empty key): all of them get the same partition.
        hashes_missing: bool,
    },
    /// librdkafka's `random`: any partition, whatever the key.
    Random,
}

/// A hash function of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHash {
    Crc32,
    /// Kafka's.
    Murmur2,
    Fnv1a,
}

/// The choice of a partitioner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// This partition.
    Partition(usize),
    /// The sticky partition.
    Sticky,
    /// The next partition, round-robin.
    Turn,
}

impl Partitioner {
    /// Choose the partition of a record with this key, among `count` partitions.
    #[inline]
    pub fn choose(self, key: Option<&[u8]>, count: usize) -> Choice {
        match (self, key) {
            (Self::Sticky { ignores_keys: false }, Some(key)) => Choice::Partition(for_key(key, count)),
            (Self::Sticky { .. }, _) => Choice::Sticky,
            (Self::RoundRobin, _) => Choice::Turn,
            (Self::Hashed { hash, .. }, key) if !self.is_sticky(key) => {
                Choice::Partition(hash.of(key.unwrap_or_default()) as usize % count.max(1))
            }
            (Self::Hashed { .. }, _) => Choice::Sticky,
            (Self::Random, _) => Choice::Partition(random() % count.max(1)),
        }
    }

    /// Whether records with this key get the sticky partition.
    #[inline]
    pub fn is_sticky(self, key: Option<&[u8]>) -> bool {
        match self {
            Self::Sticky { ignores_keys } => ignores_keys || key.is_none(),
            Self::Hashed { hashes_missing: true, .. } | Self::RoundRobin | Self::Random => false,
            Self::Hashed { hash: KeyHash::Crc32, .. } => key.is_none_or(<[u8]>::is_empty),
            Self::Hashed { .. } => key.is_none(),
        }
    }
}

impl KeyHash {
    fn of(self, key: &[u8]) -> u32 {
        match self {
            Self::Crc32 => crc32(key),
            Self::Murmur2 => murmur2(key) & 0x7fff_ffff,
            Self::Fnv1a => fnv1a(key),
        }
    }
}

fn random() -> usize {
    thread_local!(static STATE: Cell<u64> = Cell::new(now_us() as u64));
    STATE.with(|state| {
        let mut next = state.get();
        let drawn = split_mix(&mut next);
        state.set(next);
        drawn as usize
    })
}

/// Parses the names in settings: Kafka's class, with or without its package, and librdkafka's names.
impl FromStr for Partitioner {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let hashed = |hash, hashes_missing| Ok(Self::Hashed { hash, hashes_missing });
        match name.strip_prefix("org.apache.kafka.clients.producer.").unwrap_or(name) {
            "RoundRobinPartitioner" => Ok(Self::RoundRobin),
            "random" => Ok(Self::Random),
            "consistent" => hashed(KeyHash::Crc32, true),
            "consistent_random" => hashed(KeyHash::Crc32, false),
            "murmur2" => hashed(KeyHash::Murmur2, true),
            "murmur2_random" => hashed(KeyHash::Murmur2, false),
            "fnv1a" => hashed(KeyHash::Fnv1a, true),
            "fnv1a_random" => hashed(KeyHash::Fnv1a, false),
            _ => Err(format!(
                "partitioner={name}: must be RoundRobinPartitioner, random, consistent, consistent_random, murmur2, \
                 murmur2_random, fnv1a or fnv1a_random, or not be set"
            )),
        }
    }
}

/// The partition of a key among `count` (at least 1).
pub fn for_key(key: &[u8], count: usize) -> usize {
    (murmur2(key) & 0x7fff_ffff) as usize % count.max(1)
}

#[cfg(test)]
mod tests {
    use super::{Choice, KeyHash, Partitioner, murmur2};

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

    #[test]
    fn partitioners_have_names_and_say_what_a_missing_key_means() {
        let named = |name: &str| name.parse::<Partitioner>().unwrap();
        assert_eq!(Partitioner::RoundRobin, named("org.apache.kafka.clients.producer.RoundRobinPartitioner"));
        assert_eq!(Choice::Turn, named("RoundRobinPartitioner").choose(Some(b"k"), 3));
        assert_eq!(Choice::Sticky, named("murmur2_random").choose(None, 3));
        assert_eq!(Choice::Partition(0), named("consistent").choose(None, 3), "CRC-32 of nothing is 0");
        assert_eq!(Choice::Sticky, named("consistent_random").choose(Some(b""), 3));
        assert_ne!(Choice::Sticky, named("fnv1a_random").choose(Some(b""), 3));
        assert_eq!(0x811c_9dc5_u32 as i32, -(KeyHash::Fnv1a.of(b"") as i32), "without its sign");
        let drawn: std::collections::HashSet<_> =
            (0..100).map(|_| format!("{:?}", named("random").choose(None, 4))).collect();
        assert_eq!(4, drawn.len());
        assert!("DefaultPartitioner".parse::<Partitioner>().is_err());
    }
}
