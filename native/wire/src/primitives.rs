//! The primitive types of Kafka's protocol: a bounded reader over a frame and a writer that appends to a buffer.
//!
//! Both know whether the message is flexible (KIP-482): lengths are then unsigned varints of length plus one, and every
//! structure ends in a tagged section. No length is believed before it is compared with what remains, so that memory
//! follows bytes that have arrived, never bytes that were announced.

use std::ops::Range;

use super::ErrorCode;

/// No message has arrays as long as this; Kafka 4.4 refuses them too.
pub const MAX_ARRAY: usize = 1_000_000;
/// The longest string in bytes, in either encoding.
pub const MAX_STRING: usize = i16::MAX as usize;
/// No structure has as many tagged fields.
pub const MAX_TAGS: usize = 10_000;

/// Why bytes are not the message that they are said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The message ends before the field does.
    #[error("{wanted} bytes wanted at byte {at}, {left} left")]
    Truncated {
        /// Where the field begins.
        at: usize,
        /// Bytes that it needs.
        wanted: usize,
        /// Bytes there are.
        left: usize,
    },
    /// A length below what its type allows.
    #[error("length {length} at byte {at}")]
    Length {
        /// Where it stands.
        at: usize,
        length: i64,
    },
    /// An array of more elements than any message has, or than bytes are left.
    #[error("an array of {count} elements at byte {at}, with {left} bytes left")]
    Array {
        /// Where it stands.
        at: usize,
        /// Its announced elements.
        count: usize,
        /// Bytes there are.
        left: usize,
    },
    /// A null where none is allowed.
    #[error("null at byte {at}, where the schema has none")]
    Null {
        /// Where it stands.
        at: usize,
    },
    /// A string that is not UTF-8.
    #[error("a string that is not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Where it stands.
        at: usize,
    },
    /// The marker before a nullable structure is neither its null (-1, tagged 0) nor 1.
    #[error("presence marker {marker} at byte {at}")]
    Marker {
        /// Where it stands.
        at: usize,
        marker: i8,
    },
    /// A tagged field with bytes after its value.
    #[error("{left} bytes left after the tagged field that ends at byte {at}")]
    TagSize {
        /// Where the value ends.
        at: usize,
        /// Bytes that nothing reads.
        left: usize,
    },
    /// A port that is none.
    #[error("port {port} at byte {at}")]
    Port {
        /// Where it stands.
        at: usize,
        /// The number.
        port: i32,
    },
    /// A varint that does not end within its type.
    #[error("a varint without end at byte {at}")]
    Varint {
        /// Where it stands.
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
    /// A reader of `bytes` that begins at `at`.
    pub fn new(bytes: &'a [u8], at: usize, flexible: bool) -> Self {
        Self { bytes, at: at.min(bytes.len()), flexible }
    }

    /// Goes on in the other encoding: a few fields keep theirs in flexible messages.
    pub fn set_flexible(&mut self, flexible: bool) {
        self.flexible = flexible;
    }

    /// The next byte's position.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes not yet read.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `wanted` bytes.
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

    /// A boolean: as in Kafka, every byte but 0 is true.
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.i8()? != 0)
    }

    /// A signed byte.
    pub fn i8(&mut self) -> Result<i8, Malformed> {
        Ok(i8::from_be_bytes(self.array()?))
    }

    /// A 16-bit integer.
    pub fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// An unsigned 16-bit integer.
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// A 32-bit integer.
    pub fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// An unsigned 32-bit integer.
    pub fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// A 64-bit integer.
    pub fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// A double.
    pub fn f64(&mut self) -> Result<f64, Malformed> {
        Ok(f64::from_be_bytes(self.array()?))
    }

    /// An error code.
    pub fn error_code(&mut self) -> Result<ErrorCode, Malformed> {
        Ok(ErrorCode(self.i16()?))
    }

    /// A UUID's 16 bytes.
    pub fn uuid(&mut self) -> Result<[u8; 16], Malformed> {
        self.array()
    }

    /// An unsigned varint of at most 32 bits.
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

    /// A length: compact when flexible, else `short` (16 bits) or 32 bits; `None` is null.
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

    /// A string or null.
    pub fn nullable_string(&mut self) -> Result<Option<&'a str>, Malformed> {
        let at = self.at;
        let Some(length) = self.length(true)? else { return Ok(None) };
        if length > MAX_STRING {
            return Err(Malformed::Length { at, length: length as i64 });
        }
        let text = self.take(length)?;
        std::str::from_utf8(text).map(Some).map_err(|_| Malformed::NotUtf8 { at })
    }

    /// A string.
    pub fn string(&mut self) -> Result<&'a str, Malformed> {
        let at = self.at;
        self.nullable_string()?.ok_or(Malformed::Null { at })
    }

    /// Where bytes (or records) lie, or null.
    pub fn nullable_bytes_range(&mut self) -> Result<Option<Range<usize>>, Malformed> {
        let Some(length) = self.length(false)? else { return Ok(None) };
        let begin = self.at;
        self.take(length)?;
        Ok(Some(begin..self.at))
    }

    /// Bytes, or null.
    pub fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let range = self.nullable_bytes_range()?;
        Ok(range.map(|range| &self.bytes[range]))
    }

    /// The element count of an array, or null. An element has at least one byte, so a count beyond what is left is a lie.
    pub fn nullable_array_len(&mut self) -> Result<Option<usize>, Malformed> {
        let at = self.at;
        let Some(count) = self.length(false)? else { return Ok(None) };
        let left = self.left();
        if count > MAX_ARRAY || count > left {
            return Err(Malformed::Array { at, count, left });
        }
        Ok(Some(count))
    }

    /// The element count of an array.
    pub fn array_len(&mut self) -> Result<usize, Malformed> {
        let at = self.at;
        self.nullable_array_len()?.ok_or(Malformed::Null { at })
    }

    /// The marker before a nullable structure: whether the structure follows. As a tagged field a null is 0.
    pub fn presence(&mut self, tagged: bool) -> Result<bool, Malformed> {
        let at = self.at;
        match self.i8()? {
            -1 if !tagged => Ok(false),
            0 if tagged => Ok(false),
            1 => Ok(true),
            marker => Err(Malformed::Marker { at, marker }),
        }
    }

    /// The number of fields in a tagged section.
    pub fn tag_count(&mut self) -> Result<usize, Malformed> {
        let at = self.at;
        let count = self.uvarint()? as usize;
        if count > MAX_TAGS {
            return Err(Malformed::Array { at, count, left: self.left() });
        }
        Ok(count)
    }

    /// A tagged field: its tag, and a reader that ends where its value does.
    pub fn tagged_field(&mut self) -> Result<(u32, Reader<'a>), Malformed> {
        let tag = self.uvarint()?;
        let size = self.uvarint()? as usize;
        let at = self.at;
        self.take(size)?;
        Ok((tag, Reader { bytes: &self.bytes[..self.at], at, flexible: self.flexible }))
    }

    /// Passes over the tagged section that ends a structure, if the message is flexible.
    pub fn tags(&mut self) -> Result<(), Malformed> {
        self.each_tag(|_, _| Ok(()))
    }

    /// Visits the tagged fields that end a structure, if the message is flexible: the tag, and a reader of its value. What
    /// `visit` leaves of a value is passed over.
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

    /// Passes over the tagged section of a header, which a flexible message has in front.
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
    /// A writer at the end of `bytes`.
    pub fn new(bytes: &'a mut Vec<u8>, flexible: bool) -> Self {
        Self { bytes, flexible }
    }

    /// The buffer, for what is put between two fields.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        self.bytes
    }

    /// Bytes in the buffer, those before this writer's included.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A signed byte.
    pub fn i8(&mut self, value: i8) {
        self.raw(&value.to_be_bytes());
    }

    /// A boolean, as 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.i8(value.into());
    }

    /// A 16-bit integer.
    pub fn i16(&mut self, value: i16) {
        self.raw(&value.to_be_bytes());
    }

    /// A 32-bit integer.
    pub fn i32(&mut self, value: i32) {
        self.raw(&value.to_be_bytes());
    }

    /// A 64-bit integer.
    pub fn i64(&mut self, value: i64) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned 16-bit integer.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_be_bytes());
    }

    /// An unsigned 32-bit integer.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_be_bytes());
    }

    /// A double.
    pub fn f64(&mut self, value: f64) {
        self.raw(&value.to_be_bytes());
    }

    /// An error code.
    pub fn error_code(&mut self, value: ErrorCode) {
        self.i16(value.0);
    }

    /// A UUID's 16 bytes.
    pub fn uuid(&mut self, value: &[u8; 16]) {
        self.raw(value);
    }

    /// An unsigned varint.
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

    /// A string of at most 32,767 bytes.
    pub fn string(&mut self, text: &str) {
        self.length(text.len(), true);
        self.raw(text.as_bytes());
    }

    /// A string, or null.
    pub fn nullable_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None if self.flexible => self.uvarint(0),
            None => self.i16(-1),
        }
    }

    /// The length of bytes that are put elsewhere.
    pub fn bytes_len(&mut self, length: usize) {
        self.length(length, false);
    }

    /// Bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes_len(bytes.len());
        self.raw(bytes);
    }

    /// Null bytes.
    pub fn bytes_null(&mut self) {
        self.array_null();
    }

    /// The marker before a nullable structure; as a tagged field a null is 0 (Kafka's generator).
    pub fn presence(&mut self, present: bool, tagged: bool) {
        self.i8(match (present, tagged) {
            (true, _) => 1,
            (false, true) => 0,
            (false, false) => -1,
        });
    }

    /// The element count of an array.
    pub fn array_len(&mut self, count: usize) {
        self.length(count, false);
    }

    /// A null array.
    pub fn array_null(&mut self) {
        if self.flexible { self.uvarint(0) } else { self.i32(-1) }
    }

    /// The tagged section of a structure that has nothing to tag, if the message is flexible.
    pub fn tags_none(&mut self) {
        if self.flexible {
            self.uvarint(0);
        }
    }
}

#[cfg(test)]
mod tests;
