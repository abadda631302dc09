//! A type of the records of a coordinator's topic, as Python declares it.

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::codec::Schema;

pub struct RecordType {
    pub number: i16,
    pub class: Py<PyType>,
    pub key: Py<Schema>,
    pub value: Py<Schema>,
    /// In which values are written, unless a record says otherwise.
    pub version: i16,
}
