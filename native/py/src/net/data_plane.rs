//! `DataPlane`: sockets, the hot path and waiting requests, as the control plane uses them.

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use pybroker_net::{Authorization, DataPlane, Decision, ListenerTls};
use pybroker_replica::Waiter;
use pybroker_wire::TopicRef;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::listen_error;
use crate::net::connection_limits::Limits;
use crate::net::control_request::PyControlRequest;
use crate::net::counters::PyDataPlaneCounters;
use crate::net::data_plane_settings::PyDataPlaneSettings;
use crate::net::events::into_python;
use crate::net::handle::PyDataPlane;
use crate::net::listener_tls::PyServerTls;
use crate::net::listening::{Listening, identity};
use crate::net::replication::{self, PyReplicationSettings, Source};
use crate::net::topic_table::PyTopicTable;

/// A topic, by name or by id.
#[derive(FromPyObject)]
enum NamedTopic {
    Name(String),
    Id([u8; 16]),
}

impl NamedTopic {
    fn into_ref(self) -> TopicRef {
        match self {
            Self::Name(name) => TopicRef::Name(name.into()),
            Self::Id(id) => TopicRef::Id(id),
        }
    }
}

#[pymethods]
impl PyDataPlane {
    #[new]
    #[pyo3(signature = (settings))]
    fn new(settings: &PyDataPlaneSettings) -> PyResult<Self> {
        let inner = DataPlane::start(settings.settings.clone());
        Ok(Self { inner: Arc::new(inner.map_err(|error| PyOSError::new_err(error.to_string()))?) })
    }

    #[getter]
    fn event_fd(&self) -> i32 {
        self.inner.events().fd().as_raw_fd()
    }

    #[getter]
    fn connections(&self) -> usize {
        self.inner.connections()
    }

    #[getter]
    fn flush_counts(&self) -> (u64, u64) {
        let counts = self.inner.flush_counts();
        (counts.syncs, counts.requests)
    }

    fn counters(&self, py: Python<'_>) -> PyResult<PyDataPlaneCounters> {
        PyDataPlaneCounters::new(py, self.inner.counters())
    }

    #[pyo3(signature = (limit))]
    fn drain(&self, py: Python<'_>, limit: usize) -> PyResult<Vec<Py<PyAny>>> {
        self.inner.events().drain(limit).into_iter().map(|event| into_python(py, event)).collect()
    }

    #[pyo3(signature = (listener))]
    fn listen(&self, listener: Listening) -> PyResult<u16> {
        let listener = listener.into();
        self.inner.listen(&listener).map_err(listen_error)
    }

    #[pyo3(signature = (connection, request, payload, *, last=false))]
    fn respond(&self, py: Python<'_>, connection: u64, request: u64, payload: &[u8], last: bool) {
        let (to, payload) = (Waiter { connection, request }, payload.to_vec());
        py.detach(|| if last { self.inner.respond_last(to, payload) } else { self.inner.respond(to, payload) });
    }

    #[pyo3(signature = (responses))]
    fn respond_many(&self, responses: Vec<(Bound<'_, PyControlRequest>, Bound<'_, PyBytes>)>) {
        let responses = responses.into_iter();
        self.inner
            .respond_many(responses.map(|(request, payload)| (request.get().asker(), payload.as_bytes().to_vec())));
    }

    #[pyo3(signature = (connection, request))]
    fn hold(&self, connection: u64, request: u64) {
        self.inner.hold(Waiter { connection, request });
    }

    #[pyo3(signature = (connection, request, allowed=vec![], version=0, transactional_id=false))]
    fn retry(&self, connection: u64, request: u64, allowed: Vec<NamedTopic>, version: u64, transactional_id: bool) {
        let allowed = allowed.into_iter().map(NamedTopic::into_ref).collect();
        self.inner.retry(Waiter { connection, request }, Authorization { allowed, version, transactional_id });
    }

    #[pyo3(signature = (*, decisions, version))]
    fn set_rights(&self, decisions: usize, version: u64) {
        self.inner.set_rights(decisions, version);
    }

    #[pyo3(signature = (connection))]
    fn close_connection(&self, connection: u64) {
        self.inner.close_connection(connection);
    }

    #[pyo3(signature = (connection, principal, lifetime_ms))]
    fn authenticate(&self, connection: u64, principal: (String, String), lifetime_ms: Option<u64>) {
        self.inner.authenticate(connection, identity(principal), lifetime_ms);
    }

    #[pyo3(signature = (connection, principal))]
    fn name_peer(&self, connection: u64, principal: (String, String)) {
        self.inner.name_peer(connection, identity(principal));
    }

    #[pyo3(signature = (listener, tls, handshake_timeout_ms))]
    fn set_listener_tls(&self, listener: &str, tls: &PyServerTls, handshake_timeout_ms: u64) -> bool {
        self.inner.set_listener_tls(listener, &ListenerTls { tls: tls.inner.clone(), handshake_timeout_ms })
    }

    fn set_connection_limits(&self, limits: Limits) {
        self.inner.set_connection_limits(limits.into());
    }

    #[pyo3(signature = (api_keys))]
    fn intercept(&self, api_keys: Vec<i16>) {
        self.inner.intercept(&api_keys);
    }

    #[pyo3(signature = (connection))]
    fn proceed(&self, connection: u64) {
        self.inner.decide(connection, Decision::Proceed);
    }

    #[pyo3(signature = (connection, *, close))]
    fn proceed_unanswered(&self, connection: u64, close: bool) {
        self.inner.decide(connection, Decision::ProceedUnanswered { close });
    }

    #[pyo3(signature = (connection, payload))]
    fn respond_intercepted(&self, connection: u64, payload: &[u8]) {
        self.inner.decide(connection, Decision::Response(payload.to_vec()));
    }

    fn close_connections(&self) {
        self.inner.close_connections();
    }

    #[pyo3(signature = (by_ms))]
    fn set_clock_ahead(&self, by_ms: i64) {
        self.inner.set_clock_ahead(by_ms);
    }

    #[pyo3(signature = (table))]
    fn publish(&self, table: &PyTopicTable) {
        self.inner.publish(Arc::clone(&table.inner));
    }

    #[pyo3(signature = (settings))]
    fn set_replication(&self, settings: &PyReplicationSettings) {
        self.inner.set_fetch_security(settings.security.clone());
        self.inner.set_replication(settings.settings);
    }

    #[pyo3(signature = (*, own_rack, others))]
    fn set_read_replicas(&self, own_rack: Option<&str>, others: Vec<(i32, String)>) {
        self.inner.set_read_replicas(Some(replication::read_replicas(own_rack, others)));
    }

    fn clear_read_replicas(&self) {
        self.inner.set_read_replicas(None);
    }

    #[pyo3(signature = (sources))]
    fn set_fetch_sources(&self, sources: Vec<Source>) {
        self.inner.set_fetch_sources(replication::sources(sources));
    }

    #[getter]
    fn fetcher_threads(&self) -> usize {
        self.inner.fetcher_threads()
    }

    #[pyo3(signature = (responses))]
    fn publish_api_versions(&self, responses: HashMap<i16, Vec<u8>>) {
        self.inner.publish_api_versions(responses);
    }

    fn resume_accepting(&self) -> PyResult<()> {
        self.inner.resume_accepting().map_err(|error| PyOSError::new_err(error.to_string()))
    }

    fn stop_accepting(&self, py: Python<'_>) {
        py.detach(|| self.inner.stop_accepting());
    }

    #[pyo3(signature = (*, grace_ms))]
    fn shut_down(&self, py: Python<'_>, grace_ms: u64) {
        py.detach(|| self.inner.shut_down(grace_ms));
    }
}
