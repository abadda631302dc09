//! Reading: from an offset to a slice of a file.
//!
//! Owns the translation that a Fetch needs. No lock is taken; a reader works on one [`View`] from start to end.

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
    /// The segment's file; stays readable after the segment is removed.
    pub file: Arc<File>,
    /// Where the first batch starts.
    pub position: u64,
    /// Bytes; 0 when there is nothing yet. The last batch may be cut.
    pub len: usize,
    /// The offset that was asked for: it lies in the first batch, or before it where the log has a gap.
    pub start_offset: i64,
}

/// Where the batch that contains an offset starts.
#[derive(Clone, Copy)]
struct Place {
    segment: usize,
    position: u64,
    /// The batch's size, where finding it meant reading its header.
    size: Option<usize>,
}

impl Log {
    /// Turns offsets into a file slice that starts with the batch containing the first of them.
    ///
    /// Their end is exclusive (high watermark, last stable offset or log end): nothing of the batch that contains it is in the
    /// slice. At most `max_bytes` long, cut anywhere behind the first batch; that is always whole with `min_one`, and without
    /// it the slice is empty where it does not fit: a consumer can make nothing of a part (Kafka's `firstEntryIncomplete`).
    /// A slice ends with its segment.
    ///
    /// # Errors
    /// `OffsetOutOfRange` outside `[log start, log end]`; `Io` when the log directory failed.
    pub fn plan_read(&self, offsets: Range<Offset>, max_bytes: usize, min_one: bool) -> Result<FileSlice, ReadError> {
        self.plan_in_view(offsets.start.0, |view| Ok(plan(view, &offsets, max_bytes, min_one)?.slice))
    }

    /// Plans on one view of the log that has `offset`; once more where the segments change meanwhile.
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
                // Segments went away (removal, truncation) between the look and the read: look again.
                Err(_) if !Arc::ptr_eq(&view.segments, &self.view.load().segments) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Bytes from the batch containing the first of these offsets up to the one containing their end; 0 when there are none.
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

/// A slice, and the place of its segment in the view's list.
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

/// The first batch whose last offset is `offset` or more; `None` at the end of the log.
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

/// Where a read that must not reach `end` has to stop.
fn find_end(view: &View, end: i64) -> Result<Place, LogError> {
    let end_of_log = Place { segment: view.segments.len() - 1, position: view.end_position, size: None };
    if end >= view.end_offset {
        return Ok(end_of_log);
    }
    Ok(find(view, end)?.unwrap_or(end_of_log))
}

/// The size of the batch at a place, which is read where it is not known.
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
