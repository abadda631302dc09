//! What a producer sent for one partition, before anything of it is believed: where its batches begin and end.
//!
//! Every header is read once, here; the request's version, the partition and validation ask this for what they need.

use super::{BatchHeader, Compression, InvalidBatch, RecordError};

/// The records of one partition in a Produce.
#[derive(Debug)]
pub struct SentRecords<'a> {
    /// Batches one after the other, or a set of old messages.
    pub bytes: &'a mut [u8],
    form: Form,
}

/// What the bytes are.
#[derive(Debug)]
pub enum Form {
    /// No byte at all.
    Empty,
    /// One v2 batch, as producers send it.
    Batch(BatchHeader),
    /// Several v2 batches.
    Batches(Vec<BatchHeader>),
    /// Messages of format v0 or v1, not looked at yet.
    MessageSet(i8),
}

impl Form {
    /// The headers of the v2 batches; none of old messages.
    pub fn headers(&self) -> &[BatchHeader] {
        match self {
            Self::Empty | Self::MessageSet(_) => &[],
            Self::Batch(header) => std::slice::from_ref(header),
            Self::Batches(headers) => headers,
        }
    }
}

impl<'a> SentRecords<'a> {
    /// Finds the batches in `bytes`: each is whole, and nothing stands between or behind them.
    ///
    /// # Errors
    /// `Corrupt` for a header that is none; `InvalidRecord` where the bytes end first, so that there is no batch.
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

    /// The headers of the v2 batches; none of old messages.
    pub fn headers(&self) -> &[BatchHeader] {
        self.form.headers()
    }

    /// The bytes, and what they are.
    pub fn into_parts(self) -> (&'a mut [u8], Form) {
        (self.bytes, self.form)
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        matches!(self.form, Form::Empty)
    }

    /// The format of messages from before v2, where it is one.
    pub fn old_format(&self) -> Option<i8> {
        if let Form::MessageSet(magic) = self.form { Some(magic) } else { None }
    }

    /// Whether some batch is in `codec`.
    pub fn has_codec(&self, codec: Compression) -> bool {
        self.headers().iter().any(|header| header.compression() == Ok(codec))
    }

    /// Whether some batch is part of a transaction.
    pub fn is_transactional(&self) -> bool {
        self.headers().iter().any(BatchHeader::is_transactional)
    }
}

/// The header of a whole batch. One that says less than a header is corrupt; one that says more than was sent is no batch
/// at all (Kafka's `ByteBufferLogInputStream`).
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
