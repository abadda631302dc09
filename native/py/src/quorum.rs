//! The Raft voter and the batches of the metadata log, for `pybroker.controller.quorum`.
//!
//! Owns the conversion alone: entries are `(index, term, payload)`, messages `(voter, bytes)`.

use parking_lot::Mutex;
use pybroker_quorum::{Entry, HardState, QuorumSettings, Restored, TermRun, batch};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::error::{MetadataLogError, quorum_error};

/// A voter of the metadata quorum; no method does I/O.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Quorum(Mutex<pybroker_quorum::Quorum>);

#[pymethods]
impl Quorum {
    #[new]
    #[pyo3(signature = (*, node_id, voters, election_ticks, heartbeat_ticks, hard_state, terms, last, replayed, tail))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        node_id: i32,
        voters: Vec<i32>,
        election_ticks: usize,
        heartbeat_ticks: usize,
        hard_state: Option<(u64, Option<i32>)>,
        terms: Vec<(u64, u64)>,
        last: u64,
        replayed: u64,
        tail: Vec<(u64, u64, Vec<u8>)>,
    ) -> PyResult<Self> {
        let settings = QuorumSettings { node_id, voters, election_ticks, heartbeat_ticks };
        let restored = Restored {
            hard_state: hard_state.map(|(term, vote)| HardState { term, vote }),
            runs: terms.into_iter().map(|(first, term)| TermRun { first, term }).collect(),
            last,
            replayed,
            tail: tail.into_iter().map(|(index, term, payload)| Entry { index, term, payload }).collect(),
        };
        pybroker_quorum::Quorum::new(&settings, restored).map(|quorum| Self(Mutex::new(quorum))).map_err(quorum_error)
    }

    #[getter]
    fn is_leader(&self) -> bool {
        self.0.lock().is_leader()
    }

    #[getter]
    fn leader(&self) -> Option<i32> {
        self.0.lock().leader()
    }

    #[getter]
    fn term(&self) -> u64 {
        self.0.lock().term()
    }

    #[getter]
    fn last_index(&self) -> u64 {
        self.0.lock().last_index()
    }

    #[pyo3(signature = ())]
    fn tick(&self) -> bool {
        self.0.lock().tick()
    }

    #[pyo3(signature = ())]
    fn campaign(&self) -> PyResult<()> {
        self.0.lock().campaign().map_err(quorum_error)
    }

    #[pyo3(signature = (message))]
    fn step(&self, message: &[u8]) -> PyResult<()> {
        self.0.lock().step(message).map_err(quorum_error)
    }

    #[pyo3(signature = (payload))]
    fn propose(&self, payload: &[u8]) -> PyResult<()> {
        self.0.lock().propose(payload.to_vec()).map_err(quorum_error)
    }

    #[pyo3(signature = ())]
    fn ready(&self) -> PyResult<Option<QuorumReady>> {
        Ok(self.0.lock().ready().map_err(quorum_error)?.map(QuorumReady))
    }

    #[pyo3(signature = ())]
    fn advance(&self) -> PyResult<QuorumReady> {
        let advanced = self.0.lock().advance().map_err(quorum_error)?;
        Ok(QuorumReady(pybroker_quorum::Ready {
            committed: advanced.committed,
            messages: advanced.messages,
            ..pybroker_quorum::Ready::default()
        }))
    }
}

/// What a voter has to persist, to send and to apply.
#[pyclass(frozen, module = "pybroker._native")]
pub struct QuorumReady(pybroker_quorum::Ready);

#[pymethods]
impl QuorumReady {
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        messages(py, &self.0.messages)
    }

    #[getter]
    fn hard_state(&self) -> Option<(u64, Option<i32>)> {
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

fn messages<'py>(py: Python<'py>, messages: &[(i32, Vec<u8>)]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (voter, message) in messages {
        list.append((voter, PyBytes::new(py, message)))?;
    }
    Ok(list)
}

/// Makes the batch of some metadata records.
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

/// Makes the control batch by which a leader begins its term.
#[pyfunction]
#[pyo3(signature = (leader, voters, timestamp_ms))]
pub fn build_leader_change_batch(
    py: Python<'_>,
    leader: i32,
    voters: Vec<i32>,
    timestamp_ms: i64,
) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &batch::build_leader_change(leader, &voters, timestamp_ms))
}

/// Reads the whole batches at the front of a buffer.
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
