//! The rules of a pass and the selection of a batch's records, shared by the filter and the old formats.

/// The rules of a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) now_ms: i64,
    pub(crate) delete_retention_ms: i64,
    /// End of the cleanable part. The batch before it is never removed, so that the offsets up to it stay known.
    pub(crate) upper: i64,
    pub(crate) max_decompressed: usize,
    /// Whether the segment is too young to remove its tombstones of formats v0 and v1.
    pub(crate) old_tombstones_stay: bool,
    /// How many bytes converted batches may be larger than their messages, so that the rest of the group still fits
    /// in the segment.
    pub(crate) space_to_grow: u64,
}

impl Rules {
    /// Returns the delete horizon of a batch that gets one in this pass, ms.
    pub(super) fn delete_horizon_ms(&self) -> i64 {
        self.now_ms.saturating_add(self.delete_retention_ms)
    }
}

/// The counters of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) records_read: u64,
    pub(crate) records_kept: u64,
    /// Records without a key, which compaction removes.
    pub(crate) without_key: u64,
}

/// The retained records of a batch.
#[derive(Default)]
pub(super) struct Selection {
    /// Their ranges in the record section. Adjacent records share one range.
    pub(super) runs: Vec<(usize, usize)>,
    pub(super) count: i32,
    /// Largest timestamp delta of the retained records.
    pub(super) latest: i64,
    pub(super) tombstones: bool,
}

impl Selection {
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        (self.count, self.latest, self.tombstones) = (0, i64::MIN, false);
    }

    /// Returns the number of records selected so far.
    pub(super) fn count(&self) -> i32 {
        self.count
    }

    /// Selects the record between `from` and `to` in the section.
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
