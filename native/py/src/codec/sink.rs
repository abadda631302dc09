//! Builds Python values for the native decoder.

use pybroker_wire::codec::{Sink, Uuid};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyList, PyString, PyTuple};

use super::declaration::PyPreset;
use super::host::{BYTES_PER_STEP, Host};

impl<'py> Sink for Host<'_, 'py> {
    type Value = Bound<'py, PyAny>;
    type Error = PyErr;

    fn null(&self) -> Self::Value {
        self.py.None().into_bound(self.py)
    }

    fn bool(&self, value: bool) -> Self::Value {
        PyBool::new(self.py, value).to_owned().into_any()
    }

    fn int(&self, value: i64) -> PyResult<Self::Value> {
        self.work(1);
        Ok(value.into_pyobject(self.py)?.into_any())
    }

    fn float(&self, value: f64) -> Self::Value {
        PyFloat::new(self.py, value).into_any()
    }

    fn text(&self, value: &str) -> Self::Value {
        self.work(1 + value.len() / BYTES_PER_STEP);
        PyString::new(self.py, value).into_any()
    }

    fn bytes(&self, value: &[u8]) -> Self::Value {
        self.work(1 + value.len() / BYTES_PER_STEP);
        PyBytes::new(self.py, value).into_any()
    }

    fn uuid(&self, value: &Uuid) -> Self::Value {
        PyBytes::new(self.py, value).into_any()
    }

    fn list(&self, elements: Vec<Self::Value>) -> PyResult<Self::Value> {
        Ok(PyList::new(self.py, elements)?.into_any())
    }

    fn structure(&self, index: usize, mut fields: Vec<Option<Self::Value>>) -> PyResult<Self::Value> {
        self.work(1);
        for (field, value) in fields.iter_mut().enumerate() {
            if value.is_none() {
                *value = Some(self.preset(index, field)?);
            }
        }
        self.schema.structs[index].class.bind(self.py).call1(PyTuple::new(self.py, fields)?)
    }
}

impl<'py> Host<'_, 'py> {
    fn preset(&self, index: usize, field: usize) -> PyResult<Bound<'py, PyAny>> {
        match &self.schema.structs[index].presets[field] {
            PyPreset::Shared(value) => Ok(value.bind(self.py).clone()),
            PyPreset::EmptyList => Ok(PyList::empty(self.py).into_any()),
            // The class fills in its own defaults.
            PyPreset::Struct(inner) => self.schema.structs[*inner].class.bind(self.py).call0(),
        }
    }
}
