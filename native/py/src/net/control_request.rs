//! A request of the control plane in Python: its header and client, and the message, decoded on demand.

use pybroker_net::{ControlRequest, Identity, Software};
use pybroker_replica::Waiter;
use pybroker_wire::primitives::Reader;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::codec::Schema;
use crate::error::MalformedMessage;

/// A request that Python responds to; see `_native.pyi`.
#[pyclass(frozen, name = "ControlRequest", module = "pybroker._native")]
pub struct PyControlRequest {
    inner: ControlRequest,
}

impl PyControlRequest {
    pub fn new(inner: ControlRequest) -> Self {
        Self { inner }
    }

    /// The connection and the request, for the response.
    pub fn asker(&self) -> Waiter {
        Waiter { connection: self.inner.connection, request: self.inner.request }
    }
}

#[pymethods]
impl PyControlRequest {
    #[getter]
    fn connection(&self) -> u64 {
        self.inner.connection
    }

    #[getter]
    fn request(&self) -> u64 {
        self.inner.request
    }

    #[getter]
    fn api(&self) -> i32 {
        i32::from(self.inner.api_key.0) << 16 | i32::from(self.inner.api_version as u16)
    }

    #[getter]
    fn api_key(&self) -> i16 {
        self.inner.api_key.0
    }

    #[getter]
    fn api_version(&self) -> i16 {
        self.inner.api_version
    }

    #[getter]
    fn size(&self) -> usize {
        self.inner.body.len()
    }

    #[getter]
    fn correlation_id(&self) -> i32 {
        self.inner.correlation_id
    }

    #[getter]
    fn client_id(&self) -> Option<&str> {
        self.inner.client_id.as_deref()
    }

    #[getter]
    fn listener(&self) -> &str {
        &self.inner.listener
    }

    #[getter]
    fn principal(&self) -> Option<(&str, &str)> {
        self.inner.identity.as_deref().map(|Identity { kind, name }| (&**kind, &**name))
    }

    #[getter]
    fn local_host(&self) -> String {
        self.inner.local.ip().to_string()
    }

    #[getter]
    fn local_port(&self) -> u16 {
        self.inner.local.port()
    }

    #[getter]
    fn peer_host(&self) -> String {
        self.inner.peer.ip().to_string()
    }

    #[getter]
    fn peer_port(&self) -> u16 {
        self.inner.peer.port()
    }

    #[getter]
    fn software(&self) -> Option<(&str, &str)> {
        self.inner.software.as_deref().map(|Software { name, version }| (&**name, &**version))
    }

    /// Records that the request waits for other clients.
    fn wait(&self) {
        self.inner.steps.wait();
    }

    /// The encoded message, after the tagged fields of a flexible header.
    #[getter]
    fn message<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.body)
    }

    /// Decodes the message; unknown tagged fields of a flexible header are skipped.
    #[pyo3(signature = (schema, flexible, max_elements))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        schema: &Schema,
        flexible: bool,
        max_elements: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.inner.steps.begin();
        let body = &self.inner.body;
        let mut header = Reader::new(body, 0, flexible);
        header.header_tags().map_err(|error| MalformedMessage::new_err(format!("the header: {error}")))?;
        Ok(schema.read(py, body, self.inner.api_version, header.position(), max_elements)?.0)
    }
}
