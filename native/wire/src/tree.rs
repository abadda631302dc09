//! Messages as plain trees of values: the codec's host for tests and fuzzing, without Python.
//!
//! Owns [`Value`] and its implementations of the codec's traits. Knows no message. Not used for requests.

use super::codec::{Sink, Source, Uuid};
use super::schema::{Kind, Preset, Primitive, Schema};

/// A value of a message.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the kinds")]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Uuid(Uuid),
    List(Vec<Value>),
    Struct(Vec<Value>),
}

/// Reads and builds trees for the messages of one schema.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a>(pub &'a Schema);

/// The value does not have the type of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} wanted")]
pub struct Mismatch(pub &'static str);

macro_rules! shown {
    ($value:expr, $kind:ident) => {
        match $value {
            Value::$kind(inner) => Ok(inner),
            _ => Err(Mismatch(stringify!($kind))),
        }
    };
}

impl Source for Tree<'_> {
    type Value = Value;
    type Fields = Vec<Value>;
    type Error = Mismatch;

    fn fields(&self, value: &Value, index: usize) -> Result<Vec<Value>, Mismatch> {
        let fields = shown!(value, Struct)?;
        if fields.len() != self.0.structs()[index].fields.len() {
            return Err(Mismatch("a struct with as many fields as declared"));
        }
        Ok(fields.clone())
    }

    fn field(&self, fields: &Vec<Value>, index: usize) -> Result<Value, Mismatch> {
        Ok(fields[index].clone())
    }

    fn is_null(&self, value: &Value) -> bool {
        *value == Value::Null
    }

    fn bool(&self, value: &Value) -> Result<bool, Mismatch> {
        shown!(value, Bool).copied()
    }

    fn int(&self, value: &Value) -> Result<i64, Mismatch> {
        shown!(value, Int).copied()
    }

    fn float(&self, value: &Value) -> Result<f64, Mismatch> {
        shown!(value, Float).copied()
    }

    fn uuid(&self, value: &Value) -> Result<Uuid, Mismatch> {
        shown!(value, Uuid).copied()
    }

    fn with_text<R>(&self, value: &Value, use_it: impl FnOnce(&str) -> R) -> Result<R, Mismatch> {
        shown!(value, Text).map(|text| use_it(text))
    }

    fn with_bytes<R>(&self, value: &Value, use_it: impl FnOnce(&[u8]) -> R) -> Result<R, Mismatch> {
        match value {
            Value::Bytes(bytes) => Ok(use_it(bytes)),
            Value::Uuid(uuid) => Ok(use_it(uuid)),
            _ => Err(Mismatch("Bytes")),
        }
    }

    fn length(&self, list: &Value) -> Result<usize, Mismatch> {
        shown!(list, List).map(Vec::len)
    }

    fn element(&self, list: &Value, index: usize) -> Result<Value, Mismatch> {
        shown!(list, List).map(|elements| elements[index].clone())
    }

    fn show(&self, value: &Value) -> String {
        format!("{value:?}")
    }
}

impl Sink for Tree<'_> {
    type Value = Value;
    type Error = Mismatch;

    fn null(&self) -> Value {
        Value::Null
    }

    fn bool(&self, value: bool) -> Value {
        Value::Bool(value)
    }

    fn int(&self, value: i64) -> Result<Value, Mismatch> {
        Ok(Value::Int(value))
    }

    fn float(&self, value: f64) -> Value {
        Value::Float(value)
    }

    fn text(&self, value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    fn bytes(&self, value: &[u8]) -> Value {
        Value::Bytes(value.to_vec())
    }

    fn uuid(&self, value: &Uuid) -> Value {
        Value::Uuid(*value)
    }

    fn list(&self, elements: Vec<Value>) -> Result<Value, Mismatch> {
        Ok(Value::List(elements))
    }

    fn structure(&self, index: usize, fields: Vec<Option<Value>>) -> Result<Value, Mismatch> {
        let reported = fields.into_iter().enumerate();
        Ok(Value::Struct(reported.map(|(field, value)| value.unwrap_or_else(|| self.preset(index, field))).collect()))
    }
}

impl Tree<'_> {
    /// Returns the struct with that index with every field at its default.
    pub fn blank(&self, index: usize) -> Value {
        Value::Struct((0..self.0.structs()[index].fields.len()).map(|field| self.preset(index, field)).collect())
    }

    fn preset(&self, index: usize, field: usize) -> Value {
        let declared = &self.0.structs()[index].fields[field];
        match (&declared.preset, declared.kind) {
            (Preset::Null, _) => Value::Null,
            (Preset::Bool(value), _) => Value::Bool(*value),
            (Preset::Int(value), _) => Value::Int(*value),
            (Preset::Float(value), _) => Value::Float(*value),
            (Preset::Text(value), _) => Value::Text(value.clone()),
            (Preset::Bytes(value), Kind::Primitive(Primitive::Uuid)) => {
                Value::Uuid(value.as_slice().try_into().unwrap_or_default())
            }
            (Preset::Bytes(value), _) => Value::Bytes(value.clone()),
            (Preset::EmptyList, _) => Value::List(Vec::new()),
            (Preset::Struct, Kind::Struct(inner)) => self.blank(inner),
            (Preset::Struct, Kind::Primitive(_)) => Value::Null,
        }
    }
}
