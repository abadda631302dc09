//! The data plane's counters for metrics: one snapshot of frozen values.

use std::collections::BTreeMap;

use pybroker_net::CountersSnapshot;
use pyo3::prelude::*;

/// Registers the classes of this file.
pub fn add(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyApiCounters>()?;
    m.add_class::<PyDataPlaneCounters>()?;
    m.add_class::<PyProcessorCounters>()
}

/// The counts of one API; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "ApiCounters", module = "pybroker._native")]
pub struct PyApiCounters {
    api_key: i16,
    requests: u64,
    in_work: u64,
    bytes_in: u64,
    bytes_out: u64,
    errors: BTreeMap<i16, u64>,
}

/// The counts of one processor; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "ProcessorCounters", module = "pybroker._native")]
pub struct PyProcessorCounters {
    requests: u64,
    bytes_in: u64,
    bytes_out: u64,
}

/// Both, at about the same time; see `_native.pyi`.
#[pyclass(frozen, get_all, name = "DataPlaneCounters", module = "pybroker._native")]
pub struct PyDataPlaneCounters {
    apis: Vec<Py<PyApiCounters>>,
    processors: Vec<Py<PyProcessorCounters>>,
}

impl PyDataPlaneCounters {
    pub fn new(py: Python<'_>, snapshot: CountersSnapshot) -> PyResult<Self> {
        let apis = snapshot.apis.into_iter().map(|api| {
            let errors = api.errors.into_iter().collect();
            let (api_key, requests, in_work) = (api.api_key, api.requests, api.in_work);
            let (bytes_in, bytes_out) = (api.bytes_in, api.bytes_out);
            Py::new(py, PyApiCounters { api_key, requests, in_work, bytes_in, bytes_out, errors })
        });
        let processors = snapshot.processors.into_iter().map(|processor| {
            let (requests, bytes_in, bytes_out) = (processor.requests, processor.bytes_in, processor.bytes_out);
            Py::new(py, PyProcessorCounters { requests, bytes_in, bytes_out })
        });
        Ok(Self { apis: apis.collect::<PyResult<_>>()?, processors: processors.collect::<PyResult<_>>()? })
    }
}
