//! JSON objects as typed columns, and typed columns as JSON objects.
//!
//! Owns the strict conversion of both directions. A value that is not exactly of its column's type is an error of its row.
//! Numbers are never rounded to another type, and texts are never read as numbers.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, StringArray, StructArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    /// A number without fraction and exponent, of 64 bits.
    Int,
    /// Any number.
    Float,
    /// A string.
    Text,
    /// `true` or `false`.
    Bool,
}

impl FromStr for JsonType {
    type Err = JsonError;

    fn from_str(name: &str) -> Result<Self, JsonError> {
        match name {
            "int" => Ok(Self::Int),
            "float" => Ok(Self::Float),
            "str" => Ok(Self::Text),
            "bool" => Ok(Self::Bool),
            _ => Err(JsonError::Type(name.to_owned())),
        }
    }
}

/// The reason why rows cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    #[error("row {row}: {detail}")]
    Row { row: usize, detail: String },
    #[error("invalid type {0}: expected int, float, str or bool")]
    Type(String),
    #[error("column {name} has the type {found}: expected {expected}")]
    Column { name: String, found: DataType, expected: &'static str },
    #[error("the JSON of all rows is larger than 2 GiB")]
    TooLarge,
}

/// Decodes one JSON object per row. A null row becomes a null struct, and a field that is missing a null of its column.
///
/// Fields without a column are ignored. If a field occurs twice, the last one counts.
pub fn decode_json(rows: &BinaryArray, columns: &[(String, JsonType)]) -> Result<StructArray, JsonError> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let types: Vec<JsonType> = columns.iter().map(|(_, kind)| *kind).collect();
    let mut builders: Vec<Builder> = types.iter().map(|kind| Builder::new(*kind, rows.len())).collect();
    let mut found: Vec<Value<'_>> = Vec::new();
    for (row, json) in rows.iter().enumerate() {
        found.clear();
        found.resize(names.len(), Value::Null);
        if let Some(json) = json {
            decode_row(json, &names, &types, &mut found).map_err(|detail| JsonError::Row { row, detail })?;
        }
        for (builder, value) in builders.iter_mut().zip(&found) {
            builder.append(value);
        }
    }
    let arrays: Vec<ArrayRef> = builders.into_iter().map(Builder::finish).collect();
    let fields: Fields =
        names.iter().zip(&arrays).map(|(name, a)| Field::new(*name, a.data_type().clone(), true)).collect();
    if fields.is_empty() {
        return Ok(StructArray::new_empty_fields(rows.len(), rows.nulls().cloned()));
    }
    Ok(StructArray::new(fields, arrays, rows.nulls().cloned()))
}

fn decode_row<'de>(
    json: &'de [u8],
    names: &[&str],
    types: &[JsonType],
    found: &mut [Value<'de>],
) -> Result<(), String> {
    let text = std::str::from_utf8(json).map_err(|e| e.to_string())?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    RowSeed { names, types, found }.deserialize(&mut deserializer).map_err(|e| e.to_string())?;
    deserializer.end().map_err(|e| e.to_string())
}

/// A value of one row.
#[derive(Debug, Clone, PartialEq)]
enum Value<'de> {
    Null,
    Int(i64),
    Float(f64),
    Text(Cow<'de, str>),
    Bool(bool),
}

/// Reads an object into the values of its columns.
struct RowSeed<'a, 'de> {
    names: &'a [&'a str],
    types: &'a [JsonType],
    found: &'a mut [Value<'de>],
}

impl<'de> DeserializeSeed<'de> for RowSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(column) = map.next_key_seed(NameSeed(self.names))? {
            match column {
                Some(column) => self.found[column] = map.next_value_seed(ValueSeed(self.types[column]))?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Reads the name of a field as the index of its column.
struct NameSeed<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for NameSeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|column| *column == name))
    }
}

/// Reads a value of exactly one type, or null.
struct ValueSeed(JsonType);

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = Value<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed {
    type Value = Value<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            JsonType::Int => "an integer of 64 bits or null",
            JsonType::Float => "a number or null",
            JsonType::Text => "a string or null",
            JsonType::Bool => "true, false or null",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value<'de>, E> {
        match self.0 {
            JsonType::Bool => Ok(Value::Bool(value)),
            _ => Err(E::invalid_type(serde::de::Unexpected::Bool(value), &self)),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value<'de>, E> {
        match self.0 {
            JsonType::Int => Ok(Value::Int(value)),
            JsonType::Float => Ok(Value::Float(value as f64)),
            _ => Err(E::invalid_type(serde::de::Unexpected::Signed(value), &self)),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value<'de>, E> {
        match (self.0, i64::try_from(value)) {
            (JsonType::Int, Ok(value)) => Ok(Value::Int(value)),
            (JsonType::Float, _) => Ok(Value::Float(value as f64)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Unsigned(value), &self)),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value<'de>, E> {
        match self.0 {
            // The integer -0 arrives here too, and it is another number for other decoders.
            JsonType::Float if value != 0.0 || value.is_sign_positive() => Ok(Value::Float(value)),
            _ => Err(E::invalid_type(serde::de::Unexpected::Float(value), &self)),
        }
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Value<'de>, E> {
        match self.0 {
            JsonType::Text => Ok(Value::Text(Cow::Borrowed(value))),
            _ => Err(E::invalid_type(serde::de::Unexpected::Str(value), &self)),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value<'de>, E> {
        match self.0 {
            JsonType::Text => Ok(Value::Text(Cow::Owned(value.to_owned()))),
            _ => Err(E::invalid_type(serde::de::Unexpected::Str(value), &self)),
        }
    }
}

enum Builder {
    Int(Int64Builder),
    Float(Float64Builder),
    Text(StringBuilder),
    Bool(BooleanBuilder),
}

impl Builder {
    fn new(kind: JsonType, rows: usize) -> Self {
        match kind {
            JsonType::Int => Self::Int(Int64Builder::with_capacity(rows)),
            JsonType::Float => Self::Float(Float64Builder::with_capacity(rows)),
            JsonType::Text => Self::Text(StringBuilder::new()),
            JsonType::Bool => Self::Bool(BooleanBuilder::with_capacity(rows)),
        }
    }

    /// Appends a value of this column's type, or null.
    fn append(&mut self, value: &Value<'_>) {
        match (self, value) {
            (Self::Int(builder), Value::Int(value)) => builder.append_value(*value),
            (Self::Float(builder), Value::Float(value)) => builder.append_value(*value),
            (Self::Text(builder), Value::Text(value)) => builder.append_value(value),
            (Self::Bool(builder), Value::Bool(value)) => builder.append_value(*value),
            (Self::Int(builder), _) => builder.append_null(),
            (Self::Float(builder), _) => builder.append_null(),
            (Self::Text(builder), _) => builder.append_null(),
            (Self::Bool(builder), _) => builder.append_null(),
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            Self::Int(mut builder) => Arc::new(builder.finish()),
            Self::Float(mut builder) => Arc::new(builder.finish()),
            Self::Text(mut builder) => Arc::new(builder.finish()),
            Self::Bool(mut builder) => Arc::new(builder.finish()),
        }
    }
}

/// Encodes each row as a JSON object with the fields of the struct, in their order. A null row stays null.
///
/// A null field is `null`, and so is a float that JSON cannot express.
pub fn encode_json(rows: &StructArray) -> Result<BinaryArray, JsonError> {
    let columns: Vec<Source<'_>> = rows
        .fields()
        .iter()
        .zip(rows.columns())
        .map(|(field, array)| Source::new(field, array))
        .collect::<Result<_, _>>()?;
    let names: Vec<String> = rows.fields().iter().map(|field| quoted(field.name())).collect();
    let mut out = Vec::new();
    let mut ends: Vec<i32> = Vec::with_capacity(rows.len() + 1);
    ends.push(0);
    for row in 0..rows.len() {
        if rows.is_valid(row) {
            out.push(b'{');
            for (at, (name, column)) in names.iter().zip(&columns).enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(name.as_bytes());
                out.push(b':');
                column.write(row, &mut out);
            }
            out.push(b'}');
        }
        ends.push(i32::try_from(out.len()).map_err(|_| JsonError::TooLarge)?);
    }
    let nulls: Option<NullBuffer> = rows.nulls().cloned();
    Ok(BinaryArray::new(OffsetBuffer::new(ScalarBuffer::from(ends)), Buffer::from_vec(out), nulls))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("every string is valid JSON")
}

/// A column to encode.
enum Source<'a> {
    Int(&'a Int64Array),
    Float(&'a Float64Array),
    Text(&'a StringArray),
    Bool(&'a BooleanArray),
    Null,
}

impl<'a> Source<'a> {
    fn new(field: &Field, array: &'a ArrayRef) -> Result<Self, JsonError> {
        match array.data_type() {
            DataType::Int64 => Ok(Self::Int(array.as_primitive::<Int64Type>())),
            DataType::Float64 => Ok(Self::Float(array.as_primitive::<Float64Type>())),
            DataType::Utf8 => Ok(Self::Text(array.as_string::<i32>())),
            DataType::Boolean => Ok(Self::Bool(array.as_boolean())),
            DataType::Null => Ok(Self::Null),
            found => Err(JsonError::Column {
                name: field.name().clone(),
                found: found.clone(),
                expected: "int64, float64, string or bool",
            }),
        }
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Int(array) if array.is_valid(row) => scalar(array.value(row), out),
            Self::Float(array) if array.is_valid(row) && array.value(row).is_finite() => {
                out.extend_from_slice(ryu::Buffer::new().format_finite(array.value(row)).as_bytes());
            }
            Self::Text(array) if array.is_valid(row) => scalar(array.value(row), out),
            Self::Bool(array) if array.is_valid(row) => scalar(array.value(row), out),
            _ => out.extend_from_slice(b"null"),
        }
    }
}

/// Appends a scalar as JSON.
fn scalar<T: serde::Serialize>(value: T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, &value).expect("a scalar is valid JSON");
}
