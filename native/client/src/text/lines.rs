//! The console producer's input: lines, with the headers, the key and the value in each.
//!
//! Owns where a line ends (as `BufferedReader.readLine`) and where its parts do (as `LineMessageReader`). Bytes are not
//! decoded.

use std::ops::Range;

/// The format of a line.
#[derive(Debug, Clone)]
pub struct LineFormat {
    pub parse_key: bool,
    pub parse_headers: bool,
    /// Between key and value.
    pub key_separator: Vec<u8>,
    /// After the headers.
    pub headers_delimiter: Vec<u8>,
    /// Between two headers.
    pub headers_separator: Vec<u8>,
    /// Between a header's key and its value.
    pub headers_key_separator: Vec<u8>,
    /// The text for null.
    pub null_marker: Option<Vec<u8>>,
    /// Whether a line without a separator is a value.
    pub ignore_error: bool,
}

/// A record in a line: the ranges of its parts in the block.
#[derive(Debug, Clone)]
pub struct Line {
    /// Counted from 1 over all blocks.
    pub number: u64,
    pub key: Option<Range<usize>>,
    pub value: Option<Range<usize>>,
    /// The range of its headers in those of all lines.
    pub headers: Range<usize>,
}

/// The lines of a block.
#[derive(Debug, Default)]
pub struct Lines {
    pub lines: Vec<Line>,
    /// Key and value of every header.
    pub headers: Vec<(Range<usize>, Option<Range<usize>>)>,
    /// The error that ended the parsing of the block.
    pub failure: Option<BadLine>,
}

/// A line that does not fit the format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    pub number: u64,
    /// Kafka's error text.
    pub detail: String,
}

/// Splits a stream of bytes into lines.
#[derive(Debug, Default)]
pub struct LinesSplitter {
    /// A line that has not ended.
    rest: Vec<u8>,
    lines: u64,
    /// The last block ended in CR: an LF that follows belongs to the same line end.
    after_cr: bool,
}

impl LinesSplitter {
    /// The bytes of the lines that end in `block`, and of the last one at the stream's end.
    pub fn split(&mut self, block: &[u8], is_end: bool) -> Vec<u8> {
        let skip = usize::from(self.after_cr && block.first() == Some(&b'\n'));
        self.after_cr = self.after_cr && block.is_empty();
        let block = &block[skip..];
        let mut whole = std::mem::take(&mut self.rest);
        let end = if is_end { block.len() } else { memchr::memrchr2(b'\n', b'\r', block).map_or(0, |at| at + 1) };
        if end == 0 && !is_end {
            whole.extend_from_slice(block);
            self.rest = whole;
            return Vec::new();
        }
        whole.extend_from_slice(&block[..end]);
        self.rest.extend_from_slice(&block[end..]);
        self.after_cr = self.rest.is_empty() && whole.last() == Some(&b'\r');
        whole
    }

    /// Parse the lines that `split` returned.
    pub fn parse(&mut self, whole: &[u8], format: &LineFormat) -> Lines {
        let (mut found, mut at) = (Lines::default(), 0);
        while at < whole.len() {
            let end = memchr::memchr2(b'\n', b'\r', &whole[at..]).map_or(whole.len(), |length| at + length);
            self.lines += 1;
            if let Err(detail) = found.parse(self.lines, whole, at..end, format) {
                found.failure = Some(BadLine { number: self.lines, detail });
                break;
            }
            at = end + if whole[end..].starts_with(b"\r\n") { 2 } else { 1 };
        }
        found
    }
}

impl Lines {
    fn parse(&mut self, number: u64, whole: &[u8], line: Range<usize>, format: &LineFormat) -> Result<(), String> {
        let first = self.headers.len();
        let is_null = |part: &Range<usize>| format.null_marker.as_deref() == Some(&whole[part.clone()]);
        let mut at = line.start;
        let mut cut = |wanted: bool, separator: &[u8], name: &str| {
            if !wanted {
                return Ok(None);
            }
            match memchr::memmem::find(&whole[at..line.end], separator) {
                Some(length) => {
                    let part = at..at + length;
                    at = part.end + separator.len();
                    Ok(Some(part))
                }
                None if format.ignore_error => Ok(None),
                None => {
                    let text = String::from_utf8_lossy(&whole[line.clone()]);
                    Err(format!("No {name} found on line number {number}: '{text}'"))
                }
            }
        };
        let headers = cut(format.parse_headers, &format.headers_delimiter, "headers delimiter")?;
        let key = cut(format.parse_key, &format.key_separator, "key separator")?;
        let value = at..line.end;
        if let Some(headers) = headers.filter(|headers| !is_null(headers)) {
            self.parse_headers(number, whole, headers, format)?;
        }
        let (key, value) = (key.filter(|key| !is_null(key)), Some(value).filter(|value| !is_null(value)));
        self.lines.push(Line { number, key, value, headers: first..self.headers.len() });
        Ok(())
    }

    /// Parse the pairs between separators; empty ones at the end are ignored, as in Java's `split`.
    fn parse_headers(
        &mut self,
        number: u64,
        whole: &[u8],
        headers: Range<usize>,
        format: &LineFormat,
    ) -> Result<(), String> {
        let separator = &format.headers_separator;
        let mut starts = vec![headers.start];
        let found = memchr::memmem::find_iter(&whole[headers.clone()], separator);
        starts.extend(found.map(|at| headers.start + at + separator.len()));
        let mut pairs: Vec<Range<usize>> = Vec::with_capacity(starts.len());
        for (place, start) in starts.iter().enumerate() {
            let end = starts.get(place + 1).map_or(headers.end, |next| next - separator.len());
            pairs.push(*start..end);
        }
        while pairs.len() > 1 && pairs.last().is_some_and(Range::is_empty) {
            pairs.pop();
            if pairs.len() == 1 && pairs[0].is_empty() {
                pairs.clear();
            }
        }
        for pair in pairs {
            let text = |part: Range<usize>| String::from_utf8_lossy(&whole[part]).into_owned();
            let is_null = |part: &Range<usize>| format.null_marker.as_deref() == Some(&whole[part.clone()]);
            let Some(length) = memchr::memmem::find(&whole[pair.clone()], &format.headers_key_separator) else {
                if format.ignore_error {
                    self.headers.push((pair, None));
                    continue;
                }
                let pair = text(pair);
                return Err(format!("No header key separator found in pair '{pair}' on line number {number}"));
            };
            let key = pair.start..pair.start + length;
            if is_null(&key) {
                let marker = text(key);
                return Err(format!(
                    "Header keys should not be equal to the null marker '{marker}' as they can't be null"
                ));
            }
            let value = key.end + format.headers_key_separator.len()..pair.end;
            self.headers.push((key, Some(value).filter(|value| !is_null(value))));
        }
        Ok(())
    }
}
