//! The message codec's host in Python: shows `msgspec` structs to the core's encoder and builds them for its decoder.
//!
//! Owns `Schema`, the compiled declaration of one message class. Knows no message: what it is told are classes and
//! field descriptions, by `pybroker.protocol.codec`, once per class.

use pybroker_core::wire::codec::{self, DecodeError, EncodeError, Sink, Source, Uuid};
use pybroker_core::wire::schema::{self, Field, Kind, Preset, Primitive, Struct, Versions};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use crate::error::{MalformedMessage, UnencodableValue, UnsupportedVersion};

/// A message class, ready to be encoded and decoded in every version that it declares.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Schema {
    name: String,
    table: schema::Schema,
    structs: Vec<Class>,
    /// `msgspec.structs.astuple`: all fields of a struct in one call, which is several times cheaper than one by one.
    astuple: Py<PyAny>,
}

struct Class {
    class: Py<PyType>,
    presets: Vec<PyPreset>,
}

/// A default as Python has it: shared where it cannot change, made anew where it can.
enum PyPreset {
    Shared(Py<PyAny>),
    EmptyList,
    Struct(usize),
}

/// (name, primitive or index of a struct, array, versions, nullable, tag, tagged, default, ignorable, flexible)
type FieldRow<'py> =
    (String, Bound<'py, PyAny>, bool, (i16, i16), (i16, i16), u32, (i16, i16), Bound<'py, PyAny>, bool, bool);

#[pymethods]
impl Schema {
    #[new]
    #[pyo3(signature = (name, structs, versions, flexible))]
    fn new(
        py: Python<'_>,
        name: String,
        structs: Vec<(Bound<'_, PyType>, Vec<FieldRow<'_>>)>,
        versions: (i16, i16),
        flexible: (i16, i16),
    ) -> PyResult<Self> {
        let mut classes = Vec::with_capacity(structs.len());
        let mut table = Vec::with_capacity(structs.len());
        for (class, rows) in structs {
            let mut presets = Vec::with_capacity(rows.len());
            let mut fields = Vec::with_capacity(rows.len());
            for row in rows {
                let field = field(&row)?;
                presets.push(match (&field.preset, field.kind) {
                    (Preset::EmptyList, _) => PyPreset::EmptyList,
                    (Preset::Struct, Kind::Struct(index)) => PyPreset::Struct(index),
                    _ => PyPreset::Shared(row.7.unbind()),
                });
                fields.push(field);
            }
            table.push(Struct { name: class.name()?.to_string(), fields });
            classes.push(Class { class: class.unbind(), presets });
        }
        let table = schema::Schema::compile(table, range(versions), range(flexible))
            .map_err(|error| PyTypeError::new_err(format!("{name}: {error}")))?;
        let astuple = py.import("msgspec.structs")?.getattr("astuple")?.unbind();
        Ok(Schema { name, table, structs: classes, astuple })
    }

    /// Encodes an instance of the message class.
    #[pyo3(signature = (message, version))]
    fn encode<'py>(&self, message: &Bound<'py, PyAny>, version: i16) -> PyResult<Bound<'py, PyBytes>> {
        let py = message.py();
        let mut out = Vec::with_capacity(512);
        let host = Host { py, schema: self, astuple: self.astuple.bind(py) };
        codec::encode(&self.table, &host, message, version, &mut out).map_err(|error| {
            let text = format!("{}: {error}", self.name);
            match error.cause {
                EncodeError::UnknownVersion(_) => UnsupportedVersion::new_err(self.unknown(version)),
                EncodeError::NotInVersion { .. } | EncodeError::NullNotInVersion(_) => {
                    UnsupportedVersion::new_err(text)
                }
                EncodeError::OutOfRange { .. } | EncodeError::TooLong { .. } => UnencodableValue::new_err(text),
                EncodeError::Host(cause) => refused(py, cause, &text),
            }
        })?;
        Ok(PyBytes::new(py, &out))
    }

    /// Decodes a message that begins at `offset`: (message, bytes read).
    #[pyo3(signature = (buffer, version, offset = 0))]
    fn decode<'py>(
        &self,
        buffer: &Bound<'py, PyAny>,
        version: i16,
        offset: usize,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let py = buffer.py();
        let copy: Vec<u8>;
        let bytes = if let Ok(bytes) = buffer.cast::<PyBytes>() {
            bytes.as_bytes()
        } else {
            // Others may write to such a buffer meanwhile, so the decoder reads a copy.
            copy = pyo3::buffer::PyBuffer::<u8>::get(buffer)?.to_vec(py)?;
            &copy
        };
        if offset > bytes.len() {
            return Err(MalformedMessage::new_err(format!("{}: begins past the end", self.name)));
        }
        let host = Host { py, schema: self, astuple: self.astuple.bind(py) };
        codec::decode(&self.table, &host, bytes, offset, version).map_err(|error| match error.cause {
            DecodeError::UnknownVersion(_) => UnsupportedVersion::new_err(self.unknown(version)),
            DecodeError::Malformed(_) => MalformedMessage::new_err(format!("{}: {error}", self.name)),
            DecodeError::Host(cause) => cause,
        })
    }
}

impl Schema {
    fn unknown(&self, version: i16) -> String {
        let Versions { first, last } = self.table.versions();
        format!("{} has no version {version}, only {first} to {last}", self.name)
    }
}

/// An error of Python while it showed a value: what is wrong with the value becomes `UnencodableValue`.
fn refused(py: Python<'_>, cause: PyErr, text: &str) -> PyErr {
    let wrong_value = cause.is_instance_of::<PyTypeError>(py)
        || cause.is_instance_of::<PyValueError>(py)
        || cause.is_instance_of::<PyOverflowError>(py);
    if !wrong_value {
        return cause;
    }
    let error = UnencodableValue::new_err(text.to_owned());
    error.set_cause(py, Some(cause));
    error
}

fn range((first, last): (i16, i16)) -> Versions {
    Versions { first, last }
}

fn field(
    (name, kind, array, versions, nullable, tag, tagged, default, ignorable, flexible): &FieldRow<'_>,
) -> PyResult<Field> {
    let kind = match kind.cast::<PyString>() {
        Ok(primitive) => {
            let unknown = || PyTypeError::new_err(format!("{name}: {primitive} is not a primitive type"));
            Kind::Primitive(Primitive::from_name(primitive.to_str()?).ok_or_else(unknown)?)
        }
        Err(_) => Kind::Struct(kind.extract()?),
    };
    Ok(Field {
        name: name.clone(),
        kind,
        array: *array,
        versions: range(*versions),
        nullable: range(*nullable),
        tag: *tag,
        tagged: range(*tagged),
        preset: preset(default)?,
        ignorable: *ignorable,
        flexible: *flexible,
    })
}

fn preset(default: &Bound<'_, PyAny>) -> PyResult<Preset> {
    Ok(if default.is_none() {
        Preset::Null
    } else if default.is_instance_of::<PyBool>() {
        Preset::Bool(default.extract()?)
    } else if default.is_instance_of::<PyInt>() {
        Preset::Int(default.extract()?)
    } else if default.is_instance_of::<PyFloat>() {
        Preset::Float(default.extract()?)
    } else if default.is_instance_of::<PyString>() {
        Preset::Text(default.extract()?)
    } else if default.is_instance_of::<PyBytes>() {
        Preset::Bytes(default.extract()?)
    } else if default.is_instance_of::<PyList>() {
        Preset::EmptyList
    } else {
        Preset::Struct
    })
}

struct Host<'a, 'py> {
    py: Python<'py>,
    schema: &'a Schema,
    astuple: &'a Bound<'py, PyAny>,
}

impl<'py> Source for Host<'_, 'py> {
    type Value = Bound<'py, PyAny>;
    type Fields = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn fields(&self, value: &Self::Value, index: usize) -> PyResult<Self::Fields> {
        let class = self.schema.structs[index].class.bind(self.py);
        if !value.get_type().is(class) {
            return Err(wanted(&class.name()?.to_string(), value));
        }
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
        let buffer = pyo3::buffer::PyBuffer::<u8>::get(value).map_err(|_| wanted("bytes", value))?;
        Ok(use_it(&buffer.to_vec(self.py)?))
    }

    fn length(&self, list: &Self::Value) -> PyResult<usize> {
        if let Ok(list) = list.cast::<PyList>() {
            return Ok(list.len());
        }
        Ok(list.cast::<PyTuple>().map_err(|_| wanted("list", list))?.len())
    }

    fn element(&self, list: &Self::Value, index: usize) -> PyResult<Self::Value> {
        match list.cast::<PyList>() {
            Ok(list) => list.get_item(index),
            Err(_) => list.get_item(index),
        }
    }

    fn show(&self, value: &Self::Value) -> String {
        value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string())
    }
}

fn wanted(kind: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let found = value.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{kind} wanted, not {found}"))
}

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
        Ok(value.into_pyobject(self.py)?.into_any())
    }

    fn float(&self, value: f64) -> Self::Value {
        PyFloat::new(self.py, value).into_any()
    }

    fn text(&self, value: &str) -> Self::Value {
        PyString::new(self.py, value).into_any()
    }

    fn bytes(&self, value: &[u8]) -> Self::Value {
        PyBytes::new(self.py, value).into_any()
    }

    fn uuid(&self, value: &Uuid) -> Self::Value {
        PyBytes::new(self.py, value).into_any()
    }

    fn list(&self, elements: Vec<Self::Value>) -> PyResult<Self::Value> {
        Ok(PyList::new(self.py, elements)?.into_any())
    }

    fn structure(&self, index: usize, fields: Vec<Option<Self::Value>>) -> PyResult<Self::Value> {
        let mut values = Vec::with_capacity(fields.len());
        for (field, value) in fields.into_iter().enumerate() {
            values.push(match value {
                Some(value) => value,
                None => self.preset(index, field)?,
            });
        }
        self.schema.structs[index].class.bind(self.py).call1(PyTuple::new(self.py, values)?)
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
