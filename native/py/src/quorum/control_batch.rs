//! Control batches of the metadata log and of its snapshots, for `pybroker.controller.quorum`.
//!
//! Owns the conversion alone.

use pybroker_quorum::control;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::error::MetadataLogError;

/// Builds one control batch from records.
#[pyfunction]
#[pyo3(signature = (records, timestamp_ms))]
pub fn build_control_batch<'py>(
    py: Python<'py>,
    records: Vec<(i16, Bound<'py, PyBytes>)>,
    timestamp_ms: i64,
) -> Bound<'py, PyBytes> {
    let records: Vec<(i16, &[u8])> = records.iter().map(|(kind, value)| (*kind, value.as_bytes())).collect();
    PyBytes::new(py, &control::build_control(&records, timestamp_ms))
}

/// Parses the control batch at the front of a buffer.
#[pyfunction]
#[pyo3(signature = (buffer))]
pub fn parse_control_batch<'py>(py: Python<'py>, buffer: &[u8]) -> PyResult<Bound<'py, PyList>> {
    let records = control::parse_control(buffer).map_err(|error| MetadataLogError::new_err(error.to_string()))?;
    PyList::new(py, records.into_iter().map(|(kind, value)| (kind, PyBytes::new(py, value))))
}
