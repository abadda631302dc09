//! The output of a voter for `pybroker.controller.quorum`; and the batches of the metadata log.

use pybroker_quorum::{Entry, Position, ReplicaKey, SnapshotMark, batch};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::error::MetadataLogError;

/// An entry, or a snapshot: index, term, and payload or id.
pub type Parts = (u64, u64, Vec<u8>);

/// The data that a voter has to persist, to send and to apply.
#[pyclass(frozen, module = "pybroker._native")]
pub struct QuorumReady(pub pybroker_quorum::Ready);

#[pymethods]
impl QuorumReady {
    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }

    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        messages(py, &self.0.messages)
    }

    #[getter]
    fn snapshot(&self) -> Option<(u64, u64, Vec<u8>)> {
        self.0.snapshot.clone().map(parts)
    }

    #[getter]
    fn hard_state(&self) -> Option<(u64, Option<ReplicaKey>)> {
        self.0.hard_state.map(|state| (state.term, state.vote))
    }

    #[getter]
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        entries(py, &self.0.entries)
    }

    #[getter]
    fn persisted_messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        messages(py, &self.0.persisted_messages)
    }

    #[getter]
    fn committed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        entries(py, &self.0.committed)
    }
}

fn entries<'py>(py: Python<'py>, entries: &[Entry]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for entry in entries {
        list.append((entry.index, entry.term, PyBytes::new(py, &entry.payload)))?;
    }
    Ok(list)
}

fn messages<'py>(py: Python<'py>, messages: &[(ReplicaKey, Vec<u8>)]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (replica, message) in messages {
        list.append((replica, PyBytes::new(py, message)))?;
    }
    Ok(list)
}

/// Builds the batch of metadata records.
#[pyfunction]
#[pyo3(signature = (values, timestamp_ms))]
pub fn build_record_batch<'py>(
    py: Python<'py>,
    values: Vec<Bound<'py, PyBytes>>,
    timestamp_ms: i64,
) -> Bound<'py, PyBytes> {
    let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
    PyBytes::new(py, &batch::build_records(&values, timestamp_ms))
}

/// Whether a batch changes the set of voters.
#[pyfunction]
#[pyo3(signature = (payload))]
pub fn changes_voters(payload: &[u8]) -> bool {
    batch::changes_voters(payload)
}

/// Parses the whole batches at the front of a buffer.
#[pyfunction]
#[pyo3(signature = (buffer))]
pub fn parse_metadata_batches<'py>(py: Python<'py>, buffer: &[u8]) -> PyResult<(Bound<'py, PyList>, usize)> {
    let (batches, size) = batch::parse(buffer).map_err(|error| MetadataLogError::new_err(error.to_string()))?;
    let list = PyList::empty(py);
    for batch in batches {
        let values = PyTuple::new(py, batch.values.iter().map(|value| PyBytes::new(py, value)))?;
        let batch::MetadataBatch { base_offset, last_offset, epoch, timestamp, is_control, .. } = batch;
        list.append((base_offset, last_offset, epoch, timestamp, is_control, values))?;
    }
    Ok((list, size))
}

pub fn entry(parts: Parts) -> Entry {
    Entry { index: parts.0, term: parts.1, payload: parts.2 }
}

pub fn mark(parts: Parts) -> SnapshotMark {
    SnapshotMark { last: Position { index: parts.0, term: parts.1 }, id: parts.2 }
}

pub fn parts(mark: SnapshotMark) -> Parts {
    (mark.last.index, mark.last.term, mark.id)
}
