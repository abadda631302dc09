//! `RecordTable`: the records of a coordinator's topic, coded in bulk.
//!
//! Owns the frame of such a record (two bytes of type before the key, two bytes of version before the value) and the way
//! between records and batches. Which types there are, and what they hold, is Python's to declare.

use pybroker_record::{
    BatchBuilder, BatchHeader, Batches, Compression, EndMarker, RecordError, Records, records_section,
    set_transactional,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple, PyType};

use crate::codec::Schema;
use crate::error::MalformedMessage;

/// Record types by number; see `_native.pyi`.
#[pyclass(frozen, module = "pybroker._native")]
pub struct RecordTable {
    types: Vec<RecordType>,
}

struct RecordType {
    number: i16,
    class: Py<PyType>,
    key: Py<Schema>,
    value: Py<Schema>,
    /// In which values are written, unless a record says otherwise.
    version: i16,
}

/// A key, and a value unless the record is a tombstone.
type Pair<'py> = (Bound<'py, PyAny>, Option<Bound<'py, PyAny>>);

/// Of a transaction, a row of its records or its end: begin and end in the list of records, producer id and epoch, and
/// whether it was committed; `None` for records.
type Transacted = (usize, usize, i64, i16, Option<bool>);

/// Records, the offset after them, the bytes that they take, how many were skipped, and what of it is transactions'.
type Decoded<'py> = (Bound<'py, PyList>, i64, usize, usize, Vec<Transacted>);

type TypeRow = (i16, Py<PyType>, Py<Schema>, Py<Schema>, i16);

#[pymethods]
impl RecordTable {
    #[new]
    #[pyo3(signature = (types))]
    fn new(types: Vec<TypeRow>) -> Self {
        let types = types.into_iter().map(|(number, class, key, value, version)| RecordType {
            number,
            class,
            key,
            value,
            version,
        });
        Self { types: types.collect() }
    }

    /// Makes the batches of some records, all of one timestamp and, where a producer is given, of its transaction.
    #[pyo3(signature = (records, timestamp_ms, *, codec, max_batch_bytes, producer=None))]
    fn encode<'py>(
        &self,
        records: &Bound<'py, PyList>,
        timestamp_ms: i64,
        codec: i8,
        max_batch_bytes: usize,
        producer: Option<(i64, i16)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let compression = Compression::from_code(codec).map_err(unbuildable)?;
        let mut builder = BatchBuilder::new(compression, None, max_batch_bytes);
        let (mut out, mut key, mut value) = (Vec::new(), Vec::with_capacity(128), Vec::with_capacity(256));
        for record in records.iter() {
            let record = record.cast_into::<PyTuple>()?;
            let tombstone = self.write(&record, &mut key, &mut value)?;
            let value = (!tombstone).then_some(value.as_slice());
            if builder.try_append(timestamp_ms, Some(&key), value, &[]).is_none() {
                finish(&mut builder, producer, &mut out)?;
                builder
                    .try_append(timestamp_ms, Some(&key), value, &[])
                    .ok_or_else(|| PyValueError::new_err("a record that no batch can hold"))?;
            }
        }
        if !builder.is_empty() {
            finish(&mut builder, producer, &mut out)?;
        }
        Ok(PyBytes::new(records.py(), &out))
    }

    /// Reads the whole batches at the front of a buffer.
    #[pyo3(signature = (batches, *, max_bytes))]
    fn decode<'py>(&self, py: Python<'py>, batches: &[u8], max_bytes: usize) -> PyResult<Decoded<'py>> {
        let list = PyList::empty(py);
        let (mut next_offset, mut taken, mut skipped) = (-1, 0, 0);
        let mut transacted = Vec::new();
        let mut scratch = Vec::new();
        for batch in Batches::new(batches) {
            let (header, bytes) = match batch {
                Ok(whole) => whole,
                Err(RecordError::Truncated { .. }) if taken > 0 => break,
                Err(error) => return Err(malformed(error)),
            };
            (next_offset, taken) = (header.next_offset(), taken + bytes.len());
            let begin = list.len();
            if header.is_control() {
                if let Some(marker) = EndMarker::parse(&header, bytes).map_err(malformed)? {
                    transacted.push(row(&header, begin, begin, Some(marker.commit)));
                }
                continue;
            }
            let section = records_section(&header, bytes, &mut scratch, max_bytes).map_err(malformed)?;
            for record in Records::new(section, header.record_count) {
                let record = record.map_err(malformed)?;
                match self.read(py, record.key, record.value)? {
                    Some(pair) => list.append(pair)?,
                    None => skipped += 1,
                }
            }
            if header.is_transactional() {
                transacted.push(row(&header, begin, list.len(), None));
            }
        }
        Ok((list, next_offset, taken, skipped, transacted))
    }
}

impl RecordTable {
    /// Writes a (key, value or `None`, version) record; whether it is a tombstone.
    fn write(&self, record: &Bound<'_, PyTuple>, key: &mut Vec<u8>, value: &mut Vec<u8>) -> PyResult<bool> {
        let py = record.py();
        let message = record.get_item(0)?;
        let class = message.get_type();
        let kind = self.types.iter().find(|kind| class.is(kind.class.bind(py)));
        let kind = kind.ok_or_else(|| PyTypeError::new_err(format!("{} is no key in this table", class)))?;
        key.clear();
        key.extend_from_slice(&kind.number.to_be_bytes());
        kind.key.get().write(&message, 0, key)?;
        value.clear();
        let message = record.get_item(1)?;
        if message.is_none() {
            return Ok(true);
        }
        let version = match record.get_item(2)?.extract()? {
            -1 => kind.version,
            version => version,
        };
        value.extend_from_slice(&version.to_be_bytes());
        kind.value.get().write(&message, version, value)?;
        Ok(false)
    }

    /// Reads a record as (key, value or `None`); `None` for a type that is not in the table.
    fn read<'py>(&self, py: Python<'py>, key: Option<&[u8]>, value: Option<&[u8]>) -> PyResult<Option<Pair<'py>>> {
        let key = key.ok_or_else(|| MalformedMessage::new_err("a record without a key"))?;
        let number = leading_i16(key)?;
        let Some(kind) = self.types.iter().find(|kind| kind.number == number) else { return Ok(None) };
        let (key, _) = kind.key.get().read(py, key, 0, 2, usize::MAX)?;
        let value = match value {
            None => None,
            Some(value) => Some(kind.value.get().read(py, value, leading_i16(value)?, 2, usize::MAX)?.0),
        };
        Ok(Some((key, value)))
    }
}

/// Finishes a batch: a coordinator's own, or one of a producer's transaction, which has no sequence of its own (as Kafka's).
fn finish(builder: &mut BatchBuilder, producer: Option<(i64, i16)>, out: &mut Vec<u8>) -> PyResult<()> {
    let begin = out.len();
    let (id, epoch, sequence) = producer.map_or((-1, -1, -1), |(id, epoch)| (id, epoch, 0));
    builder.finish(id, epoch, sequence, out).map_err(unbuildable)?;
    if producer.is_some() {
        set_transactional(&mut out[begin..]);
    }
    Ok(())
}

fn row(header: &BatchHeader, begin: usize, end: usize, committed: Option<bool>) -> Transacted {
    (begin, end, header.producer_id, header.producer_epoch, committed)
}

fn leading_i16(bytes: &[u8]) -> PyResult<i16> {
    match bytes.first_chunk() {
        Some(number) => Ok(i16::from_be_bytes(*number)),
        None => Err(MalformedMessage::new_err("a key or value of less than two bytes")),
    }
}

fn malformed(error: RecordError) -> PyErr {
    MalformedMessage::new_err(error.to_string())
}

fn unbuildable(error: RecordError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
