//! A record type of a coordinator's topic, as Python declares it.

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::codec::Schema;

pub struct RecordType {
    pub number: i16,
    pub class: Py<PyType>,
    pub key: Py<Schema>,
    pub value: Py<Schema>,
    /// The version in which values are written, unless a record has its own.
    pub version: i16,
}
