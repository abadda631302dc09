//! What a pass goes by, and which records of a batch stay: the values that the filter and the older formats share.

/// What a pass goes by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) now_ms: i64,
    pub(crate) delete_retention_ms: i64,
    /// Where the cleanable part ends: the batch before it stays, so that the offsets up to there stay known.
    pub(crate) upper: i64,
    pub(crate) max_decompressed: usize,
    /// Whether the segment is too young for its tombstones of formats v0 and v1 to go.
    pub(crate) old_tombstones_stay: bool,
    /// By how many bytes batches may be larger than the messages that they are made of, before the segment has no room for
    /// all that is still to come.
    pub(crate) room_to_grow: u64,
}

impl Rules {
    /// When tombstones may go that a batch has from now on.
    pub(super) fn delete_horizon_ms(&self) -> i64 {
        self.now_ms.saturating_add(self.delete_retention_ms)
    }
}

/// What a filter has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) records_read: u64,
    pub(crate) records_kept: u64,
    /// Records without a key, which have no place in a compacted log.
    pub(crate) without_key: u64,
}

/// The records of a batch that stay.
#[derive(Default)]
pub(super) struct Selection {
    /// Where they lie in the record section; neighbours are one run.
    pub(super) runs: Vec<(usize, usize)>,
    pub(super) count: i32,
    /// Largest difference to the base timestamp among them.
    pub(super) latest: i64,
    pub(super) tombstones: bool,
}

impl Selection {
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        (self.count, self.latest, self.tombstones) = (0, i64::MIN, false);
    }

    /// Records so far.
    pub(super) fn count(&self) -> i32 {
        self.count
    }

    /// Takes the record that lies in the section from `from` to `to`.
    #[inline(always)]
    pub(super) fn keep(&mut self, from: usize, to: usize, timestamp_delta: i64, is_tombstone: bool) {
        match self.runs.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => self.runs.push((from, to)),
        }
        self.count += 1;
        self.latest = self.latest.max(timestamp_delta);
        self.tombstones |= is_tombstone;
    }
}
