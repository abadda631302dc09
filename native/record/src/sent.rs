//! The unvalidated records of a producer for one partition, and the positions of their batches.
//!
//! Every header is parsed once, here. The checks of version, partition and content use the parsed headers.

use super::{BatchHeader, Compression, InvalidBatch, RecordError};

/// The records of one partition in a Produce.
#[derive(Debug)]
pub struct SentRecords<'a> {
    /// Concatenated batches, or a set of old messages.
    pub bytes: &'a mut [u8],
    form: Form,
}

/// The form of the bytes.
#[derive(Debug)]
pub enum Form {
    /// No bytes.
    Empty,
    /// One v2 batch: the usual case.
    Batch(BatchHeader),
    /// Several v2 batches.
    Batches(Vec<BatchHeader>),
    /// Messages of format v0 or v1, not parsed yet.
    MessageSet(i8),
}

impl Form {
    /// Returns the headers of the v2 batches; empty for old messages.
    pub fn headers(&self) -> &[BatchHeader] {
        match self {
            Self::Empty | Self::MessageSet(_) => &[],
            Self::Batch(header) => std::slice::from_ref(header),
            Self::Batches(headers) => headers,
        }
    }
}

impl<'a> SentRecords<'a> {
    /// Parses the batches in `bytes`. Each must be complete, with no bytes between or after them.
    ///
    /// # Errors
    /// `Corrupt` for an invalid header; `InvalidRecord` if a batch is longer than the bytes.
    pub fn find(bytes: &'a mut [u8]) -> Result<Self, InvalidBatch> {
        let form = match bytes.get(16) {
            None if bytes.is_empty() => Form::Empty,
            Some(magic @ (0 | 1)) => Form::MessageSet(*magic as i8),
            _ => {
                let first = next_header(bytes)?;
                let mut at = first.size();
                if at == bytes.len() {
                    return Ok(Self { bytes, form: Form::Batch(first) });
                }
                let mut headers = vec![first];
                while at < bytes.len() {
                    let header = next_header(&bytes[at..])?;
                    at += header.size();
                    headers.push(header);
                }
                Form::Batches(headers)
            }
        };
        Ok(Self { bytes, form })
    }

    /// Returns the headers of the v2 batches; empty for old messages.
    pub fn headers(&self) -> &[BatchHeader] {
        self.form.headers()
    }

    /// Returns the bytes and their form.
    pub fn into_parts(self) -> (&'a mut [u8], Form) {
        (self.bytes, self.form)
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        matches!(self.form, Form::Empty)
    }

    /// Returns the message format if it is older than v2.
    pub fn old_format(&self) -> Option<i8> {
        if let Form::MessageSet(magic) = self.form { Some(magic) } else { None }
    }

    /// Returns whether a batch uses `codec`.
    pub fn has_codec(&self, codec: Compression) -> bool {
        self.headers().iter().any(|header| header.compression() == Ok(codec))
    }

    /// Returns whether a batch is transactional.
    pub fn is_transactional(&self) -> bool {
        self.headers().iter().any(BatchHeader::is_transactional)
    }
}

/// Parses the header of a complete batch. A size below that of a header is corrupt. A size beyond the sent bytes is
/// an invalid record (Kafka's `ByteBufferLogInputStream`).
fn next_header(bytes: &[u8]) -> Result<BatchHeader, InvalidBatch> {
    let none = |reason| InvalidBatch::InvalidRecord { records: Vec::new(), reason };
    let header = BatchHeader::parse(bytes).map_err(|error| match error {
        RecordError::Magic(magic @ (0 | 1)) => InvalidBatch::UnsupportedFormat(magic),
        RecordError::Truncated { .. } => none(error.to_string()),
        other => InvalidBatch::Corrupt(other.to_string()),
    })?;
    if header.size() > bytes.len() {
        return Err(none(format!("a batch of {} bytes in {} bytes", header.size(), bytes.len())));
    }
    Ok(header)
}
