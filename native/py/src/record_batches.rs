//! Batches of a coordinator's records, one after the other in a buffer: made whole, and read whole.

use pybroker_record::{BatchBuilder, BatchHeader, Batches, RecordError, set_transactional};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::MalformedMessage;

/// Ends a batch, which is of a transaction if it has a producer.
pub fn finish(builder: &mut BatchBuilder, producer: Option<(i64, i16)>, out: &mut Vec<u8>) -> PyResult<()> {
    let start = out.len();
    let (id, epoch) = producer.unwrap_or((-1, -1));
    builder.finish(id, epoch, -1, out).map_err(unbuildable)?;
    if producer.is_some() {
        set_transactional(&mut out[start..]);
    }
    Ok(())
}

/// Calls `each` with the whole batches at the front of a buffer; the offset behind them, and the bytes that they take.
pub fn each_batch(batches: &[u8], mut each: impl FnMut(&BatchHeader, &[u8]) -> PyResult<()>) -> PyResult<(i64, usize)> {
    let (mut next_offset, mut taken) = (-1, 0);
    for batch in Batches::new(batches) {
        let (header, bytes) = match batch {
            Ok(whole) => whole,
            Err(RecordError::Truncated { .. }) if taken > 0 => break,
            Err(error) => return Err(malformed(error)),
        };
        (next_offset, taken) = (header.next_offset(), taken + bytes.len());
        each(&header, bytes)?;
    }
    Ok((next_offset, taken))
}

/// The two bytes at the front of a key or a value.
pub fn leading_i16(bytes: &[u8]) -> PyResult<i16> {
    match bytes.first_chunk() {
        Some(number) => Ok(i16::from_be_bytes(*number)),
        None => Err(MalformedMessage::new_err("a key or value of less than two bytes")),
    }
}

/// A batch that cannot be read.
pub fn malformed(error: RecordError) -> PyErr {
    MalformedMessage::new_err(error.to_string())
}

/// A batch that cannot be made.
pub fn unbuildable(error: RecordError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
