//! `DataPlaneSettings`: the limits of the data plane, set by the control plane. Owns no default.

use std::time::Duration;

use pybroker_net::Settings;
use pybroker_sys::scheduling;
use pyo3::prelude::*;

/// The limits of the data plane, complete; see `_native.pyi`.
#[pyclass(frozen, name = "DataPlaneSettings", module = "pybroker._native")]
pub struct PyDataPlaneSettings {
    pub settings: Settings,
}

/// Registers the classes and functions of this file.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyDataPlaneSettings>()?;
    m.add_function(wrap_pyfunction!(set_thread_slice, m)?)
}

/// Sets the scheduler slice of the calling thread; see `_native.pyi`.
#[pyfunction]
fn set_thread_slice(us: u32) -> std::io::Result<()> {
    scheduling::set_slice(Duration::from_micros(us.into()))
}

#[pymethods]
impl PyDataPlaneSettings {
    #[new]
    #[pyo3(signature = (*, node_id, network_threads, thread_slice_us, socket_request_max_bytes, socket_send_buffer_bytes, socket_receive_buffer_bytes, queued_max_requests, requests_in_work_per_connection, queued_request_bytes, queued_response_bytes_per_connection, queued_response_bytes, connections_max_idle_ms, max_connections, max_connections_reason, fetch_max_bytes, fetch_session_slots, fetch_session_eviction_ms))]
    #[allow(clippy::too_many_arguments, reason = "keyword-only: one argument a field")]
    fn new(
        node_id: i32,
        network_threads: usize,
        thread_slice_us: u32,
        socket_request_max_bytes: usize,
        socket_send_buffer_bytes: i64,
        socket_receive_buffer_bytes: i64,
        queued_max_requests: usize,
        requests_in_work_per_connection: usize,
        queued_request_bytes: i64,
        queued_response_bytes_per_connection: u64,
        queued_response_bytes: u64,
        connections_max_idle_ms: i64,
        max_connections: usize,
        max_connections_reason: String,
        fetch_max_bytes: usize,
        fetch_session_slots: usize,
        fetch_session_eviction_ms: i64,
    ) -> Self {
        Self {
            settings: Settings {
                node_id,
                network_threads,
                thread_slice: Duration::from_micros(thread_slice_us.into()),
                socket_request_max_bytes,
                socket_send_buffer_bytes,
                socket_receive_buffer_bytes,
                queued_max_requests,
                requests_in_work_per_connection,
                queued_request_bytes,
                queued_response_bytes_per_connection,
                queued_response_bytes,
                connections_max_idle_ms,
                max_connections,
                max_connections_reason,
                fetch_max_bytes,
                fetch_session_slots,
                fetch_session_eviction_ms,
            },
        }
    }
}
