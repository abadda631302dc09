//! The compiled declaration of one message class.

use pybroker_wire::schema;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// A message class, ready to be encoded and decoded in every version of its declaration.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Schema {
    pub name: String,
    pub table: schema::Schema,
    pub structs: Vec<Class>,
    /// `msgspec.structs.astuple`: all fields of a struct in one call, which costs several times less than one by one.
    pub astuple: Py<PyAny>,
}

pub struct Class {
    pub class: Py<PyType>,
    pub presets: Vec<PyPreset>,
}

/// A default in Python: shared if it is immutable, else created anew.
pub enum PyPreset {
    Shared(Py<PyAny>),
    EmptyList,
    Struct(usize),
}
