//! Fields of requests and responses, in both encodings: fixed lengths, and KIP-482's compact ("flexible") one.
//!
//! A writer or reader knows which of the two its message uses, so that each message is written once.

/// Why a response cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    #[error("ends at byte {at} of {len}, {needed} more needed")]
    Short { at: usize, len: usize, needed: usize },
    #[error("a length of {length} at byte {at} of {len}")]
    BadLength { at: usize, len: usize, length: i64 },
    #[error("a string at byte {at} that is not UTF-8")]
    NotUtf8 { at: usize },
}

/// Writes fields to the end of a buffer.
#[derive(Debug)]
pub struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
    flexible: bool,
}

impl<'a> FieldWriter<'a> {
    pub fn new(out: &'a mut Vec<u8>, flexible: bool) -> Self {
        Self { out, flexible }
    }

    pub fn i8(&mut self, value: i8) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub fn bool(&mut self, value: bool) {
        self.out.push(u8::from(value));
    }

    pub fn i16(&mut self, value: i16) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub fn i32(&mut self, value: i32) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub fn i64(&mut self, value: i64) {
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    pub fn uuid(&mut self, value: &[u8; 16]) {
        self.out.extend_from_slice(value);
    }

    /// An unsigned varint (KIP-482).
    pub fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.out.push((value as u8) | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// The length before an array's items; the caller writes the items.
    pub fn array(&mut self, len: usize) {
        if self.flexible { self.uvarint(len as u32 + 1) } else { self.i32(len as i32) }
    }

    /// The length before bytes that travel beside this buffer (records).
    pub fn bytes_length(&mut self, len: usize) {
        self.array(len);
    }

    /// A string with its length, in the form of the version.
    pub fn string(&mut self, value: &str) {
        if self.flexible {
            self.uvarint(value.len() as u32 + 1)
        } else {
            self.i16(value.len() as i16)
        }
        self.out.extend_from_slice(value.as_bytes());
    }

    /// The null of a nullable string.
    pub fn null_string(&mut self) {
        if self.flexible { self.uvarint(0) } else { self.i16(-1) }
    }

    /// The end of a structure: no tagged fields.
    pub fn end(&mut self) {
        if self.flexible {
            self.out.push(0);
        }
    }
}

/// Reads fields from a response; no length is believed before it is checked against what is there.
#[derive(Debug, Clone)]
pub struct FieldReader<'a> {
    bytes: &'a [u8],
    at: usize,
    flexible: bool,
}

impl<'a> FieldReader<'a> {
    pub fn new(bytes: &'a [u8], flexible: bool) -> Self {
        Self { bytes, at: 0, flexible }
    }

    /// The next `len` bytes; an error where fewer are left.
    pub fn raw(&mut self, len: usize) -> Result<&'a [u8], FieldError> {
        let left = self.bytes.len() - self.at;
        if len > left {
            return Err(FieldError::Short { at: self.at, len: self.bytes.len(), needed: len - left });
        }
        let taken = &self.bytes[self.at..self.at + len];
        self.at += len;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], FieldError> {
        let mut value = [0; N];
        value.copy_from_slice(self.raw(N)?);
        Ok(value)
    }

    pub fn i8(&mut self) -> Result<i8, FieldError> {
        Ok(i8::from_be_bytes(self.fixed()?))
    }

    pub fn bool(&mut self) -> Result<bool, FieldError> {
        Ok(self.i8()? != 0)
    }

    pub fn i16(&mut self) -> Result<i16, FieldError> {
        Ok(i16::from_be_bytes(self.fixed()?))
    }

    pub fn i32(&mut self) -> Result<i32, FieldError> {
        Ok(i32::from_be_bytes(self.fixed()?))
    }

    pub fn i64(&mut self) -> Result<i64, FieldError> {
        Ok(i64::from_be_bytes(self.fixed()?))
    }

    pub fn uuid(&mut self) -> Result<[u8; 16], FieldError> {
        self.fixed()
    }

    /// An unsigned varint of at most 32 bits.
    pub fn uvarint(&mut self) -> Result<u32, FieldError> {
        let (start, mut value) = (self.at, 0u64);
        for shift in (0..35).step_by(7) {
            let [byte] = self.fixed()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| FieldError::BadLength {
                    at: start,
                    len: self.bytes.len(),
                    length: value as i64,
                });
            }
        }
        Err(FieldError::BadLength { at: start, len: self.bytes.len(), length: value as i64 })
    }

    /// A length as arrays and bytes have it; `None` is null. Never more than the bytes that are left.
    fn length(&mut self) -> Result<Option<usize>, FieldError> {
        let at = self.at;
        let length = if self.flexible { i64::from(self.uvarint()?) - 1 } else { i64::from(self.i32()?) };
        self.checked(at, length)
    }

    fn checked(&self, at: usize, length: i64) -> Result<Option<usize>, FieldError> {
        match usize::try_from(length) {
            Ok(len) if len <= self.bytes.len() - self.at => Ok(Some(len)),
            Err(_) if length == -1 => Ok(None),
            _ => Err(FieldError::BadLength { at, len: self.bytes.len(), length }),
        }
    }

    /// The number of items that follow; null counts as none.
    pub fn array(&mut self) -> Result<usize, FieldError> {
        Ok(self.length()?.unwrap_or(0))
    }

    /// The start and length of bytes inside the response; null counts as none.
    pub fn bytes_range(&mut self) -> Result<std::ops::Range<usize>, FieldError> {
        let len = self.length()?.unwrap_or(0);
        let start = self.at;
        self.raw(len)?;
        Ok(start..start + len)
    }

    /// A string with its length, in the form of the version; `None` where the length says null.
    pub fn nullable_string(&mut self) -> Result<Option<&'a str>, FieldError> {
        let at = self.at;
        let length = if self.flexible { i64::from(self.uvarint()?) - 1 } else { i64::from(self.i16()?) };
        let Some(len) = self.checked(at, length)? else { return Ok(None) };
        std::str::from_utf8(self.raw(len)?).map(Some).map_err(|_| FieldError::NotUtf8 { at })
    }

    /// A string; null counts as empty.
    pub fn string(&mut self) -> Result<&'a str, FieldError> {
        Ok(self.nullable_string()?.unwrap_or(""))
    }

    /// The end of a structure: tagged fields are skipped.
    pub fn end(&mut self) -> Result<(), FieldError> {
        if self.flexible {
            for _ in 0..self.uvarint()? {
                self.uvarint()?;
                let size = self.uvarint()? as usize;
                self.raw(size)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldError, FieldReader, FieldWriter};

    #[test]
    fn both_encodings_come_back() {
        for flexible in [false, true] {
            let mut out = Vec::new();
            let mut w = FieldWriter::new(&mut out, flexible);
            w.string("topic");
            w.null_string();
            w.array(2);
            w.i32(7);
            w.i32(-8);
            w.end();
            let mut r = FieldReader::new(&out, flexible);
            assert_eq!(("topic", None), (r.string().unwrap(), r.nullable_string().unwrap()));
            assert_eq!((2, 7, -8), (r.array().unwrap(), r.i32().unwrap(), r.i32().unwrap()));
            r.end().unwrap();
            assert_eq!(out.len(), r.at);
        }
    }

    #[test]
    fn a_length_beyond_the_end_is_refused() {
        assert!(matches!(
            FieldReader::new(&[0x7f, 0xff, 0xff, 0xff], false).array(),
            Err(FieldError::BadLength { .. })
        ));
        assert!(matches!(FieldReader::new(&[0xff; 6], true).uvarint(), Err(FieldError::BadLength { .. })));
        assert!(matches!(FieldReader::new(&[0, 1], false).i32(), Err(FieldError::Short { needed: 2, .. })));
    }

    #[test]
    fn unknown_tagged_fields_are_skipped() {
        let mut r = FieldReader::new(&[2, 0, 1, 9, 5, 2, 1, 2, 42], true);
        r.end().unwrap();
        assert_eq!(42, r.i8().unwrap());
    }
}
