//! The events of the data plane: one frozen class for each.

use pybroker_net::{Event, Identity, PeerCertificate, UnresolvedRequest};
use pybroker_wire::TopicRef;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::net::control_request::PyControlRequest;
use crate::net::quotas::PyQuotaQuery;
use crate::net::replication::{PyReplicaCaughtUp, PyReplicaDeletedRecords};

/// A request that Python decides on; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "InterceptedRequest", module = "pybroker._native")]
pub struct PyInterceptedRequest {
    request: Py<PyControlRequest>,
}

/// A Produce or Fetch that needs a decision first; see `_native.pyi`.
#[pyclass(frozen, name = "UnresolvedRequest", module = "pybroker._native")]
pub struct PyUnresolvedRequest {
    inner: UnresolvedRequest,
}

/// Transactional id, producer id, producer epoch, version of the Produce, and the partitions of the query.
type Requested<'a> = (&'a str, i64, i16, i16, Vec<(&'a str, i32)>);

#[pymethods]
impl PyUnresolvedRequest {
    #[getter]
    fn connection(&self) -> u64 {
        self.inner.connection
    }

    #[getter]
    fn request(&self) -> u64 {
        self.inner.request
    }

    #[getter]
    fn api_key(&self) -> i16 {
        self.inner.api_key.0
    }

    #[getter]
    fn principal(&self) -> Option<(&str, &str)> {
        self.inner.identity.as_deref().map(|Identity { kind, name }| (&**kind, &**name))
    }

    #[getter]
    fn client_host(&self) -> String {
        self.inner.peer.ip().to_string()
    }

    #[getter]
    fn operation(&self) -> Option<i8> {
        self.inner.check.as_ref().map(|(operation, _)| *operation)
    }

    #[getter]
    fn checked<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        let named = |topic: &TopicRef| match topic {
            TopicRef::Name(name) => PyString::new(py, name).into_any(),
            TopicRef::Id(id) => PyBytes::new(py, id).into_any(),
        };
        self.inner.check.as_ref().map_or_else(Vec::new, |(_, topics)| topics.iter().map(named).collect())
    }

    #[getter]
    fn transactional_id(&self) -> Option<&str> {
        self.inner.transactional_id.as_deref()
    }

    #[getter]
    fn transaction(&self) -> Option<Requested<'_>> {
        let requested = self.inner.transaction.as_ref()?;
        let partitions = requested.partitions.iter().map(|(topic, index)| (&**topic, *index)).collect();
        Some((
            &requested.transactional_id,
            requested.producer_id,
            requested.producer_epoch,
            requested.api_version,
            partitions,
        ))
    }

    #[getter]
    fn topics(&self) -> Vec<String> {
        self.inner.topics.clone()
    }

    #[getter]
    fn topic_ids<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyBytes>> {
        self.inner.topic_ids.iter().map(|id| PyBytes::new(py, id)).collect()
    }
}

/// A coordinator's append is committed and synced, or has failed; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "AppendCompleted", module = "pybroker._native")]
pub struct PyAppendCompleted {
    ticket: u64,
}

/// A connection has closed; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "ConnectionClosed", module = "pybroker._native")]
pub struct PyConnectionClosed {
    connection: u64,
}

/// A client's certificate; see `_native.pyi`.
#[pyclass(frozen, name = "PeerCertificate", module = "pybroker._native")]
pub struct PyPeerCertificate {
    inner: PeerCertificate,
}

#[pymethods]
impl PyPeerCertificate {
    #[getter]
    fn connection(&self) -> u64 {
        self.inner.connection
    }

    #[getter]
    fn listener(&self) -> &str {
        &self.inner.listener
    }

    #[getter]
    fn peer(&self) -> String {
        self.inner.peer.to_string()
    }

    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.certificate)
    }
}

/// A log directory failed; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "LogDirectoryFailed", module = "pybroker._native")]
pub struct PyLogDirectoryFailed {
    directory: String,
    error: String,
}

/// File descriptors or memory are exhausted; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "Exhausted", module = "pybroker._native")]
pub struct PyExhausted {
    error: String,
}

/// A log began a new segment; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "SegmentRolled", module = "pybroker._native")]
pub struct PySegmentRolled {
    topic: String,
    index: i32,
}

/// A line for the broker's log; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "LogLine", module = "pybroker._native")]
pub struct PyLogLine {
    level: &'static str,
    text: String,
}

/// The Python object of an event.
pub fn into_python(py: Python<'_>, event: Event) -> PyResult<Py<PyAny>> {
    match event {
        Event::Control(inner) => PyControlRequest::new(inner).into_py_any(py),
        Event::Intercepted(inner) => {
            let request = Py::new(py, PyControlRequest::new(inner))?;
            PyInterceptedRequest { request }.into_py_any(py)
        }
        Event::Unresolved(inner) => PyUnresolvedRequest { inner }.into_py_any(py),
        Event::PeerCertificate(inner) => PyPeerCertificate { inner }.into_py_any(py),
        Event::QuotaQuery(inner) => PyQuotaQuery { inner }.into_py_any(py),
        Event::ConnectionClosed { connection } => PyConnectionClosed { connection }.into_py_any(py),
        Event::LogDirectoryFailed { directory, error } => PyLogDirectoryFailed { directory, error }.into_py_any(py),
        Event::Exhausted { error } => PyExhausted { error }.into_py_any(py),
        Event::AppendCompleted { ticket } => PyAppendCompleted { ticket }.into_py_any(py),
        Event::ReplicaCaughtUp(inner) => PyReplicaCaughtUp { inner }.into_py_any(py),
        Event::ReplicaDeletedRecords { topic_id, index } => {
            PyReplicaDeletedRecords { topic_id, index: index.0 }.into_py_any(py)
        }
        Event::SegmentRolled { topic, index } => PySegmentRolled { topic: topic.to_string(), index }.into_py_any(py),
        Event::Line { level, text } => PyLogLine { level: level.name(), text }.into_py_any(py),
    }
}

/// Registers the classes of this file.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyAppendCompleted>()?;
    m.add_class::<PyConnectionClosed>()?;
    m.add_class::<PyExhausted>()?;
    m.add_class::<PyLogDirectoryFailed>()?;
    m.add_class::<PyLogLine>()?;
    m.add_class::<PySegmentRolled>()?;
    m.add_class::<PyInterceptedRequest>()?;
    m.add_class::<PyUnresolvedRequest>()
}
