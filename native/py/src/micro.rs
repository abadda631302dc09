//! The kernels of the record format one by one, for `bench/micro`, which compares them with other implementations.
//!
//! Owns the conversion alone. The broker and the client do not use this file: a call for each batch would cost what it
//! saves.

use pybroker_record::{
    BatchBuilder, BatchHeader, Compression, HEADER_LEN, OlderFormat, TimestampType, ValidateRules, varint,
};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The validation rules: everything allowed that is not an error in itself.
const RULES: ValidateRules = ValidateRules {
    max_message_bytes: i32::MAX as usize,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: i64::MAX,
    now_ms: 0,
    require_keys: false,
    max_decompressed_bytes: 1 << 28,
};

fn invalid(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (values))]
pub fn zigzag<'py>(py: Python<'py>, values: PyBuffer<i64>) -> PyResult<Bound<'py, PyBytes>> {
    let coded: Vec<u8> = values.to_vec(py)?.into_iter().flat_map(|value| varint::zigzag(value).to_ne_bytes()).collect();
    Ok(PyBytes::new(py, &coded))
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (values))]
pub fn encode_varints<'py>(py: Python<'py>, values: PyBuffer<i64>) -> PyResult<Bound<'py, PyBytes>> {
    let values = values.to_vec(py)?;
    let mut out = Vec::with_capacity(values.len() * 2);
    values.into_iter().for_each(|value| varint::put_varlong(&mut out, value));
    Ok(PyBytes::new(py, &out))
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data))]
pub fn decode_varints<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::with_capacity(data.len() * 8);
    let mut at = 0;
    while at < data.len() {
        let (value, end) = varint::varlong(data, at).map_err(invalid)?;
        out.extend_from_slice(&value.to_ne_bytes());
        at = end;
    }
    Ok(PyBytes::new(py, &out))
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (values, timestamp_ms, codec = "none"))]
pub fn build_batch<'py>(
    py: Python<'py>,
    values: Vec<Bound<'py, PyBytes>>,
    timestamp_ms: i64,
    codec: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let codec: Compression = codec.parse().map_err(invalid)?;
    let size = values.iter().map(|value| value.as_bytes().len() + 20).sum::<usize>() + HEADER_LEN;
    let mut builder = BatchBuilder::new(codec, None, size);
    for value in &values {
        builder
            .try_append(timestamp_ms, None, Some(value.as_bytes()), &[])
            .ok_or_else(|| invalid("too much for a batch"))?;
    }
    let mut out = Vec::new();
    builder.finish(-1, -1, -1, &mut out).map_err(invalid)?;
    Ok(PyBytes::new(py, &out))
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (batch))]
pub fn validate_batch(batch: &[u8]) -> PyResult<i32> {
    let valid = pybroker_record::validate_batch(batch, &RULES, &mut Vec::new());
    valid.map(|header| header.record_count).map_err(invalid)
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (messages))]
pub fn up_convert<'py>(py: Python<'py>, messages: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Vec::new();
    pybroker_record::up_convert(messages, &RULES, None, &mut Vec::new(), &mut out).map_err(invalid)?;
    Ok(PyBytes::new(py, &out))
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (batch, magic))]
pub fn down_convert<'py>(py: Python<'py>, batch: &[u8], magic: i8) -> PyResult<Bound<'py, PyBytes>> {
    let header = BatchHeader::parse_stored(batch).map_err(invalid)?;
    let mut out = Vec::new();
    let (format, max) = (OlderFormat { magic, from: 0 }, RULES.max_decompressed_bytes);
    pybroker_record::down_convert(&header, batch, format, &mut Vec::new(), max, &mut out).map_err(invalid)?;
    Ok(PyBytes::new(py, &out))
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (entries, relative_offset))]
pub fn search_index(entries: &[u8], relative_offset: u32) -> u32 {
    let (entries, _) = entries.as_chunks::<8>();
    let word =
        |entry: &[u8; 8], at: usize| u32::from_be_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]);
    let after = entries.partition_point(|entry| word(entry, 0) <= relative_offset);
    after.checked_sub(1).map_or(0, |index| word(&entries[index], 4))
}

/// Registers the functions of this file.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(build_batch, m)?)?;
    m.add_function(wrap_pyfunction!(decode_varints, m)?)?;
    m.add_function(wrap_pyfunction!(down_convert, m)?)?;
    m.add_function(wrap_pyfunction!(encode_varints, m)?)?;
    m.add_function(wrap_pyfunction!(search_index, m)?)?;
    m.add_function(wrap_pyfunction!(up_convert, m)?)?;
    m.add_function(wrap_pyfunction!(validate_batch, m)?)?;
    m.add_function(wrap_pyfunction!(zigzag, m)?)?;
    Ok(())
}
