//! Groups neighbouring segments to rewrite into one, within the size limits of a segment and its indexes (Kafka's
//! `Cleaner.groupSegmentsBySize`).

/// The properties of a segment that grouping uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) base_offset: i64,
    /// The offset after the segment's last possible record.
    pub(crate) end_offset: i64,
    pub(crate) size: u64,
    pub(crate) offset_index_bytes: u64,
    pub(crate) time_index_bytes: u64,
}

/// The size limits of one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) segment_bytes: u64,
    pub(crate) index_bytes: u64,
}

/// Returns the number of segments in each group, in order. A segment over the limits is a group of its own.
///
/// The offsets of a group lie within 31 bits. An empty segment joins any group: otherwise a log without records would
/// keep one file for every 2^31 offsets.
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
