//! The latest offset of each key, by hash, in a bounded block of memory.
//!
//! A slot is 24 bytes, as in Kafka: the offset and 128 bits of hash (XXH3). Each map has its own random seed, so that
//! no client can prepare keys that collide. Slots are ordered by hash and probed linearly. A search ends at the first
//! larger hash, so that absent keys cost little even in a nearly full map. The map must not know records or files.

use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;

use pybroker_record::Offset;
use twox_hash::XxHash3_128;

/// Number of keys to prefetch: their memory accesses overlap.
pub(crate) const AHEAD: usize = 16;

/// High and low half of a hash, and the offset plus one. An offset word of 0 is an empty slot. As an array, the map
/// can be allocated as zeroed memory, of which only the used pages become resident.
type Slot = [u64; 3];

/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = size_of::<Slot>();
/// Slots after the last home slot, for displaced slots. Probing does not wrap around.
const TAIL: usize = 8192;

/// The hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyHash {
    high: u64,
    low: u64,
}

/// The map; see the module.
pub(crate) struct OffsetMap {
    slots: Vec<Slot>,
    homes: u64,
    /// Maximum number of keys: the slots times the load factor.
    limit: usize,
    len: usize,
    latest: i64,
    seed: u64,
}

impl OffsetMap {
    /// Creates a map of at most `max_bytes` for up to `max_keys` keys, as far as `load_factor` allows.
    pub(crate) fn new(max_bytes: usize, load_factor: f64, max_keys: u64) -> Self {
        let load_factor = load_factor.clamp(0.01, 1.0);
        let wanted = (max_keys as f64 / load_factor).ceil() as u64;
        let slots = (max_bytes / SLOT_BYTES).max(2);
        let homes = wanted.saturating_add(1).min((slots - slots.min(TAIL * 2) / 2) as u64).max(1);
        let slots = vec![[0; 3]; slots.min(homes as usize + TAIL)];
        let limit = ((homes as f64 * load_factor) as usize).max(1);
        Self { slots, homes, limit, len: 0, latest: -1, seed: RandomState::new().hash_one(0_u8) }
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the last offset that the map covers. It has no information about records beyond it.
    pub(crate) fn latest(&self) -> i64 {
        self.latest
    }

    /// Extends the covered range to `offset`.
    pub(crate) fn advance(&mut self, offset: i64) {
        self.latest = self.latest.max(offset);
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> KeyHash {
        let hash = XxHash3_128::oneshot_with_seed(self.seed, key);
        KeyHash { high: (hash >> 64) as u64, low: hash as u64 }
    }

    #[inline]
    fn home(&self, hash: KeyHash) -> usize {
        ((u128::from(hash.high) * u128::from(self.homes)) >> 64) as usize
    }

    /// Prefetches the slot of a key. Returns a word of the slot, so that the compiler keeps the access.
    #[inline]
    pub(crate) fn touch(&self, hash: KeyHash) -> u64 {
        self.slots[self.home(hash)][2]
    }

    /// Returns the slot of a key and whether the key is there, or the slot where it has to be inserted.
    #[inline]
    fn find(&self, hash: KeyHash) -> (usize, bool) {
        let mut at = self.home(hash);
        while let Some(&[high, low, offset]) = self.slots.get(at) {
            if offset == 0 || (high, low) > (hash.high, hash.low) {
                return (at, false);
            }
            if (high, low) == (hash.high, hash.low) {
                return (at, true);
            }
            at += 1;
        }
        (at, false)
    }

    /// Returns the key's offset.
    #[inline]
    pub(crate) fn get(&self, hash: KeyHash) -> Option<i64> {
        let (at, found) = self.find(hash);
        found.then(|| self.slots[at][2] as i64 - 1)
    }

    /// Stores an offset, which must be larger than all before. Returns false when the map has no capacity for another
    /// key.
    #[inline]
    pub(crate) fn put(&mut self, hash: KeyHash, offset: i64) -> bool {
        let (at, found) = self.find(hash);
        if found {
            self.slots[at][2] = offset as u64 + 1;
        } else if self.len >= self.limit || !self.insert(at, [hash.high, hash.low, offset as u64 + 1]) {
            return false;
        }
        self.latest = offset;
        true
    }

    /// Inserts a slot at `at` and moves the following slots by one, up to the next empty slot.
    fn insert(&mut self, at: usize, slot: Slot) -> bool {
        let Some(run) = self.slots[at..].iter().position(|slot| slot[2] == 0) else { return false };
        self.slots.copy_within(at..at + run, at + 1);
        self.slots[at] = slot;
        self.len += 1;
        true
    }

    /// Returns the offsets in the map from `from` on, as a bitmap: whether a record of the dirty part is the last of
    /// its key then needs no key lookup. `None` when the bitmap would exceed `max_bytes`.
    pub(crate) fn kept_offsets(&self, from: i64, max_bytes: usize) -> Option<KeptOffsets> {
        let words =
            usize::try_from((self.latest - from).max(-1) / 64 + 1).ok().filter(|words| *words <= max_bytes / 8)?;
        let mut bits = vec![0_u64; words];
        for slot in &self.slots {
            let place = (slot[2] as i64 - 1) - from;
            if slot[2] != 0 && place >= 0 {
                bits[place as usize / 64] |= 1 << (place % 64);
            }
        }
        Some(KeptOffsets { from, to: self.latest, bits })
    }
}

/// A bitmap of the offsets from `from` to `to` that are the last of their key.
pub(crate) struct KeptOffsets {
    from: i64,
    to: i64,
    bits: Vec<u64>,
}

impl KeptOffsets {
    /// Returns whether the bitmap covers all of these offsets.
    #[inline]
    pub(crate) fn cover(&self, offsets: &RangeInclusive<Offset>) -> bool {
        self.from <= offsets.start().0 && offsets.end().0 <= self.to
    }

    /// Returns whether the record at a covered offset is the last of its key.
    #[inline]
    pub(crate) fn contains(&self, offset: i64) -> bool {
        let place = offset - self.from;
        self.bits[place as usize / 64] >> (place % 64) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn map(slots: usize, load_factor: f64) -> OffsetMap {
        OffsetMap::new(slots * SLOT_BYTES, load_factor, u64::MAX)
    }

    #[test]
    fn a_full_map_refuses_new_keys_and_takes_known_ones() {
        let mut map = map(20_000, 0.9);
        let mut offset = 0;
        loop {
            let hash = map.hash(&u64::to_be_bytes(offset));
            if !map.put(hash, offset as i64) {
                break;
            }
            offset += 1;
        }
        assert!((9_000..18_001).contains(&offset), "{offset}");
        assert_eq!((map.len() as u64, map.latest()), (offset, offset as i64 - 1));
        let known = map.hash(&u64::to_be_bytes(3));
        assert!(map.put(known, 50_000));
        assert_eq!((map.get(known), map.latest()), (Some(50_000), 50_000));
        assert_eq!(map.get(map.hash(b"another")), None);
    }

    #[test]
    fn memory_is_bounded_by_the_buffer_and_by_what_can_come() {
        for bytes in [1, 24, 1000, 1 << 20] {
            for keys in [0, 1, 10, u64::MAX] {
                let mut map = OffsetMap::new(bytes, 0.9, keys);
                assert!(map.slots.len() * SLOT_BYTES <= bytes.max(2 * SLOT_BYTES));
                assert!(map.slots.len() as u64 <= keys.saturating_mul(2).saturating_add(TAIL as u64 + 2));
                let hash = map.hash(b"one fits always");
                assert!(map.put(hash, 7));
            }
        }
    }

    proptest! {
        #[test]
        fn it_answers_as_a_hash_map_does(keys in prop::collection::vec(0_u16..300, 0..600), slots in 2_usize..500) {
            let mut map = map(slots, 1.0);
            let mut naive = HashMap::new();
            let mut end = 0;
            for (offset, key) in keys.iter().enumerate() {
                if !map.put(map.hash(&key.to_be_bytes()), offset as i64) {
                    prop_assert!(!naive.contains_key(key));
                    break;
                }
                naive.insert(*key, offset as i64);
                end = offset as i64;
            }
            prop_assert_eq!(map.len(), naive.len());
            for key in 0_u16..300 {
                prop_assert_eq!(map.get(map.hash(&key.to_be_bytes())), naive.get(&key).copied());
            }
            let from = end / 3;
            let kept = map.kept_offsets(from, 1 << 20).unwrap();
            for offset in from..=map.latest() {
                prop_assert!(kept.cover(&(Offset(from)..=Offset(offset))));
                prop_assert_eq!(kept.contains(offset), naive.values().any(|kept| *kept == offset));
            }
            prop_assert!(!kept.cover(&(Offset(from - 1)..=Offset(from))));
            prop_assert!(!kept.cover(&(Offset(from)..=Offset(map.latest() + 1))));
        }
    }
}
