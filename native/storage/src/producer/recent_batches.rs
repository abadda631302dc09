//! The batches of a segment that were found last: where they lie is not read again.
//!
//! Owns a few places, in one cache line. Fetches come back to an offset: several groups read a log, a fetch that waits plans
//! again, and a high watermark stands still. It must not know files; what it remembers holds as long as its segment, whose
//! batches never change. Nobody waits for it: a reader that finds another one here goes without.

use parking_lot::Mutex;

/// As many as fit in the line.
const PLACES: usize = 3;

/// Where the batch starts that answers for a run of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundPlace {
    /// The offsets, relative to the segment's, as far as they are known to be the batch's: none when they are in this order
    /// `(1, 0)`.
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) position: u32,
    /// Bytes; 0 where its header was not read.
    pub(crate) size: u32,
}

/// See the module.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct RecentBatches {
    places: Mutex<Places>,
}

#[derive(Debug)]
struct Places {
    found: [FoundPlace; PLACES],
    /// Which one makes room.
    oldest: u8,
}

impl RecentBatches {
    pub(crate) const fn new() -> Self {
        let none = FoundPlace { first: 1, last: 0, position: 0, size: 0 };
        Self { places: Mutex::new(Places { found: [none; PLACES], oldest: 0 }) }
    }

    /// The place of the batch that answers for `relative`, among the first `limit` bytes.
    pub(crate) fn find(&self, relative: u32, limit: u64) -> Option<FoundPlace> {
        let places = self.places.try_lock()?;
        let answers =
            |place: &&FoundPlace| (place.first..=place.last).contains(&relative) && u64::from(place.position) < limit;
        places.found.iter().find(answers).copied()
    }

    /// Remembers a place, in the stead of the oldest one unless the batch is known.
    pub(crate) fn remember(&self, place: FoundPlace) {
        let Some(mut places) = self.places.try_lock() else { return };
        let known = |known: &&mut FoundPlace| known.first <= known.last && known.position == place.position;
        if let Some(known) = places.found.iter_mut().find(known) {
            // Offsets rise with positions: what lies between two of a batch is the batch's as well.
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
