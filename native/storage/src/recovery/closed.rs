//! Loading of trusted closed segments: each must end where the next one begins, or a loss is reported.
//!
//! Owns which parts of them an opening reads, and the truncation of an incomplete one (docs/adr/0100). Must not know
//! which segments are trusted.

use std::ops::Range;
use std::sync::Arc;

use crate::LogError;
use crate::recovery::Loader;
use crate::recovery::loss::{self, Loss, LossCause};
use crate::recovery::rebuild::{self, FoundEnd, SegmentEnd};
use crate::recovery::resync;
use crate::recovery::set_aside::TailBytes;
use crate::segment::{IndexEntries, Segment};
use pybroker_record::Offset;
use pybroker_sys::file;

impl Loader<'_> {
    /// Loads a closed segment and reads only the batches after its last index entry. It must end with a complete
    /// batch where the next segment begins. Otherwise the missing records are reported, and the log continues with
    /// the next segment. `bases` are the base offsets of both.
    pub(super) fn load_closed(&mut self, bases: Range<Offset>, aborted: u64) -> Result<(), LogError> {
        let Offset(base) = bases.start;
        let size = self.log_size(base)?;
        if let Some(entries) = self.index_entries(base, size)? {
            let segment = Segment::existing(Arc::clone(self.home), base, size, IndexEntries { aborted, ..entries }, 0);
            match rebuild::find_end(&segment)? {
                Some(FoundEnd { end, is_whole: true, is_time_sound: true }) => {
                    self.check_hole(&bases, &end);
                    self.segments.push(Arc::new(segment.at_rest(0)));
                    return Ok(());
                }
                // Both indexes are sound and stop at the damage. A rebuild at each start would give the same result.
                Some(FoundEnd { end, is_whole: false, is_time_sound: true }) if goes_on_behind(&segment, &end)? => {
                    self.warn_of_damage(&segment, &end);
                    self.segments.push(Arc::new(segment.at_rest(0)));
                    return Ok(());
                }
                _ => {}
            }
        }
        let segment = self.new_segment(base, size, aborted)?;
        let end = self.rebuild_indexes(&segment)?;
        if end.end_position == size {
            self.check_hole(&bases, &end);
        } else if goes_on_behind(&segment, &end)? {
            self.warn_of_damage(&segment, &end);
        } else {
            self.cut_closed(&segment, &end, bases.end)?;
        }
        // The next opening trusts these indexes, even after an unclean shutdown.
        segment.seal_durably()?;
        self.take(segment, end);
        Ok(())
    }

    fn warn_of_damage(&mut self, segment: &Segment, end: &SegmentEnd) {
        let (at, size, path) = (end.end_position, segment.size(), segment.path());
        self.warn(&format!("{}: there is no valid batch at byte {at} of {size}", path.display()));
    }

    /// Rebuilds offset index and time index from the batches. Returns the end of the batches.
    pub(super) fn rebuild_indexes(&mut self, segment: &Segment) -> Result<SegmentEnd, LogError> {
        let end = rebuild::scan(segment, self.config.index_interval_bytes, |_| Ok(()))?;
        self.recovered.indexes_rebuilt += 1;
        let base = segment.base_offset();
        self.warn(&format!("{base:020}.index or .timeindex is missing or damaged: both are built anew"));
        Ok(end)
    }

    /// Reports the records that are missing between the end of a closed segment and the next one, whose log continues
    /// there. Every opening finds the hole, but reports it once. Compaction leaves gaps too, so a compacted log has
    /// no known hole. A truncation leaves none (docs/adr/0013).
    fn check_hole(&mut self, bases: &Range<Offset>, end: &SegmentEnd) {
        let (Offset(base), Offset(next)) = (bases.start, bases.end);
        let (from_offset, known_end, place) = (end.end_offset, Some(next), Some((base, end.end_position)));
        let never_compacted = !self.config.require_keys;
        if !never_compacted || from_offset >= next {
            return;
        }
        self.recovered.hole.get_or_insert(from_offset);
        let loss = Loss { cause: LossCause::Hole, from_offset, known_end, place, bytes: 0, set_aside: Vec::new() };
        if !loss::is_written_down(&self.home.path(), &loss) {
            self.lose(loss);
        }
    }

    /// Sets aside and truncates the bytes after the last complete batch of a closed segment. The log continues with
    /// the next segment.
    fn cut_closed(&mut self, segment: &Segment, end: &SegmentEnd, Offset(next): Offset) -> Result<(), LogError> {
        let (base_offset, from, to) = (segment.base_offset(), end.end_position, segment.size());
        let file = segment.file()?;
        let (set_aside, bytes) = self.take_out(Some(TailBytes { base_offset, file: &file, from, to }), &[])?;
        let (from_offset, known_end, place) = (end.end_offset, Some(next), Some((base_offset, from)));
        self.recovered.hole.get_or_insert(from_offset);
        self.lose(Loss { cause: LossCause::Hole, from_offset, known_end, place, bytes, set_aside });
        let path = segment.path();
        file::set_len(&file, from).and_then(|()| file::sync_data(&file)).map_err(LogError::io(&path))?;
        segment.set_size(from);
        Ok(())
    }
}

/// Returns whether a valid batch follows the end of a segment's batches.
fn goes_on_behind(segment: &Segment, end: &SegmentEnd) -> Result<bool, LogError> {
    let behind = resync::find_batch(&*segment.file()?, end.end_position, segment.size());
    Ok(behind.map_err(|error| segment.read_error(error))?.is_some())
}
