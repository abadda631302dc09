//! The leader epochs of a log and their start offsets (KIP-101, KIP-279), stored in `leader-epoch-checkpoint`.
//!
//! Owns the list and its file. Epochs and start offsets both strictly increase. It must not know the current leader.

use std::path::Path;

use crate::LogError;
use crate::directory::checkpoint::{read_lines, write_lines};
use crate::directory::log_dir::LEADER_EPOCH_FILE;

/// A leader epoch, and the offset of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochStart {
    /// Leader epoch.
    pub epoch: i32,
    /// Offset of its first record.
    pub start_offset: i64,
}

/// The result of an epoch query when the epoch is unknown.
pub const UNDEFINED: (i32, i64) = (-1, -1);

/// The leader epochs of a log; see the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderEpochs {
    starts: Vec<EpochStart>,
}

impl LeaderEpochs {
    /// Reads the file of a log's directory; `None` when it is absent.
    ///
    /// # Errors
    /// `Corrupt` when the file is malformed or not in ascending order, `Io` when it cannot be read.
    pub fn read(directory: &Path) -> Result<Option<Self>, LogError> {
        let path = directory.join(LEADER_EPOCH_FILE);
        let parse = |line: &str| {
            let (epoch, start_offset) = line.trim().split_once(' ')?;
            Some(EpochStart { epoch: epoch.parse().ok()?, start_offset: start_offset.parse().ok()? })
        };
        let Some(starts) = read_lines(&path, parse)? else { return Ok(None) };
        let in_order =
            |pair: &[EpochStart]| pair[0].epoch < pair[1].epoch && pair[0].start_offset <= pair[1].start_offset;
        if !starts.windows(2).all(in_order) {
            return Err(LogError::Corrupt { path, reason: "epochs are not in order".to_owned() });
        }
        Ok(Some(Self { starts }))
    }

    /// Replaces the file of a log's directory.
    ///
    /// # Errors
    /// `Io`. The old file is then unchanged.
    pub fn write(&self, directory: &Path, durable: bool) -> Result<(), LogError> {
        let lines = self.starts.iter().map(|start| format!("{} {}", start.epoch, start.start_offset));
        write_lines(&directory.join(LEADER_EPOCH_FILE), lines, durable)
    }

    /// Returns the entries, oldest first.
    #[must_use]
    pub fn starts(&self) -> &[EpochStart] {
        &self.starts
    }

    /// Returns the latest epoch.
    #[must_use]
    pub fn latest(&self) -> Option<i32> {
        self.starts.last().map(|start| start.epoch)
    }

    /// Adds an entry: `epoch` begins at `start_offset`. Returns whether the list changed. A negative epoch is
    /// ignored.
    ///
    /// Entries that contradict the new one (a later epoch, or a start offset at or above it) are removed.
    pub fn assign(&mut self, epoch: i32, start_offset: i64) -> bool {
        let needed =
            self.starts.last().is_none_or(|latest| epoch != latest.epoch || start_offset < latest.start_offset);
        if epoch < 0 || !needed {
            return false;
        }
        while self.starts.last().is_some_and(|last| last.epoch >= epoch || last.start_offset >= start_offset) {
            self.starts.pop();
        }
        self.starts.push(EpochStart { epoch, start_offset });
        true
    }

    /// Removes epochs that begin at or above `end_offset`. Returns whether any was removed.
    pub fn truncate_from_end(&mut self, end_offset: i64) -> bool {
        let kept = self.starts.partition_point(|start| start.start_offset < end_offset);
        let changed = kept < self.starts.len();
        self.starts.truncate(kept);
        changed
    }

    /// Removes epochs that begin above `end_offset`. Returns whether any was removed. An epoch that begins at
    /// `end_offset` stays, because its leader has appended no record yet.
    pub fn truncate_beyond(&mut self, end_offset: i64) -> bool {
        self.truncate_from_end(end_offset.saturating_add(1))
    }

    /// Removes epochs that end at or below `start_offset`. The epoch of `start_offset` then begins there. Returns
    /// whether the list changed.
    pub fn truncate_from_start(&mut self, start_offset: i64) -> bool {
        let at_or_below = self.starts.partition_point(|start| start.start_offset <= start_offset);
        if at_or_below == 0 || (at_or_below == 1 && self.starts[0].start_offset == start_offset) {
            return false;
        }
        self.starts.drain(..at_or_below - 1);
        self.starts[0].start_offset = start_offset;
        true
    }

    /// Returns the largest known epoch at or below `epoch`, and its end offset (OffsetForLeaderEpoch).
    #[must_use]
    pub fn end_offset_for(&self, epoch: i32, log_end_offset: i64) -> (i32, i64) {
        let Some(latest) = self.latest().filter(|_| epoch >= 0) else { return UNDEFINED };
        if epoch == latest {
            return (epoch, log_end_offset);
        }
        let higher = self.starts.partition_point(|start| start.epoch <= epoch);
        match (self.starts.get(higher), higher.checked_sub(1).map(|floor| self.starts[floor])) {
            (None, _) => UNDEFINED,
            (Some(next), None) => (epoch, next.start_offset),
            (Some(next), Some(floor)) => (floor.epoch, next.start_offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(starts: &[(i32, i64)]) -> LeaderEpochs {
        LeaderEpochs {
            starts: starts.iter().map(|&(epoch, start_offset)| EpochStart { epoch, start_offset }).collect(),
        }
    }

    #[test]
    fn the_file_is_kafkas() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(LeaderEpochs::read(dir.path()).unwrap(), None);
        let written = epochs(&[(0, 0), (2, 17)]);
        written.write(dir.path(), true).unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join(LEADER_EPOCH_FILE)).unwrap(), "0\n2\n0 0\n2 17\n");
        assert_eq!(LeaderEpochs::read(dir.path()).unwrap(), Some(written));
        std::fs::write(dir.path().join(LEADER_EPOCH_FILE), "0\n2\n2 0\n1 17\n").unwrap();
        assert!(matches!(LeaderEpochs::read(dir.path()), Err(LogError::Corrupt { .. })));
    }

    #[test]
    fn an_assignment_drops_what_contradicts_it() {
        let mut list = epochs(&[(1, 0), (2, 10), (3, 20)]);
        assert!(!list.assign(3, 30));
        assert!(!list.assign(-1, 30));
        assert!(list.assign(4, 20));
        assert_eq!(list, epochs(&[(1, 0), (2, 10), (4, 20)]));
        assert!(list.assign(2, 30));
        assert_eq!(list, epochs(&[(1, 0), (2, 30)]));
    }

    #[test]
    fn both_ends_can_be_cut() {
        let mut list = epochs(&[(1, 0), (2, 10), (3, 20)]);
        assert!(list.truncate_from_end(20));
        assert!(!list.truncate_from_end(20));
        assert_eq!(list, epochs(&[(1, 0), (2, 10)]));
        assert!(list.truncate_from_start(15));
        assert!(!list.truncate_from_start(15));
        assert!(!list.truncate_from_start(3));
        assert_eq!(list, epochs(&[(2, 15)]));
    }

    #[test]
    fn epochs_end_where_the_next_begins() {
        let list = epochs(&[(2, 0), (4, 10), (7, 20)]);
        assert_eq!(list.end_offset_for(7, 33), (7, 33));
        assert_eq!(list.end_offset_for(8, 33), UNDEFINED);
        assert_eq!(list.end_offset_for(-1, 33), UNDEFINED);
        assert_eq!(list.end_offset_for(5, 33), (4, 20));
        assert_eq!(list.end_offset_for(4, 33), (4, 20));
        assert_eq!(list.end_offset_for(2, 33), (2, 10));
        assert_eq!(list.end_offset_for(1, 33), (1, 0));
        assert_eq!(epochs(&[]).end_offset_for(1, 33), UNDEFINED);
    }

    /// The behaviour of `LeaderEpochFileCache` of Kafka 4.3.1 in a sequence of steps: `assign` an epoch from an
    /// offset, truncate from the `end` or the `start`, or `query` an epoch, with the log end offset and the result.
    /// After each step: the list.
    const KAFKAS_STEPS: &str = "assign 1 0: 1@0, query -1 7 -1 -1: 1@0, query 0 9 0 0: 1@0, query -1 12 -1 -1: 1@0, \
         assign 4 19: 1@0 4@19, query 0 28 0 0: 1@0 4@19, query -1 32 -1 -1: 1@0 4@19, end 7: 1@0, \
         assign 3 18: 1@0 3@18, query 5 25 -1 -1: 1@0 3@18, query -1 27 -1 -1: 1@0 3@18, \
         assign 6 21: 1@0 3@18 6@21, assign 7 33: 1@0 3@18 6@21 7@33, assign 6 44: 1@0 3@18 6@44, \
         query 5 49 3 44: 1@0 3@18 6@44, assign 6 53: 1@0 3@18 6@44, end 59: 1@0 3@18 6@44, \
         assign 9 60: 1@0 3@18 6@44 9@60, start 49: 6@49 9@60, assign 8 75: 6@49 8@75, assign 7 75: 6@49 7@75, \
         query 4 88 4 49: 6@49 7@75, end 55: 6@49, query 2 60 2 49: 6@49, assign 6 65: 6@49, \
         assign 7 69: 6@49 7@69, assign 7 75: 6@49 7@69, assign 10 79: 6@49 7@69 10@79, \
         assign 13 91: 6@49 7@69 10@79 13@91, assign 13 97: 6@49 7@69 10@79 13@91, \
         assign 16 97: 6@49 7@69 10@79 13@91 16@97, query 13 118 13 97: 6@49 7@69 10@79 13@91 16@97, \
         query 16 122 16 122: 6@49 7@69 10@79 13@91 16@97, assign 15 122: 6@49 7@69 10@79 13@91 15@122, \
         query 9 136 7 79: 6@49 7@69 10@79 13@91 15@122, query 13 139 13 122: 6@49 7@69 10@79 13@91 15@122, \
         query 9 144 7 79: 6@49 7@69 10@79 13@91 15@122, assign 17 145: 6@49 7@69 10@79 13@91 15@122 17@145, \
         end 126: 6@49 7@69 10@79 13@91 15@122, query 19 137 -1 -1: 6@49 7@69 10@79 13@91 15@122, \
         query 15 140 15 140: 6@49 7@69 10@79 13@91 15@122, assign 16 143: 6@49 7@69 10@79 13@91 15@122 16@143, \
         end 128: 6@49 7@69 10@79 13@91 15@122, query 14 133 13 122: 6@49 7@69 10@79 13@91 15@122, \
         query 13 136 13 122: 6@49 7@69 10@79 13@91 15@122, start 102: 13@102 15@122, \
         query 10 145 10 102: 13@102 15@122, start 122: 15@122, assign 18 154: 15@122 18@154, \
         query 18 166 18 166: 15@122 18@154, assign 20 165: 15@122 18@154 20@165, end 114:, start 88:, \
         query 21 127 -1 -1:, assign 23 135: 23@135, assign 23 141: 23@135, assign 24 144: 23@135 24@144, end 85:, \
         assign 24 85: 24@85, assign 25 82: 25@82, assign 27 84: 25@82 27@84, query 25 96 25 84: 25@82 27@84, \
         query 27 104 27 104: 25@82 27@84, end 74:";

    #[test]
    fn steps_lead_to_the_lists_of_kafka() {
        let mut list = LeaderEpochs::default();
        for step in KAFKAS_STEPS.split(", ") {
            let (done, after) = step.split_once(':').unwrap();
            let (what, numbers) = done.split_once(' ').unwrap();
            let numbers: Vec<i64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
            match what {
                "assign" => _ = list.assign(numbers[0] as i32, numbers[1]),
                "end" => _ = list.truncate_from_end(numbers[0]),
                "start" => _ = list.truncate_from_start(numbers[0]),
                _ => assert_eq!(
                    list.end_offset_for(numbers[0] as i32, numbers[1]),
                    (numbers[2] as i32, numbers[3]),
                    "{step}"
                ),
            }
            let starts: String = list.starts().iter().map(|it| format!(" {}@{}", it.epoch, it.start_offset)).collect();
            assert_eq!(starts, after, "{step}");
        }
    }
}
