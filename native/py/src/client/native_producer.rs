//! The class of a native producer. Its methods are in `producer`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use pybroker_client::Destination;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::client::draft::Functions;
use crate::client::measured_producer::MeasuredProducer;
use crate::client::settlements::Watched;

/// A native producer.
#[pyclass(frozen, subclass, extends = MeasuredProducer, module = "pybroker._native")]
pub struct Producer {
    pub inner: Arc<pybroker_client::Producer>,
    pub functions: Functions,
    pub on_delivery: Option<Py<PyAny>>,
    /// Called with the settlements before the first watched record.
    pub begin_watching: Option<Py<PyAny>>,
    pub is_watched: AtomicBool,
    pub watched: Arc<Watched>,
    /// The topic object of the last record, and its destination. Programs mostly pass the same object again.
    pub last: Mutex<Option<(Py<PyString>, Arc<Destination>)>>,
}
