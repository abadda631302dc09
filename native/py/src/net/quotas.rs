//! Client quotas, which the control plane sets in a data plane.

use std::time::Duration;

use pybroker_net::{ClientLimits, QuotaLimit, QuotaQuery, QuotaSettings, Window};
use pyo3::prelude::*;

use crate::net::handle::PyDataPlane;

/// A client whose quotas are requested; see `_native.pyi`.
#[pyclass(frozen, name = "QuotaQuery", module = "pybroker._native")]
pub struct PyQuotaQuery {
    pub inner: QuotaQuery,
}

#[pymethods]
impl PyQuotaQuery {
    #[getter]
    fn connection(&self) -> u64 {
        self.inner.connection
    }

    #[getter]
    fn principal(&self) -> (&str, &str) {
        (&self.inner.identity.kind, &self.inner.identity.name)
    }

    #[getter]
    fn client_id(&self) -> &str {
        &self.inner.client_id
    }
}

/// A limit a second, and the user and the client id that share it.
type Limit = (f64, Option<String>, Option<String>);

fn limit(limit: Option<Limit>) -> Option<QuotaLimit> {
    limit.map(|(per_second, user, client_id)| QuotaLimit { per_second, user, client_id })
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane, *, version, samples, sample_ms, remembered, forgotten_after_ms))]
fn set_quotas(
    data_plane: &PyDataPlane,
    version: u64,
    samples: usize,
    sample_ms: u64,
    remembered: usize,
    forgotten_after_ms: u64,
) {
    let settings = QuotaSettings { window: Window { samples, sample_ms }, remembered, forgotten_after_ms };
    data_plane.inner.set_quotas(settings, version);
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane, connection, version, *, produce, fetch, request))]
fn set_client_quotas(
    data_plane: &PyDataPlane,
    connection: u64,
    version: u64,
    produce: Option<Limit>,
    fetch: Option<Limit>,
    request: Option<Limit>,
) {
    let limits = ClientLimits { produce: limit(produce), fetch: limit(fetch), request: limit(request) };
    data_plane.inner.set_client_quotas(connection, version, limits);
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane, connection, nanoseconds))]
fn count_request_time(py: Python<'_>, data_plane: &PyDataPlane, connection: u64, nanoseconds: u64) -> i32 {
    py.detach(|| data_plane.inner.spend(connection, Duration::from_nanos(nanoseconds)))
}

/// See `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (data_plane, connection, time_ms))]
fn mute(py: Python<'_>, data_plane: &PyDataPlane, connection: u64, time_ms: u64) {
    py.detach(|| data_plane.inner.mute(connection, time_ms));
}

/// Registers the classes and functions of this file.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyQuotaQuery>()?;
    m.add_function(wrap_pyfunction!(set_quotas, m)?)?;
    m.add_function(wrap_pyfunction!(set_client_quotas, m)?)?;
    m.add_function(wrap_pyfunction!(count_request_time, m)?)?;
    m.add_function(wrap_pyfunction!(mute, m)?)
}
