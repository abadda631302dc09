//! Losses of a recovery: removes bytes from a log, and reports them.
//!
//! Owns the decision between damage and a torn write, and the order of steps: bytes are set aside and reported before
//! anything is truncated.

use std::ops::Range;
use std::sync::Arc;

use crate::LogError;
use crate::recovery::Loader;
use crate::recovery::loss::{self, EndBeforeStart, Loss, LossCause};
use crate::recovery::rebuild::SegmentEnd;
use crate::recovery::resync;
use crate::recovery::set_aside::{self, TailBytes};
use crate::segment::{IndexEntries, Segment};
use pybroker_record::Offset;
use pybroker_sys::file;

impl Loader<'_> {
    /// Returns the offset below which all records are known to be acknowledged.
    pub(super) fn acknowledged(&self) -> i64 {
        self.how.recovery_point.max(self.how.high_watermark)
    }

    /// Records a loss and writes it to the report. If that fails, the loss is still returned to the caller.
    pub(super) fn lose(&mut self, mut loss: Loss) {
        loss.known_end = loss.known_end.or_else(|| Some(self.acknowledged()).filter(|&known| known > loss.from_offset));
        if let Err(error) = loss::write_down(&self.home.path(), &loss, self.how.now_ms) {
            self.warn(&format!("{error}: what is missing could not be written down"));
        }
        self.recovered.losses.push(loss);
    }

    /// Removes the segments after a hole. The segment before the hole is `base`.
    pub(super) fn end_at_hole(&mut self, base: i64, behind: &[i64]) -> Result<(), LogError> {
        let Some(end) = self.end else { return Ok(()) };
        let (set_aside, bytes) = self.take_out(None, behind)?;
        if bytes > 0 {
            let place = Some((base, end.end_position));
            let cause = LossCause::Gap;
            self.lose(Loss { cause, from_offset: end.end_offset, known_end: None, place, bytes, set_aside });
        }
        Ok(())
    }

    /// Returns whether the bytes after a segment's last batch contain no record: there is no valid batch among them,
    /// and the next segment begins where this one ends.
    pub(super) fn is_noise(&self, segment: &Segment, end: &SegmentEnd, following: &[i64]) -> Result<bool, LogError> {
        if following.first() != Some(&end.end_offset) {
            return Ok(false);
        }
        let behind = resync::find_batch(&*segment.file()?, end.end_position, segment.size());
        Ok(behind.map_err(|error| segment.read_error(error))?.is_none())
    }

    /// Records that the bytes after a segment's last batch are truncated.
    pub(super) fn lose_noise(&mut self, segment: &Segment, end: &SegmentEnd) {
        let (place, bytes) = (Some((segment.base_offset(), end.end_position)), segment.size() - end.end_position);
        self.recovered.truncated_bytes += bytes;
        let cause = LossCause::TornWrite;
        let from_offset = end.end_offset;
        self.recovered.losses.push(Loss { cause, from_offset, known_end: None, place, bytes, set_aside: Vec::new() });
    }

    /// Removes and reports everything after a segment's last valid batch: the following segments, and the segment's
    /// last bytes, which the caller truncates.
    pub(super) fn give_up_behind(
        &mut self,
        segment: &Segment,
        end: &SegmentEnd,
        following: &[i64],
    ) -> Result<(), LogError> {
        let (base_offset, from, to) = (segment.base_offset(), end.end_position, segment.size());
        let behind = resync::find_batch(&*segment.file()?, from, to).map_err(|error| segment.read_error(error))?;
        let is_damage = behind.is_some()
            || self.how.clean_shutdown
            || end.end_offset < self.acknowledged()
            || following.iter().any(|&base| self.log_size(base).is_ok_and(|size| size > 0));
        let file = segment.file()?;
        let tail = is_damage.then_some(TailBytes { base_offset, file: &file, from, to });
        let (set_aside, bytes) = self.take_out(tail, following)?;
        let cause = if is_damage { LossCause::Damage } else { LossCause::TornWrite };
        let bytes = if is_damage { bytes } else { to - from };
        self.recovered.truncated_bytes += if is_damage { 0 } else { bytes };
        let place = Some((base_offset, from));
        self.lose(Loss { cause, from_offset: end.end_offset, known_end: None, place, bytes, set_aside });
        Ok(())
    }

    /// Sets aside the end of a segment and the segments after it. Empty segments are removed. Returns the names of
    /// the files, and the number of bytes removed from the log.
    pub(super) fn take_out(
        &mut self,
        tail: Option<TailBytes<'_>>,
        bases: &[i64],
    ) -> Result<(Vec<String>, u64), LogError> {
        let mut bytes = tail.map_or(0, |tail| tail.to - tail.from);
        let mut kept = Vec::with_capacity(bases.len());
        for &base in bases.iter().rev() {
            let size = self.log_size(base)?;
            bytes += size;
            if size > 0 {
                kept.push(base);
            } else {
                Segment::existing(Arc::clone(self.home), base, size, IndexEntries::NOTHING, 0).remove()?;
            }
            self.snapshots.retain(|&at| at != base);
        }
        kept.reverse();
        self.recovered.segments_removed += bases.len();
        self.recovered.truncated_bytes += bytes;
        let directory = self.home.path();
        if bytes == 0 {
            file::sync_directory(&directory).map_err(LogError::io(&directory))?;
            return Ok((Vec::new(), 0));
        }
        Ok((set_aside::set_aside(&directory, tail, &kept)?, bytes))
    }

    /// Records that the log ends before its start. Unless the start is `ignored`, all segments are removed.
    pub(super) fn end_before_start(&mut self, ends: EndBeforeStart, ignored: bool) -> Result<(), LogError> {
        let bases: Vec<i64> = self.segments.iter().map(|segment| segment.base_offset()).collect();
        let (mut set_aside, mut bytes) = (Vec::new(), 0);
        if !ignored {
            self.segments.clear();
            (set_aside, bytes) = self.take_out(None, &bases)?;
        }
        if ignored || bytes > 0 {
            let (cause, known_end) = (LossCause::StartBeyondEnd, Some(ends.log_start_offset));
            self.lose(Loss { cause, from_offset: ends.end_offset, known_end, place: None, bytes, set_aside });
        }
        Ok(())
    }

    /// Records the loss if the checkpoints contain offsets outside of the log's range.
    pub(super) fn check_ends(&mut self, offsets: &Range<Offset>) {
        let (log_start_offset, end_offset) = (offsets.start.0, offsets.end.0);
        let nothing = Loss {
            cause: LossCause::EndMissing,
            from_offset: end_offset,
            known_end: None,
            place: None,
            bytes: 0,
            set_aside: Vec::new(),
        };
        if end_offset < self.acknowledged() && self.recovered.losses.is_empty() {
            self.lose(nothing.clone());
        }
        // After a crash, retention may have removed segments without writing the new log start.
        let known_start = self.how.log_start_offset;
        if self.how.clean_shutdown && known_start >= 0 && known_start < log_start_offset {
            let (cause, known_end) = (LossCause::BeginningMissing, Some(log_start_offset));
            self.lose(Loss { cause, from_offset: known_start, known_end, ..nothing });
        }
    }
}
