//! The primitive types of Kafka's protocol: a bounded reader over a frame, and a writer that appends to a buffer.
//!
//! Both know whether the message is flexible (KIP-482): then lengths are unsigned varints of length plus one, and
//! every structure ends with a tagged section. Every length is compared with the remaining bytes before it is used,
//! so that memory use follows received bytes, not announced ones.

use std::ops::Range;

use super::ErrorCode;

/// The maximum array length. Kafka 4.4 rejects longer ones too.
pub const MAX_ARRAY: usize = 1_000_000;
/// The maximum length of a string in bytes, in either encoding.
pub const MAX_STRING: usize = i16::MAX as usize;
/// The maximum number of tagged fields of a structure.
pub const MAX_TAGS: usize = 10_000;

/// Why bytes are not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The message ends before the field.
    #[error("{wanted} bytes wanted at byte {at}, {left} left")]
    Truncated {
        /// Position of the field.
        at: usize,
        /// Number of bytes needed.
        wanted: usize,
        /// Number of bytes available.
        left: usize,
    },
    /// A length that is negative or otherwise below the type's minimum.
    #[error("length {length} at byte {at}")]
    Length {
        /// Position of the length.
        at: usize,
        length: i64,
    },
    /// An array with more elements than the maximum or than bytes are left.
    #[error("an array of {count} elements at byte {at}, with {left} bytes left")]
    Array {
        /// Position of the array.
        at: usize,
        /// The announced number of elements.
        count: usize,
        /// Number of bytes available.
        left: usize,
    },
    /// A null in a field that is not nullable.
    #[error("null at byte {at}, where the schema has none")]
    Null {
        /// Position of the field.
        at: usize,
    },
    /// A string that is not UTF-8.
    #[error("a string that is not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Position of the string.
        at: usize,
    },
    /// The marker before a nullable structure is neither null (-1, in a tagged field 0) nor 1.
    #[error("presence marker {marker} at byte {at}")]
    Marker {
        /// Position of the marker.
        at: usize,
        marker: i8,
    },
    /// A tagged field with bytes after its value.
    #[error("{left} bytes left after the tagged field that ends at byte {at}")]
    TagSize {
        /// Position after the value.
        at: usize,
        /// Number of unread bytes.
        left: usize,
    },
    /// An invalid port number.
    #[error("port {port} at byte {at}")]
    Port {
        /// Position of the number.
        at: usize,
        /// The number.
        port: i32,
    },
    /// A varint that is longer than its type.
    #[error("a varint without end at byte {at}")]
    Varint {
        /// Position of the varint.
        at: usize,
    },
}

/// Reads primitive types from a message, never beyond its end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    flexible: bool,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `bytes` that starts at `at`.
    pub fn new(bytes: &'a [u8], at: usize, flexible: bool) -> Self {
        Self { bytes, at: at.min(bytes.len()), flexible }
    }

    /// Changes the encoding of the following fields: a few fields of flexible messages keep the older one.
    pub fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    /// Returns the position of the next byte.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Returns the number of unread bytes.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Reads `wanted` bytes.
    pub fn take(&mut self, wanted: usize) -> Result<&'a [u8], Malformed> {
        let (at, left) = (self.at, self.left());
        if wanted > left {
            return Err(Malformed::Truncated { at, wanted, left });
        }
        self.at += wanted;
        Ok(&self.bytes[at..self.at])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (at, left) = (self.at, self.left());
        let found = self.bytes[at..].first_chunk().ok_or(Malformed::Truncated { at, wanted: N, left })?;
        self.at += N;
        Ok(*found)
    }

    /// Reads a boolean. As in Kafka, every byte but 0 is true.
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.i8()? != 0)
    }

    /// Reads a signed byte.
    pub fn i8(&mut self) -> Result<i8, Malformed> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    /// Reads a 16-bit integer.
    pub fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// Reads an unsigned 16-bit integer.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Reads a 32-bit integer.
    pub fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// Reads an unsigned 32-bit integer.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Reads a 64-bit integer.
    pub fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Reads a double.
    pub fn f64(&mut self) -> Result<f64, Malformed> {
        Ok(f64::from_be_bytes(self.array()?))
    }

    /// Reads an error code.
    pub fn error_code(&mut self) -> Result<ErrorCode, Malformed> {
        Ok(ErrorCode(self.i16()?))
    }

    /// Reads the 16 bytes of a UUID.
    pub fn uuid(&mut self) -> Result<[u8; 16], Malformed> {
        self.array()
    }

    /// Reads an unsigned varint of at most 32 bits.
    pub fn uvarint(&mut self) -> Result<u32, Malformed> {
        let at = self.at;
        let mut value = 0_u32;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array()?;
            if shift == 28 && byte > 0x0f {
                break;
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed::Varint { at })
    }

    /// Reads a length: compact if flexible, else 16 bits (`short`) or 32 bits. `None` is null.
    fn length(&mut self, short: bool) -> Result<Option<usize>, Malformed> {
        let at = self.at;
        if self.flexible {
            return Ok((self.uvarint()? as usize).checked_sub(1));
        }
        let length = if short { i64::from(self.i16()?) } else { i64::from(self.i32()?) };
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(Malformed::Length { at, length }),
        }
    }

    /// Reads a string or null.
    pub fn nullable_string(&mut self) -> Result<Option<&'a str>, Malformed> {
        let at = self.at;
        let Some(length) = self.length(true)? else { return Ok(None) };
        if length > MAX_STRING {
            return Err(Malformed::Length { at, length: length as i64 });
        }
        let text = self.take(length)?;
        std::str::from_utf8(text).map(Some).map_err(|_| Malformed::NotUtf8 { at })
    }

    /// Reads a string.
    pub fn string(&mut self) -> Result<&'a str, Malformed> {
        let at = self.at;
        self.nullable_string()?.ok_or(Malformed::Null { at })
    }

    /// Reads bytes (or records) or null. Returns their range in the frame.
    pub fn nullable_bytes_range(&mut self) -> Result<Option<Range<usize>>, Malformed> {
        let Some(length) = self.length(false)? else { return Ok(None) };
        let begin = self.at;
        self.take(length)?;
        Ok(Some(begin..self.at))
    }

    /// Reads bytes or null.
    pub fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let range = self.nullable_bytes_range()?;
        Ok(range.map(|range| &self.bytes[range]))
    }

    /// Reads the element count of an array or null. Each element has at least one byte, so a larger count is invalid.
    pub fn nullable_array_len(&mut self) -> Result<Option<usize>, Malformed> {
        let at = self.at;
        let Some(count) = self.length(false)? else { return Ok(None) };
        let left = self.left();
        if count > MAX_ARRAY || count > left {
            return Err(Malformed::Array { at, count, left });
        }
        Ok(Some(count))
    }

    /// Reads the element count of an array.
    pub fn array_len(&mut self) -> Result<usize, Malformed> {
        let at = self.at;
        self.nullable_array_len()?.ok_or(Malformed::Null { at })
    }

    /// Reads the marker before a nullable structure. Returns whether the structure follows. In a tagged field null is
    /// 0.
    pub fn presence(&mut self, tagged: bool) -> Result<bool, Malformed> {
        let at = self.at;
        match self.i8()? {
            -1 if !tagged => Ok(false),
            0 if tagged => Ok(false),
            1 => Ok(true),
            marker => Err(Malformed::Marker { at, marker }),
        }
    }

    /// Reads the number of fields in a tagged section.
    pub fn tag_count(&mut self) -> Result<usize, Malformed> {
        let at = self.at;
        let count = self.uvarint()? as usize;
        if count > MAX_TAGS {
            return Err(Malformed::Array { at, count, left: self.left() });
        }
        Ok(count)
    }

    /// Reads the head of a tagged field. Returns its tag, and a reader that ends after the field's value.
    pub fn tagged_field(&mut self) -> Result<(u32, Reader<'a>), Malformed> {
        let tag = self.uvarint()?;
        let size = self.uvarint()? as usize;
        let at = self.at;
        self.take(size)?;
        Ok((tag, Reader { bytes: &self.bytes[..self.at], at, flexible: self.flexible }))
    }

    /// Skips the tagged section at the end of a structure, if the message is flexible.
    pub fn tags(&mut self) -> Result<(), Malformed> {
        self.each_tag(|_, _| Ok(()))
    }

    /// Calls `visit` with the tagged fields at the end of a structure, if the message is flexible: the tag, and a
    /// reader of its value. Unread bytes of a value are skipped.
    pub fn each_tag(
        &mut self,
        mut visit: impl FnMut(u32, &mut Reader<'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.tag_count()? {
            let (tag, mut value) = self.tagged_field()?;
            visit(tag, &mut value)?;
        }
        Ok(())
    }

    /// Skips the tagged section of a header, which precedes the message in flexible versions.
    pub fn header_tags(&mut self) -> Result<(), Malformed> {
        self.tags()
    }
}

/// Appends primitive types to a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut Vec<u8>,
    flexible: bool,
}

impl<'a> Writer<'a> {
    /// Creates a writer at the end of `bytes`.
    pub fn new(bytes: &'a mut Vec<u8>, flexible: bool) -> Self {
        Self { bytes, flexible }
    }

    /// Returns the buffer, for bytes between two fields.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.bytes
    }

    /// Returns the number of bytes in the buffer, including those before this writer.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes bytes without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes a signed byte.
    pub fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    /// Writes a boolean, as 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.i8(value.into());
    }

    /// Writes a 16-bit integer.
    pub fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    /// Writes a 32-bit integer.
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// Writes a 64-bit integer.
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// Writes an unsigned 16-bit integer.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    /// Writes an unsigned 32-bit integer.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// Writes a double.
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_be_bytes());
    }

    /// Writes an error code.
    pub fn error_code(&mut self, value: ErrorCode) {
        self.i16(value.0);
    }

    /// Writes the 16 bytes of a UUID.
    pub fn uuid(&mut self, value: &[u8; 16]) {
        self.raw(value);
    }

    /// Writes an unsigned varint.
    pub fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn length(&mut self, length: usize, short: bool) {
        match (self.flexible, short) {
            (true, _) => self.uvarint(length as u32 + 1),
            (false, true) => self.i16(length as i16),
            (false, false) => self.i32(length as i32),
        }
    }

    /// Writes a string of at most 32,767 bytes.
    pub fn string(&mut self, text: &str) {
        self.length(text.len(), true);
        self.raw(text.as_bytes());
    }

    /// Writes a string or null.
    pub fn nullable_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None if self.flexible => self.uvarint(0),
            None => self.i16(-1),
        }
    }

    /// Writes the length of bytes that the caller writes or sends itself.
    pub fn bytes_len(&mut self, length: usize) {
        self.length(length, false);
    }

    /// Writes bytes with their length.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes_len(bytes.len());
        self.raw(bytes);
    }

    /// Writes null bytes.
    pub fn bytes_null(&mut self) {
        self.array_null();
    }

    /// Writes the marker before a nullable structure. In a tagged field null is 0 (Kafka's generator).
    pub fn presence(&mut self, present: bool, tagged: bool) {
        self.i8(match (present, tagged) {
            (true, _) => 1,
            (false, true) => 0,
            (false, false) => -1,
        });
    }

    /// Writes the element count of an array.
    pub fn array_len(&mut self, count: usize) {
        self.length(count, false);
    }

    /// Writes a null array.
    pub fn array_null(&mut self) {
        if self.flexible { self.uvarint(0) } else { self.i32(-1) }
    }

    /// Writes an empty tagged section, if the message is flexible.
    pub fn tags_none(&mut self) {
        if self.flexible {
            self.uvarint(0);
        }
    }
}

#[cfg(test)]
mod tests;
