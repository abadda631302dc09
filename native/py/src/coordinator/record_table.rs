//! `RecordTable`: the records of a coordinator's topic, coded in bulk.
//!
//! Owns the framing of such a record (two bytes of type before the key, two bytes of version before the value) and the
//! conversion between records and batches. Python declares the types and their fields.

use pybroker_record::{BatchBuilder, Compression, RecordError, set_transactional};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple, PyType};

use crate::codec::Schema;
use crate::coordinator::record_reading::{Decoded, Reading};
use crate::coordinator::record_type::RecordType;

/// Record types by number; see `_native.pyi`.
#[pyclass(frozen, module = "pybroker._native")]
pub struct RecordTable {
    types: Vec<RecordType>,
    /// Raises `MalformedMessage` for a value that no record may have; not called for tombstones.
    check: Option<Py<PyAny>>,
}

type TypeRow = (i16, Py<PyType>, Py<Schema>, Py<Schema>, i16);

#[pymethods]
impl RecordTable {
    #[new]
    #[pyo3(signature = (types, check=None))]
    fn new(types: Vec<TypeRow>, check: Option<Py<PyAny>>) -> Self {
        let types = types.into_iter().map(|(number, class, key, value, version)| RecordType {
            number,
            class,
            key,
            value,
            version,
        });
        Self { types: types.collect(), check }
    }

    /// Encodes records in batches, all with one timestamp and, if a producer is given, in its transaction.
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
        Reading::new(py, &self.types, self.check.as_ref()).read(batches, max_bytes)
    }
}

impl RecordTable {
    /// Encodes a (key, value or `None`, version) record; returns whether it is a tombstone.
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
}

/// Completes a batch: the coordinator's own, or one of a producer's transaction, without sequence numbers (as in Kafka).
fn finish(builder: &mut BatchBuilder, producer: Option<(i64, i16)>, out: &mut Vec<u8>) -> PyResult<()> {
    let begin = out.len();
    let (id, epoch, sequence) = producer.map_or((-1, -1, -1), |(id, epoch)| (id, epoch, 0));
    builder.finish(id, epoch, sequence, out).map_err(unbuildable)?;
    if producer.is_some() {
        set_transactional(&mut out[begin..]);
    }
    Ok(())
}

fn unbuildable(error: RecordError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
