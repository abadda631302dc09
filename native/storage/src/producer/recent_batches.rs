//! A cache of the positions of a segment's batches that were found last.
//!
//! Owns a few positions, in one cache line. Fetches often repeat an offset: several groups read a log, a waiting
//! fetch plans its read again, and a high watermark stays for a while. The cache must not know files. Its entries
//! stay valid, because the batches of a segment never change. A reader never waits: if another reader uses the cache,
//! it searches without the cache.

use parking_lot::Mutex;

/// As many as fit in one cache line.
const PLACES: usize = 3;

/// The position of the batch that a search for a range of offsets finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundPlace {
    /// The known offsets of the batch, relative to the segment's base offset. The range `(1, 0)` is empty.
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) position: u32,
    /// Bytes; 0 if its header was not read.
    pub(crate) size: u32,
}

/// The cache; see the module.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct RecentBatches {
    places: Mutex<Places>,
}

#[derive(Debug)]
struct Places {
    found: [FoundPlace; PLACES],
    /// The index of the entry to replace next.
    oldest: u8,
}

impl RecentBatches {
    pub(crate) const fn new() -> Self {
        let none = FoundPlace { first: 1, last: 0, position: 0, size: 0 };
        Self { places: Mutex::new(Places { found: [none; PLACES], oldest: 0 }) }
    }

    /// Returns the position of the batch for the offset `relative`, within the first `limit` bytes.
    pub(crate) fn find(&self, relative: u32, limit: u64) -> Option<FoundPlace> {
        let places = self.places.try_lock()?;
        let responses =
            |place: &&FoundPlace| (place.first..=place.last).contains(&relative) && u64::from(place.position) < limit;
        places.found.iter().find(responses).copied()
    }

    /// Adds a position. Replaces the oldest entry, unless the batch has one.
    pub(crate) fn remember(&self, place: FoundPlace) {
        let Some(mut places) = self.places.try_lock() else { return };
        let known = |known: &&mut FoundPlace| known.first <= known.last && known.position == place.position;
        if let Some(known) = places.found.iter_mut().find(known) {
            // Offsets ascend with positions: an offset between two of one batch is in the batch too.
            known.first = known.first.min(place.first);
            known.last = known.last.max(place.last);
            known.size = known.size.max(place.size);
            return;
        }
        let oldest = usize::from(places.oldest);
        places.found[oldest] = place;
        places.oldest = ((oldest + 1) % PLACES) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(first: u32, last: u32, position: u32) -> FoundPlace {
        FoundPlace { first, last, position, size: 100 }
    }

    #[test]
    fn all_of_it_fills_one_cache_line() {
        assert_eq!(size_of::<RecentBatches>(), 64);
    }

    #[test]
    fn a_batch_is_found_by_each_of_its_offsets_below_the_limit() {
        let recent = RecentBatches::new();
        assert_eq!(recent.find(0, 1000), None);
        assert_eq!(recent.find(1, 1000), None);
        recent.remember(place(3, 5, 200));
        let found = |relative| recent.find(relative, 201).map(|found| found.position);
        assert_eq!([2, 3, 4, 5, 6].map(found), [None, Some(200), Some(200), Some(200), None]);
        assert_eq!(recent.find(4, 200), None, "a reader whose log ended before it");
    }

    #[test]
    fn what_is_learned_of_a_batch_adds_up() {
        let recent = RecentBatches::new();
        recent.remember(FoundPlace { size: 0, ..place(3, 3, 200) });
        recent.remember(place(5, 7, 200));
        assert_eq!(recent.find(4, 1000), Some(place(3, 7, 200)));
    }

    #[test]
    fn the_oldest_makes_room_and_who_comes_second_goes_without() {
        let recent = RecentBatches::new();
        (0..=PLACES as u32).for_each(|n| recent.remember(place(n, n, n * 100)));
        assert_eq!(recent.find(0, 1000), None);
        assert!((1..=PLACES as u32).all(|n| recent.find(n, 1000) == Some(place(n, n, n * 100))));
        let held = recent.places.lock();
        recent.remember(place(9, 9, 900));
        assert_eq!(recent.find(1, 1000), None);
        drop(held);
        assert_eq!(recent.find(9, 1000), None);
    }
}
