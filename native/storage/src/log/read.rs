//! Reading: from an offset to a slice of a segment file, as a Fetch needs it.
//!
//! Takes no lock. A reader works on one [`View`] from start to end.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use crate::log::Log;
use crate::log::state::View;
use crate::{LogError, ReadError};
use pybroker_record::Offset;

/// A run of bytes of a segment file, ready for `sendfile`.
#[derive(Clone, Debug)]
pub struct FileSlice {
    /// The segment's file. It stays readable after the segment is removed.
    pub file: Arc<File>,
    /// Position of the first batch in the file.
    pub position: u64,
    /// Length in bytes; 0 when there is nothing to read yet. The last batch may be incomplete.
    pub len: usize,
    /// The requested offset. It lies in the first batch, or before it where the log has a gap.
    pub start_offset: i64,
}

/// The position of the batch that contains an offset.
#[derive(Clone, Copy)]
struct Place {
    segment: usize,
    position: u64,
    /// The batch's size, if the search has read its header.
    size: Option<usize>,
}

impl Log {
    /// Returns the file slice for a range of offsets. It starts with the batch that contains the first offset.
    ///
    /// The end of the range is exclusive (high watermark, last stable offset or log end): the slice has no bytes of
    /// the batch that contains the end. A slice never extends beyond its segment. It has at most `max_bytes` and may
    /// be cut anywhere after the first batch.
    ///
    /// With `min_one` the first batch is always complete. Without it the slice is empty when the first batch does not
    /// fit, because a consumer cannot use a part of a batch (Kafka's `firstEntryIncomplete`).
    ///
    /// # Errors
    /// `OffsetOutOfRange` outside `[log start, log end]`; `Io` when the log directory failed.
    pub fn plan_read(&self, offsets: Range<Offset>, max_bytes: usize, min_one: bool) -> Result<FileSlice, ReadError> {
        self.plan_in_view(offsets.start.0, |view| Ok(plan(view, &offsets, max_bytes, min_one)?.slice))
    }

    /// Plans a read on a view of the log that has `offset`. Retries if the segments changed meanwhile.
    pub(crate) fn plan_in_view<T>(
        &self,
        offset: i64,
        plan: impl Fn(&View) -> Result<T, LogError>,
    ) -> Result<T, ReadError> {
        loop {
            let view = self.view.load();
            let (start, log_end) = (view.log_start_offset, view.end_offset);
            if offset < start || offset > log_end {
                return Err(ReadError::OffsetOutOfRange { offset, start, end: log_end });
            }
            match plan(&view) {
                Ok(planned) => return Ok(planned),
                // Segments were removed or truncated since the view was loaded: retry with the new view.
                Err(_) if !Arc::ptr_eq(&view.segments, &self.view.load().segments) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the bytes from the batch with the first offset up to the batch with the end offset; 0 for an empty
    /// range.
    pub fn bytes_between(&self, offsets: Range<Offset>) -> u64 {
        let view = self.view.load();
        let (offset, end) = (offsets.start.0, offsets.end.0.min(view.end_offset));
        if offset < view.log_start_offset || offset >= end {
            return 0;
        }
        let (Ok(Some(from)), Ok(to)) = (find(&view, offset), find_end(&view, end)) else { return 0 };
        let between: u64 =
            view.segments.as_slice()[from.segment..to.segment].iter().map(|segment| segment.size()).sum();
        (between + to.position).saturating_sub(from.position)
    }
}

/// A slice, and the index of its segment in the view's list.
pub(crate) struct Planned {
    pub(crate) slice: FileSlice,
    pub(crate) segment: usize,
}

pub(crate) fn plan(view: &View, offsets: &Range<Offset>, max_bytes: usize, min_one: bool) -> Result<Planned, LogError> {
    let (offset, end) = (offsets.start.0, offsets.end.0.min(view.end_offset));
    let nothing = || -> Result<Planned, LogError> {
        let file = view.segments.active().file()?;
        let slice = FileSlice { file, position: view.end_position, len: 0, start_offset: offset };
        Ok(Planned { slice, segment: view.segments.len() - 1 })
    };
    if offset >= end {
        return nothing();
    }
    let Some(first) = find(view, offset)? else { return nothing() };
    let last = find_end(view, end)?;
    let limit = if last.segment > first.segment { view.limit_of(first.segment) } else { last.position };
    let available = limit.saturating_sub(first.position) as usize;
    if available == 0 {
        return nothing();
    }
    let mut len = available.min(max_bytes);
    if len < available {
        let whole = size_at(view, first)?.min(available);
        if len < whole {
            len = if min_one { whole } else { 0 };
        }
    }
    let file = view.segments.as_slice()[first.segment].file()?;
    let slice = FileSlice { file, position: first.position, len, start_offset: offset };
    Ok(Planned { slice, segment: first.segment })
}

/// Returns the first batch whose last offset is at least `offset`; `None` at the end of the log.
fn find(view: &View, offset: i64) -> Result<Option<Place>, LogError> {
    let mut segment = view.segments.floor(offset);
    if view.segments.is_active(segment) && offset >= view.tail.offset {
        let inside = offset < view.tail.next_offset;
        return Ok(inside.then_some(Place { segment, position: view.tail.position, size: None }));
    }
    while segment < view.segments.len() {
        if let Some((position, size)) =
            view.segments.as_slice()[segment].find_position(offset, view.limit_of(segment))?
        {
            return Ok(Some(Place { segment, position, size }));
        }
        segment += 1;
    }
    Ok(None)
}

/// Returns the position where a read with the exclusive end `end` must stop.
fn find_end(view: &View, end: i64) -> Result<Place, LogError> {
    let end_of_log = Place { segment: view.segments.len() - 1, position: view.end_position, size: None };
    if end >= view.end_offset {
        return Ok(end_of_log);
    }
    Ok(find(view, end)?.unwrap_or(end_of_log))
}

/// Returns the size of the batch at a position. Reads the batch header if the size is not known yet.
fn size_at(view: &View, place: Place) -> Result<usize, LogError> {
    if let Some(size) = place.size {
        return Ok(size);
    }
    let limit = view.limit_of(place.segment);
    if view.segments.is_active(place.segment) && place.position == view.tail.position {
        return Ok((limit - place.position) as usize);
    }
    view.segments.as_slice()[place.segment].size_at(place.position, limit)
}
