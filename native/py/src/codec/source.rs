//! Passes Python values to the native encoder.

use pybroker_wire::codec::{Source, Uuid};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use super::host::Host;

impl<'py> Source for Host<'_, 'py> {
    type Value = Bound<'py, PyAny>;
    type Fields = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn fields(&self, value: &Self::Value, index: usize) -> PyResult<Self::Fields> {
        let class = self.schema.structs[index].class.bind(self.py);
        if !value.get_type().is(class) {
            return Err(wanted(&class.name()?.to_string(), value));
        }
        self.work(1);
        Ok(self.astuple.call1((value,))?.cast_into()?)
    }

    fn field(&self, fields: &Self::Fields, index: usize) -> PyResult<Self::Value> {
        fields.get_item(index)
    }

    fn is_null(&self, value: &Self::Value) -> bool {
        value.is_none()
    }

    fn bool(&self, value: &Self::Value) -> PyResult<bool> {
        value.extract().map_err(|_| wanted("bool", value))
    }

    fn int(&self, value: &Self::Value) -> PyResult<i64> {
        value.extract()
    }

    fn float(&self, value: &Self::Value) -> PyResult<f64> {
        value.extract()
    }

    fn uuid(&self, value: &Self::Value) -> PyResult<Uuid> {
        let bytes = value.cast::<PyBytes>().map_err(|_| wanted("bytes", value))?.as_bytes();
        bytes.try_into().map_err(|_| PyValueError::new_err(format!("16 bytes wanted for a uuid, not {}", bytes.len())))
    }

    fn with_text<R>(&self, value: &Self::Value, use_it: impl FnOnce(&str) -> R) -> PyResult<R> {
        Ok(use_it(value.cast::<PyString>().map_err(|_| wanted("str", value))?.to_str()?))
    }

    fn with_bytes<R>(&self, value: &Self::Value, use_it: impl FnOnce(&[u8]) -> R) -> PyResult<R> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(use_it(bytes.as_bytes()));
        }
        let buffer = PyBuffer::<u8>::get(value).map_err(|_| wanted("bytes", value))?;
        Ok(use_it(&buffer.to_vec(self.py)?))
    }

    fn length(&self, list: &Self::Value) -> PyResult<usize> {
        if let Ok(list) = list.cast::<PyList>() {
            return Ok(list.len());
        }
        Ok(list.cast::<PyTuple>().map_err(|_| wanted("list", list))?.len())
    }

    fn element(&self, list: &Self::Value, index: usize) -> PyResult<Self::Value> {
        self.work(1);
        match list.cast::<PyList>() {
            Ok(list) => list.get_item(index),
            Err(_) => list.get_item(index),
        }
    }

    fn with_encoded<R>(&self, element: &Self::Value, use_it: impl FnOnce(&[u8]) -> R) -> Option<R> {
        element.cast::<PyBytes>().ok().map(|bytes| use_it(bytes.as_bytes()))
    }

    fn show(&self, value: &Self::Value) -> String {
        value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string())
    }
}

fn wanted(kind: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let found = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{kind} wanted, not {found}"))
}
