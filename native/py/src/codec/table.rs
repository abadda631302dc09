//! Converts a declaration's rows from Python to the native table.

use pybroker_wire::schema::{Field, Kind, Preset, Primitive, Versions};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString};

/// (name, primitive or index of a struct, array, versions, nullable, tag, tagged, default, ignorable, flexible)
pub(super) type FieldRow<'py> =
    (String, Bound<'py, PyAny>, bool, [i16; 2], [i16; 2], u32, [i16; 2], Bound<'py, PyAny>, bool, bool);

pub(super) fn range([first, last]: [i16; 2]) -> Versions {
    Versions { first, last }
}

pub(super) fn field(
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
