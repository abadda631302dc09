//! The one encoder and the one decoder of all messages: they walk the programs of a [`Schema`](super::schema::Schema).
//!
//! Owns the rules of Kafka's encoding: order, nullability, tagged fields only when they differ from their default, and
//! what becomes of a value that the version has no place for. Knows neither Python nor any message: a host shows its
//! values through [`Source`] and builds new ones through [`Sink`]. [`super::tree`] is the host of tests and fuzzing,
//! the binding crate has the one of Python.

mod decode;
mod encode;

use std::fmt;

pub use decode::{DecodeError, Decoded, decode, decode_within};
pub use encode::{EncodeError, Encoded, encode, encode_element, encode_within};

/// 16 bytes in the order of the wire.
pub type Uuid = [u8; 16];

/// Shows a host's values to the encoder.
pub trait Source {
    /// Any value.
    type Value;
    /// A struct whose fields are at hand.
    type Fields;
    /// Why the host could not show a value as what it should be.
    type Error;

    /// Opens a value as the struct of that index.
    fn fields(&self, value: &Self::Value, index: usize) -> Result<Self::Fields, Self::Error>;
    /// Takes a field of an opened struct.
    fn field(&self, fields: &Self::Fields, index: usize) -> Result<Self::Value, Self::Error>;
    /// Whether the value is null.
    fn is_null(&self, value: &Self::Value) -> bool;
    /// Shows a boolean.
    fn bool(&self, value: &Self::Value) -> Result<bool, Self::Error>;
    /// Shows a whole number.
    fn int(&self, value: &Self::Value) -> Result<i64, Self::Error>;
    /// Shows a number.
    fn float(&self, value: &Self::Value) -> Result<f64, Self::Error>;
    /// Shows a uuid.
    fn uuid(&self, value: &Self::Value) -> Result<Uuid, Self::Error>;
    /// Shows text to `use_it`.
    fn with_text<R>(&self, value: &Self::Value, use_it: impl FnOnce(&str) -> R) -> Result<R, Self::Error>;
    /// Shows bytes to `use_it`.
    fn with_bytes<R>(&self, value: &Self::Value, use_it: impl FnOnce(&[u8]) -> R) -> Result<R, Self::Error>;
    /// Counts the elements of a list.
    fn length(&self, list: &Self::Value) -> Result<usize, Self::Error>;
    /// Takes an element of a list.
    fn element(&self, list: &Self::Value, index: usize) -> Result<Self::Value, Self::Error>;
    /// Shows the bytes of a struct in an array that is encoded already, by `encode_element` in the same version; `None`
    /// for any other value.
    fn with_encoded<R>(&self, _element: &Self::Value, _use_it: impl FnOnce(&[u8]) -> R) -> Option<R> {
        None
    }
    /// Describes a value for an error text.
    fn show(&self, value: &Self::Value) -> String;
}

/// Builds a host's values for the decoder.
pub trait Sink {
    /// Any value.
    type Value;
    /// Why the host could not build one.
    type Error;

    /// Makes null.
    fn null(&self) -> Self::Value;
    /// Makes a boolean.
    fn bool(&self, value: bool) -> Self::Value;
    /// Makes a whole number.
    fn int(&self, value: i64) -> Result<Self::Value, Self::Error>;
    /// Makes a number.
    fn float(&self, value: f64) -> Self::Value;
    /// Makes text.
    fn text(&self, value: &str) -> Self::Value;
    /// Makes bytes.
    fn bytes(&self, value: &[u8]) -> Self::Value;
    /// Makes a uuid.
    fn uuid(&self, value: &Uuid) -> Self::Value;
    /// Makes a list.
    fn list(&self, elements: Vec<Self::Value>) -> Result<Self::Value, Self::Error>;
    /// Makes the struct of that index; fields that are `None` take their default.
    fn structure(&self, index: usize, fields: Vec<Option<Self::Value>>) -> Result<Self::Value, Self::Error>;
}

/// Where in a message something is: field names and positions from the outside in.
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

/// A failure and the place of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// Empty for the message as a whole.
    pub path: Path,
    /// What failed.
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
