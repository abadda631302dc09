//! The single encoder and decoder of all messages: they execute the programs of a [`Schema`](super::schema::Schema).
//!
//! Owns the rules of Kafka's encoding: order, nullability, tagged fields only when they differ from their default,
//! and values of fields that the version lacks. Knows neither Python nor any message. A host provides its values
//! through [`Source`] and builds new ones through [`Sink`]. [`super::tree`] is the host of tests and fuzzing; the
//! binding crate has that of Python.

mod decode;
mod encode;

use std::fmt;

pub use decode::{DecodeError, Decoded, decode, decode_within};
pub use encode::{EncodeError, Encoded, encode, encode_element, encode_within};

/// 16 bytes in the order of the wire.
pub type Uuid = [u8; 16];

/// Provides a host's values to the encoder.
pub trait Source {
    /// Any value.
    type Value;
    /// A struct that is prepared for access to its fields.
    type Fields;
    /// The error if a value does not have the expected type.
    type Error;

    /// Prepares a value as the struct with that index.
    fn fields(&self, value: &Self::Value, index: usize) -> Result<Self::Fields, Self::Error>;
    /// Returns a field of a prepared struct.
    fn field(&self, fields: &Self::Fields, index: usize) -> Result<Self::Value, Self::Error>;
    /// Returns whether the value is null.
    fn is_null(&self, value: &Self::Value) -> bool;
    /// Returns a boolean.
    fn bool(&self, value: &Self::Value) -> Result<bool, Self::Error>;
    /// Returns an integer.
    fn int(&self, value: &Self::Value) -> Result<i64, Self::Error>;
    /// Returns a floating-point number.
    fn float(&self, value: &Self::Value) -> Result<f64, Self::Error>;
    /// Returns a uuid.
    fn uuid(&self, value: &Self::Value) -> Result<Uuid, Self::Error>;
    /// Calls `use_it` with the text.
    fn with_text<R>(&self, value: &Self::Value, use_it: impl FnOnce(&str) -> R) -> Result<R, Self::Error>;
    /// Calls `use_it` with the bytes.
    fn with_bytes<R>(&self, value: &Self::Value, use_it: impl FnOnce(&[u8]) -> R) -> Result<R, Self::Error>;
    /// Returns the number of elements of a list.
    fn length(&self, list: &Self::Value) -> Result<usize, Self::Error>;
    /// Returns an element of a list.
    fn element(&self, list: &Self::Value, index: usize) -> Result<Self::Value, Self::Error>;
    /// Calls `use_it` with the bytes of an array element that `encode_element` has encoded in the same version; returns
    /// `None` for any other value.
    fn with_encoded<R>(&self, _element: &Self::Value, _use_it: impl FnOnce(&[u8]) -> R) -> Option<R> {
        None
    }
    /// Describes a value for an error message.
    fn show(&self, value: &Self::Value) -> String;
}

/// Builds a host's values for the decoder.
pub trait Sink {
    /// Any value.
    type Value;
    /// The error if the host cannot build a value.
    type Error;

    /// Builds null.
    fn null(&self) -> Self::Value;
    /// Builds a boolean.
    fn bool(&self, value: bool) -> Self::Value;
    /// Builds an integer.
    fn int(&self, value: i64) -> Result<Self::Value, Self::Error>;
    /// Builds a floating-point number.
    fn float(&self, value: f64) -> Self::Value;
    /// Builds text.
    fn text(&self, value: &str) -> Self::Value;
    /// Builds bytes.
    fn bytes(&self, value: &[u8]) -> Self::Value;
    /// Builds a uuid.
    fn uuid(&self, value: &Uuid) -> Self::Value;
    /// Builds a list.
    fn list(&self, elements: Vec<Self::Value>) -> Result<Self::Value, Self::Error>;
    /// Builds the struct with that index. Fields that are `None` get their default.
    fn structure(&self, index: usize, fields: Vec<Option<Self::Value>>) -> Result<Self::Value, Self::Error>;
}

/// A position in a message: field names and indexes, from the outside in.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Path(Vec<Place>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Field(String),
    Element(usize),
}

impl fmt::Display for Path {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, place) in self.0.iter().rev().enumerate() {
            match place {
                Place::Field(name) if depth == 0 => out.write_str(name)?,
                Place::Field(name) => write!(out, ".{name}")?,
                Place::Element(index) => write!(out, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// An error and its position.
#[derive(Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// Empty for the whole message.
    pub path: Path,
    /// The error.
    pub cause: T,
}

impl<T> Located<T> {
    fn below(mut self, place: Place) -> Self {
        self.path.0.push(place);
        self
    }
}

impl<T: fmt::Display> fmt::Display for Located<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.0.is_empty() {
            write!(out, "{}", self.cause)
        } else {
            write!(out, "{}: {}", self.path, self.cause)
        }
    }
}

impl<T> From<T> for Located<T> {
    fn from(cause: T) -> Self {
        Located { path: Path::default(), cause }
    }
}

#[cfg(test)]
mod tests;
