//! The message codec's host in Python: passes `msgspec` structs to the native encoder and builds them for its decoder.
//!
//! Owns `Schema`, the compiled declaration of one message class. Knows no message: `pybroker.protocol.codec` passes the
//! class and its field descriptions, once per class.

mod declaration;
mod host;
mod sink;
mod source;
mod table;

use pybroker_wire::codec::{self, DecodeError, EncodeError, Located};
use pybroker_wire::schema::{self, Kind, Preset, Struct, Versions};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

pub use self::declaration::Schema;
use self::declaration::{Class, PyPreset};
use self::host::Host;
use self::table::{FieldRow, field, range};
use crate::error::{MalformedMessage, TooManyElements, UnencodableValue, UnsupportedVersion};

#[pymethods]
impl Schema {
    #[new]
    #[pyo3(signature = (name, structs, versions, flexible))]
    fn new(
        py: Python<'_>,
        name: String,
        structs: Vec<(Bound<'_, PyType>, Vec<FieldRow<'_>>)>,
        versions: [i16; 2],
        flexible: [i16; 2],
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
        self.write(message, version, &mut out)?;
        Ok(PyBytes::new(py, &out))
    }

    /// Encodes an instance of the message class; `None` if it takes more than `limit` bytes.
    #[pyo3(signature = (message, version, limit))]
    fn encode_within<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        version: i16,
        limit: usize,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let py = message.py();
        let mut out = Vec::with_capacity(512);
        let whole = self.write_within(message, version, limit, &mut out)?;
        Ok(if whole && out.len() <= limit { Some(PyBytes::new(py, &out)) } else { None })
    }

    /// Encodes an instance of one of the message's structs, as it stands in an array of the message.
    #[pyo3(signature = (element, version))]
    fn encode_element<'py>(&self, element: &Bound<'py, PyAny>, version: i16) -> PyResult<Bound<'py, PyBytes>> {
        let py = element.py();
        let kind = element.get_type();
        let index = self
            .structs
            .iter()
            .position(|one| kind.is(one.class.bind(py)))
            .ok_or_else(|| PyTypeError::new_err(format!("{}: {kind} is none of its structs", self.name)))?;
        let mut out = Vec::with_capacity(512);
        codec::encode_element(&self.table, &Host::new(py, self), index, element, version, &mut out)
            .map_err(|error| self.unencodable(py, version, error))?;
        Ok(PyBytes::new(py, &out))
    }

    /// Decodes a message that begins at `offset`: (message, bytes read). Rejects a message with more than `max_elements`
    /// elements of arrays and tagged fields.
    #[pyo3(signature = (buffer, version, offset = 0, max_elements = usize::MAX))]
    fn decode<'py>(
        &self,
        buffer: &Bound<'py, PyAny>,
        version: i16,
        offset: usize,
        max_elements: usize,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        let py = buffer.py();
        let copy: Vec<u8>;
        let bytes = if let Ok(bytes) = buffer.cast::<PyBytes>() {
            bytes.as_bytes()
        } else {
            // Other threads may write to such a buffer meanwhile, so the decoder reads a copy.
            copy = pyo3::buffer::PyBuffer::<u8>::get(buffer)?.to_vec(py)?;
            &copy
        };
        self.read(py, bytes, version, offset, max_elements)
    }
}

impl Schema {
    /// Appends an encoded instance of the message class to `out`.
    pub fn write(&self, message: &Bound<'_, PyAny>, version: i16, out: &mut Vec<u8>) -> PyResult<()> {
        self.write_within(message, version, usize::MAX, out).map(drop)
    }

    /// Appends an encoded instance to `out`; returns false if it was cut at `limit`.
    fn write_within(
        &self,
        message: &Bound<'_, PyAny>,
        version: i16,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> PyResult<bool> {
        let py = message.py();
        let host = Host::new(py, self);
        let Err(error) = codec::encode_within(&self.table, &host, message, version, limit, out) else {
            return Ok(true);
        };
        if let EncodeError::OverLimit(_) = error.cause {
            return Ok(false);
        }
        Err(self.unencodable(py, version, error))
    }

    fn unencodable(&self, py: Python<'_>, version: i16, error: Located<EncodeError<PyErr>>) -> PyErr {
        let text = format!("{}: {error}", self.name);
        match error.cause {
            EncodeError::UnknownVersion(_) => UnsupportedVersion::new_err(self.unknown(version)),
            EncodeError::NotInVersion { .. } | EncodeError::NullNotInVersion(_) => UnsupportedVersion::new_err(text),
            EncodeError::OutOfRange { .. } | EncodeError::TooLong { .. } | EncodeError::OverLimit(_) => {
                UnencodableValue::new_err(text)
            }
            EncodeError::Host(cause) => refused(py, cause, &text),
        }
    }

    /// Decodes a message that begins at `offset`: (message, bytes read). Rejects a message with more than `elements`
    /// elements of arrays and tagged fields before it is built.
    pub fn read<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
        version: i16,
        offset: usize,
        elements: usize,
    ) -> PyResult<(Bound<'py, PyAny>, usize)> {
        if offset > bytes.len() {
            return Err(MalformedMessage::new_err(format!("{}: begins past the end", self.name)));
        }
        let host = Host::new(py, self);
        codec::decode_within(&self.table, &host, bytes, offset, version, elements).map_err(|error| match error.cause {
            DecodeError::UnknownVersion(_) => UnsupportedVersion::new_err(self.unknown(version)),
            DecodeError::TooMany(_) => TooManyElements::new_err(format!("{}: {error}", self.name)),
            DecodeError::Malformed(_) => MalformedMessage::new_err(format!("{}: {error}", self.name)),
            DecodeError::Host(cause) => cause,
        })
    }

    fn unknown(&self, version: i16) -> String {
        let Versions { first, last } = self.table.versions();
        format!("{} has no version {version}, only {first} to {last}", self.name)
    }
}

/// Converts a Python error about a value: a wrong value becomes `UnencodableValue`.
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
