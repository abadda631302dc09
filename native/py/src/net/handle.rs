//! The class `DataPlane`. Its methods are in `data_plane`; functions of other files take it as an argument.

use std::sync::Arc;

use pybroker_net::DataPlane;
use pyo3::prelude::*;

/// The data plane of one broker; see `_native.pyi`.
#[pyclass(frozen, name = "DataPlane", module = "pybroker._native")]
pub struct PyDataPlane {
    pub inner: Arc<DataPlane>,
}
