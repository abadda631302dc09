//! The records of a batch: iteration over borrowed bytes.

use super::varint::{varint, varlong};
use super::{BatchHeader, HEADER_LEN, RecordError, decompress};

/// One record, borrowed from its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset minus the batch's base offset.
    pub offset_delta: i32,
    /// Timestamp minus the batch's base timestamp, ms.
    pub timestamp_delta: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// The encoded headers; see [`Headers`].
    pub headers: &'a [u8],
    /// The number of headers.
    pub header_count: i32,
}

/// Iterates over an uncompressed record section. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    at: usize,
    index: i32,
    count: i32,
}

/// The progress of an iteration, from which another one can resume over the same section and count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    at: usize,
    index: i32,
}

impl Progress {
    /// Returns the bytes read of the section.
    pub fn bytes(self) -> usize {
        self.at
    }

    /// Returns the number of records read.
    pub fn records(self) -> i32 {
        self.index
    }
}

impl<'a> Records<'a> {
    /// Creates an iterator over the `count` records in `section`.
    pub fn new(section: &'a [u8], count: i32) -> Self {
        Self::resume(section, count, Progress::default())
    }

    /// Creates an iterator over those of the `count` records in `section` that an earlier iteration has not read.
    pub fn resume(section: &'a [u8], count: i32, from: Progress) -> Self {
        Self { bytes: section, at: from.at, index: from.index, count }
    }

    /// Returns the progress, with which [`Self::resume`] continues after the last record read.
    pub fn progress(&self) -> Progress {
        Progress { at: self.at, index: self.index }
    }

    /// Returns the number of bytes after the last record read.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[cold]
    fn bad(&self, reason: &'static str) -> RecordError {
        RecordError::Record { index: self.index, reason }
    }

    #[inline(always)]
    fn read(&mut self) -> Result<Record<'a>, RecordError> {
        let (length, begin) = varint(self.bytes, self.at)?;
        let end = usize::try_from(length).ok().and_then(|length| begin.checked_add(length));
        let end =
            end.filter(|end| *end <= self.bytes.len()).ok_or_else(|| self.bad("its length runs over the batch"))?;
        let bytes = &self.bytes[..end];
        // The attributes byte of a record is unused.
        let (timestamp_delta, at) = varlong(bytes, begin + 1)?;
        let (offset_delta, at) = varint(bytes, at)?;
        let (key, at) = self.field(bytes, at)?;
        let (value, at) = self.field(bytes, at)?;
        let (header_count, at) = varint(bytes, at)?;
        if header_count < 0 {
            return Err(self.bad("a negative number of headers"));
        }
        let record = Record { offset_delta, timestamp_delta, key, value, headers: &bytes[at..], header_count };
        if header_count == 0 && at != end {
            return Err(self.bad("its parts do not fill it"));
        }
        self.at = end;
        Ok(record)
    }

    #[inline(always)]
    fn field(&self, bytes: &'a [u8], at: usize) -> Result<(Option<&'a [u8]>, usize), RecordError> {
        let (length, at) = varint(bytes, at)?;
        if length < 0 {
            return if length == -1 { Ok((None, at)) } else { Err(self.bad("a negative length")) };
        }
        let end = at + length as usize;
        let field = bytes.get(at..end).ok_or_else(|| self.bad("a key or value runs over it"))?;
        Ok((Some(field), end))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.index >= self.count {
            return None;
        }
        let record = self.read();
        self.index = if record.is_ok() { self.index + 1 } else { self.count };
        Some(record)
    }
}

/// Iterates over a record's headers: key and value. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    bytes: &'a [u8],
    left: i32,
}

impl<'a> Headers<'a> {
    /// Creates an iterator over the headers of `record`.
    pub fn new(record: &Record<'a>) -> Self {
        Self { bytes: record.headers, left: record.header_count }
    }

    /// Returns the bytes after the last header read.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    fn part(&mut self, nullable: bool) -> Result<Option<&'a [u8]>, RecordError> {
        let (length, at) = varint(self.bytes, 0)?;
        if length == -1 && nullable {
            self.bytes = &self.bytes[at..];
            return Ok(None);
        }
        let bad = RecordError::Record { index: -1, reason: "a header runs over its record" };
        let end = usize::try_from(length).ok().map(|length| at + length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(bad)?;
        let part = &self.bytes[at..end];
        self.bytes = &self.bytes[end..];
        Ok(Some(part))
    }
}

impl<'a> Iterator for Headers<'a> {
    /// Key and value of a header.
    type Item = Result<(&'a [u8], Option<&'a [u8]>), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left <= 0 {
            return None;
        }
        let read = self.part(false).and_then(|key| Ok((key.unwrap_or_default(), self.part(true)?)));
        self.left = if read.is_ok() { self.left - 1 } else { 0 };
        Some(read)
    }
}

/// Returns the record section of a complete `batch`, decompressed into `scratch` if it is compressed, at most `max`
/// bytes.
///
/// # Errors
/// For an old message, which has no such section; for an unknown codec; when the bytes cannot be decompressed or
/// exceed `max`.
pub fn records_section<'a>(
    header: &BatchHeader,
    batch: &'a [u8],
    scratch: &'a mut Vec<u8>,
    max: usize,
) -> Result<&'a [u8], RecordError> {
    if header.magic < 2 {
        return Err(RecordError::Magic(header.magic));
    }
    let section = batch.get(HEADER_LEN..).unwrap_or_default();
    match header.compression()? {
        super::Compression::None => Ok(section),
        codec => {
            scratch.clear();
            decompress(codec, section, max, scratch)?;
            Ok(scratch)
        }
    }
}
