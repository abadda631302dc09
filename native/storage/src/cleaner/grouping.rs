//! Which neighbouring segments are rewritten into one: as many as fit the size of a segment and of its indexes (Kafka's
//! `Cleaner.groupSegmentsBySize`).

/// What grouping looks at, of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) base_offset: i64,
    /// One behind the last offset that the segment may hold.
    pub(crate) end_offset: i64,
    pub(crate) size: u64,
    pub(crate) offset_index_bytes: u64,
    pub(crate) time_index_bytes: u64,
}

/// Most that one segment may hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) segment_bytes: u64,
    pub(crate) index_bytes: u64,
}

/// The sizes of the groups, in order. A segment that is too large by itself is a group of its own.
///
/// Offsets of one segment lie within 31 bits. An empty segment joins any group, so that a log whose records are all gone
/// does not keep a file for every two thousand million offsets.
pub(crate) fn group_segments(segments: &[Extent], bounds: Bounds) -> Vec<usize> {
    let mut groups = Vec::new();
    let mut rest = segments;
    while let Some((first, following)) = rest.split_first() {
        let mut sum = *first;
        let mut count = 1;
        for next in following {
            let fits = sum.size + next.size <= bounds.segment_bytes
                && sum.offset_index_bytes + next.offset_index_bytes <= bounds.index_bytes
                && sum.time_index_bytes + next.time_index_bytes <= bounds.index_bytes
                && (next.size == 0 || next.end_offset - 1 - first.base_offset <= i64::from(i32::MAX));
            if !fits {
                break;
            }
            sum.size += next.size;
            sum.offset_index_bytes += next.offset_index_bytes;
            sum.time_index_bytes += next.time_index_bytes;
            count += 1;
        }
        groups.push(count);
        rest = &rest[count..];
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(base_offset: i64, end_offset: i64, size: u64, index_bytes: u64) -> Extent {
        Extent { base_offset, end_offset, size, offset_index_bytes: index_bytes, time_index_bytes: index_bytes / 2 }
    }

    const BOUNDS: Bounds = Bounds { segment_bytes: 100, index_bytes: 50 };

    #[test]
    fn neighbours_are_joined_while_they_fit() {
        assert_eq!(group_segments(&[], BOUNDS), []);
        let sizes = [60, 40, 1, 99, 150, 20, 20];
        let segments: Vec<Extent> =
            sizes.iter().zip(0..).map(|(&size, n)| extent(n * 10, n * 10 + 10, size, 1)).collect();
        assert_eq!(group_segments(&segments, BOUNDS), [2, 2, 1, 2]);
        let indexes: Vec<Extent> = (0..5).map(|n| extent(n * 10, n * 10 + 10, 1, 20)).collect();
        assert_eq!(group_segments(&indexes, BOUNDS), [2, 2, 1]);
    }

    #[test]
    fn offsets_of_a_group_stay_within_31_bits() {
        let far = i64::from(i32::MAX);
        let near = [extent(5, 10, 1, 0), extent(10, far + 6, 1, 0)];
        assert_eq!(group_segments(&near, BOUNDS), [2]);
        let beyond = [extent(5, 10, 1, 0), extent(10, far + 7, 1, 0)];
        assert_eq!(group_segments(&beyond, BOUNDS), [1, 1]);
        let empty = [extent(5, 10, 1, 0), extent(10, far * 3, 0, 0), extent(far * 3, far * 3 + 1, 1, 0)];
        assert_eq!(group_segments(&empty, BOUNDS), [2, 1]);
    }
}
