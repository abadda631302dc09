//! Verification of one segment: reads and checks every batch, and continues after damaged bytes.

use std::fs::File;

use super::Walk;
use super::findings::FindingKind;
use super::indexes::Indexes;
use super::listing::Listing;
use super::transactions::AbortedCheck;
use crate::directory::log_dir::{LOG_SUFFIX, segment_file_name};
use crate::recovery::resync::find_batch;
use crate::segment::batch_scan::{BatchScan, ScannedBatch};
use pybroker_record::{BatchHeader, EndMarker, batch_crc};

/// Number of damaged ranges to skip in one segment.
const MOST_RANGES: usize = 16;
/// The epoch of a batch that was written before leader epochs existed.
const NO_EPOCH: i32 = -1;

/// The verification of one segment; see the module.
pub(super) struct SegmentWalk<'w, 'a> {
    walk: &'w mut Walk<'a>,
    name: String,
    base: i64,
    is_last: bool,
    rescanned: bool,
    /// Bytes that are no batch and are not reported yet: the next batch shows which offsets are missing.
    unnamed: Option<(u64, u64)>,
    /// Whether a part of the segment could not be read as batches.
    broken: bool,
}

impl<'w, 'a> SegmentWalk<'w, 'a> {
    pub(super) fn new(walk: &'w mut Walk<'a>, listing: &Listing, index: usize) -> Self {
        let base = listing.logs[index];
        let rescanned = walk.is_rescanned(listing, index);
        let is_last = index + 1 == listing.logs.len();
        let name = segment_file_name(base, LOG_SUFFIX);
        Self { walk, name, base, is_last, rescanned, unnamed: None, broken: false }
    }

    /// Verifies the segment up to its end. Returns its size in bytes.
    pub(super) fn run(mut self) -> u64 {
        self.check_beginning();
        let opened = File::open(self.walk.log.directory.join(&self.name));
        let (file, size) = match opened.and_then(|file| file.metadata().map(|found| (file, found.len()))) {
            Ok(opened) => opened,
            Err(error) => {
                self.walk.findings.unreadable(&self.name, FindingKind::Records, &error);
                return 0;
            }
        };
        let mut indexes = Indexes::open(self.walk, self.base, size, self.rescanned, self.is_last);
        let mut aborted = AbortedCheck::open(self.walk, self.base, self.rescanned);
        let (mut position, mut ranges) = (0, 0);
        while position < size {
            position = match self.walk_batches(&file, position, size, &mut indexes, &mut aborted) {
                Ok(end) if end == size => break,
                Ok(end) => end,
                Err(error) => {
                    self.walk.findings.unreadable(&self.name, FindingKind::Records, &error);
                    return size;
                }
            };
            ranges += 1;
            let behind = if ranges > MOST_RANGES { Ok(None) } else { find_batch(&file, position, size) };
            match behind {
                Ok(Some(next)) => {
                    self.unnamed = Some((position, next));
                    position = next;
                }
                Ok(None) => {
                    self.name_end(position, size);
                    break;
                }
                Err(error) => {
                    self.walk.findings.unreadable(&self.name, FindingKind::Records, &error);
                    return size;
                }
            }
        }
        indexes.finish(self.walk, self.broken);
        aborted.finish(self.walk, self.broken);
        size
    }

    /// Compares the segment's base offset with the end of the segment before it.
    fn check_beginning(&mut self) {
        let (base, expected) = (self.base, self.walk.expected);
        if base > expected && base > self.walk.log.compacted_to {
            let text = format!("the offsets from {expected} to {base} before it are in no segment");
            self.walk.findings.damage(&self.name, FindingKind::Records, text);
        } else if base < expected {
            let text = format!("begins at offset {base}, and the segment before it ends at {expected}");
            self.walk.findings.damage(&self.name, FindingKind::Records, text);
        }
        self.walk.expected = base;
        self.walk.producers.advance_to(base.max(self.walk.producers.end_offset()));
    }

    /// Checks valid batches. Returns the position after the last one.
    fn walk_batches(
        &mut self,
        file: &File,
        from: u64,
        size: u64,
        indexes: &mut Indexes,
        aborted: &mut AbortedCheck,
    ) -> std::io::Result<u64> {
        let mut position = from;
        let mut scan = BatchScan::new(file, from, size);
        while let Some(ScannedBatch { position: at, header, bytes }) = scan.next()? {
            if batch_crc(bytes) != header.crc {
                break;
            }
            position = at + header.size() as u64;
            if self.take(&header, at) {
                indexes.check_batch(self.walk, &header, at);
                let marker = EndMarker::parse(&header, bytes).unwrap_or(None);
                let replayed = self.walk.producers.replay(&header, marker);
                self.walk.producers.complete(header.next_offset());
                aborted.check(self.walk, replayed.as_ref());
            }
        }
        Ok(position)
    }

    /// Accounts for a batch. Returns false if its offsets are impossible.
    fn take(&mut self, header: &BatchHeader, position: u64) -> bool {
        let (expected, begin) = (self.walk.expected, header.base_offset);
        if let Some((from, to)) = self.unnamed.take() {
            self.broken = true;
            let text =
                format!("bytes {from} to {to} are no valid batch: the offsets from {expected} to {begin} are missing");
            self.walk.findings.damage(&self.name, FindingKind::Records, text);
        } else if begin > expected && header.magic >= 2 && begin > self.walk.log.compacted_to {
            let text = format!("the batch at byte {position} begins at offset {begin}, and {expected} is expected");
            self.walk.findings.damage(&self.name, FindingKind::Records, text);
        }
        let reach = header.last_offset() - self.base;
        if begin < expected || header.last_offset_delta < 0 || reach > i64::from(i32::MAX) {
            self.broken = true;
            let text =
                format!("the batch at byte {position} begins at offset {begin}, and {expected} or more is expected");
            self.walk.findings.damage(&self.name, FindingKind::Records, text);
            return false;
        }
        self.check_epoch(header);
        self.walk.expected = header.next_offset();
        self.walk.batches += 1;
        true
    }

    fn check_epoch(&mut self, header: &BatchHeader) {
        let (offset, found) = (header.base_offset, header.partition_leader_epoch);
        let Some(epochs) = self.walk.epochs.as_ref().filter(|_| !self.walk.epochs_wrong && found != NO_EPOCH) else {
            return;
        };
        let starts = epochs.starts();
        let known = starts.partition_point(|start| start.start_offset <= offset).checked_sub(1);
        let known = known.map(|at| starts[at].epoch);
        // The epoch of a batch below the first entry was removed from the list, or the batch is older than leader
        // epochs.
        let below = known.is_none() && !starts.is_empty() && self.walk.log.log_start_offset > offset;
        if known != Some(found) && !below {
            self.walk.epochs_wrong = true;
            let known = known.map_or("none".to_owned(), |epoch| epoch.to_string());
            let text = format!("says epoch {known} of offset {offset}, whose batch is of epoch {found}");
            let file = crate::directory::log_dir::LEADER_EPOCH_FILE;
            self.walk.findings.damage(file, FindingKind::LeaderEpochs, text);
        }
    }

    /// Reports the bytes after the last valid batch.
    fn name_end(&mut self, position: u64, size: u64) {
        self.broken = true;
        let (log, expected) = (self.walk.log, self.walk.expected);
        let acknowledged = log.recovery_point.max(log.high_watermark);
        let torn = !log.clean_shutdown && self.is_last && expected >= acknowledged;
        let cut = size - position;
        let mut text =
            format!("the last {cut} bytes, from byte {position} and offset {expected} on, are no valid batch");
        if torn {
            text.push_str(": a write that did not end, which the next start cuts");
        }
        self.walk.findings.add_unless_repaired(&self.name, FindingKind::Records, text, torn);
    }
}
