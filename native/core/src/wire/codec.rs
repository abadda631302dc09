//! The one encoder and the one decoder of all messages: they walk the programs of a [`Schema`].
//!
//! Owns the rules of Kafka's encoding: order, nullability, tagged fields only when they differ from their default, and
//! what becomes of a value that the version has no place for. Knows neither Python nor any message: a host shows its
//! values through [`Source`] and builds new ones through [`Sink`]. [`super::tree`] is the host of tests and fuzzing,
//! the binding crate has the one of Python.

use std::fmt;

use thiserror::Error;

use super::primitives::{MAX_STRING, Malformed, Reader, Writer};
use super::schema::{Kind, Preset, Primitive, Program, Schema, Step};

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

/// Why a message cannot be written.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum EncodeError<H> {
    /// The version is not declared.
    #[error("version {0} is not declared")]
    UnknownVersion(i16),
    /// The version lacks the field, and the value is not its default.
    #[error("version {version} has no such field, and its value {value} is not the default")]
    NotInVersion {
        /// The version asked for.
        version: i16,
        /// The value.
        value: String,
    },
    /// Null in a version that has no null for the field.
    #[error("null cannot be written in version {0}")]
    NullNotInVersion(i16),
    /// A number outside its type.
    #[error("{value} does not fit {kind:?}")]
    OutOfRange {
        /// The number.
        value: i64,
        /// The type.
        kind: Primitive,
    },
    /// More than a length can say.
    #[error("{length} bytes or elements, at most {limit} fit")]
    TooLong {
        /// Bytes or elements there are.
        length: usize,
        /// What the length's type can say.
        limit: usize,
    },
    /// The host's value is not of the field's type.
    #[error("{0}")]
    Host(H),
}

/// Why bytes cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DecodeError<H> {
    /// The version is not declared.
    #[error("version {0} is not declared")]
    UnknownVersion(i16),
    /// The bytes are not a message of this kind.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The host could not build a value.
    #[error("{0}")]
    Host(H),
}

/// Appends `message` to `out` as `version` writes it. On an error `out` holds a part of it.
pub fn encode<S: Source>(
    schema: &Schema,
    source: &S,
    message: &S::Value,
    version: i16,
    out: &mut Vec<u8>,
) -> Result<(), Located<EncodeError<S::Error>>> {
    let programs = schema.programs(version).ok_or(EncodeError::UnknownVersion(version))?;
    Encoder { schema, programs, source, version }.structure(schema.root(), message, out)
}

struct Encoder<'a, S: Source> {
    schema: &'a Schema,
    programs: &'a [Program],
    source: &'a S,
    version: i16,
}

type Encoded<S> = Result<(), Located<EncodeError<<S as Source>::Error>>>;

impl<S: Source> Encoder<'_, S> {
    fn structure(&self, index: usize, value: &S::Value, out: &mut Vec<u8>) -> Encoded<S> {
        let program = &self.programs[index];
        let fields = self.source.fields(value, index).map_err(EncodeError::Host)?;
        for step in &program.steps {
            let value = self.source.field(&fields, step.field).map_err(EncodeError::Host)?;
            self.value(step, &value, out).map_err(|error| error.below(self.place(index, step.field)))?;
        }
        for field in &program.required_default {
            let value = self.source.field(&fields, *field).map_err(EncodeError::Host)?;
            if !self.is_preset(index, *field, &value).map_err(EncodeError::Host)? {
                let cause = EncodeError::NotInVersion { version: self.version, value: self.source.show(&value) };
                return Err(Located::from(cause).below(self.place(index, *field)));
            }
        }
        if program.flexible { self.tagged_section(index, &program.tagged, &fields, out) } else { Ok(()) }
    }

    fn tagged_section(
        &self,
        index: usize,
        tagged: &[(u32, Step)],
        fields: &S::Fields,
        out: &mut Vec<u8>,
    ) -> Encoded<S> {
        let mut count = 0;
        let mut section = Vec::new();
        let mut body = Vec::new();
        for (tag, step) in tagged {
            let value = self.source.field(fields, step.field).map_err(EncodeError::Host)?;
            if self.is_preset(index, step.field, &value).map_err(EncodeError::Host)? {
                continue;
            }
            body.clear();
            self.value(step, &value, &mut body).map_err(|error| error.below(self.place(index, step.field)))?;
            count += 1;
            fits(body.len(), MAX_LENGTH)?;
            let mut writer = Writer::new(&mut section, true);
            writer.uvarint(*tag);
            writer.uvarint(body.len() as u32);
            writer.raw(&body);
        }
        let mut writer = Writer::new(out, true);
        writer.uvarint(count);
        writer.raw(&section);
        Ok(())
    }

    fn value(&self, step: &Step, value: &S::Value, out: &mut Vec<u8>) -> Encoded<S> {
        if self.source.is_null(value) {
            return self.null(step, out);
        }
        if step.array {
            return self.array(step, value, out);
        }
        match step.kind {
            Kind::Primitive(kind) => Ok(self.primitive(kind, step.compact, value, out)?),
            Kind::Struct(index) => {
                if step.nullable {
                    Writer::new(out, step.compact).presence(true);
                }
                self.structure(index, value, out)
            }
        }
    }

    fn null(&self, step: &Step, out: &mut Vec<u8>) -> Encoded<S> {
        if !step.nullable {
            return Err(EncodeError::NullNotInVersion(self.version).into());
        }
        let mut writer = Writer::new(out, step.compact);
        match step.kind {
            _ if step.array => writer.array_null(),
            Kind::Primitive(Primitive::String) => writer.nullable_string(None),
            Kind::Primitive(_) => writer.bytes_null(),
            Kind::Struct(_) => writer.presence(false),
        }
        Ok(())
    }

    fn array(&self, step: &Step, list: &S::Value, out: &mut Vec<u8>) -> Encoded<S> {
        let count = self.source.length(list).map_err(EncodeError::Host)?;
        fits(count, MAX_LENGTH)?;
        Writer::new(out, step.compact).array_len(count);
        for position in 0..count {
            let element = self.source.element(list, position).map_err(EncodeError::Host)?;
            let written = match step.kind {
                Kind::Primitive(kind) => self.primitive(kind, step.compact, &element, out).map_err(Located::from),
                Kind::Struct(index) => self.structure(index, &element, out),
            };
            written.map_err(|error| error.below(Place::Element(position)))?;
        }
        Ok(())
    }

    fn primitive(
        &self,
        kind: Primitive,
        compact: bool,
        value: &S::Value,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError<S::Error>> {
        let source = self.source;
        let mut writer = Writer::new(out, compact);
        match kind {
            Primitive::Bool => writer.bool(source.bool(value).map_err(EncodeError::Host)?),
            Primitive::Float64 => writer.f64(source.float(value).map_err(EncodeError::Host)?),
            Primitive::Uuid => writer.uuid(&source.uuid(value).map_err(EncodeError::Host)?),
            Primitive::String => {
                let put = |text: &str| fits(text.len(), MAX_STRING).map(|()| writer.string(text));
                source.with_text(value, put).map_err(EncodeError::Host)??;
            }
            Primitive::Bytes | Primitive::Records => {
                let put = |bytes: &[u8]| fits(bytes.len(), MAX_LENGTH).map(|()| writer.bytes(bytes));
                source.with_bytes(value, put).map_err(EncodeError::Host)??;
            }
            _ => put_int(kind, source.int(value).map_err(EncodeError::Host)?, &mut writer)?,
        }
        Ok(())
    }

    fn is_preset(&self, index: usize, field: usize, value: &S::Value) -> Result<bool, S::Error> {
        let declared = &self.schema.structs()[index].fields[field];
        let source = self.source;
        if source.is_null(value) {
            return Ok(declared.preset == Preset::Null);
        }
        match (&declared.preset, declared.kind) {
            (Preset::Null, _) => Ok(false),
            (Preset::Bool(preset), _) => Ok(source.bool(value)? == *preset),
            (Preset::Int(preset), _) => Ok(source.int(value)? == *preset),
            (Preset::Float(preset), _) => Ok(source.float(value)? == *preset),
            (Preset::Text(preset), _) => source.with_text(value, |text| text == preset),
            (Preset::Bytes(preset), _) => source.with_bytes(value, |bytes| bytes == preset),
            (Preset::EmptyList, _) => Ok(source.length(value)? == 0),
            (Preset::Struct, Kind::Struct(inner)) => self.is_blank(inner, value),
            (Preset::Struct, Kind::Primitive(_)) => Ok(false),
        }
    }

    /// Whether every field of a struct holds its default, in whatever versions it exists.
    fn is_blank(&self, index: usize, value: &S::Value) -> Result<bool, S::Error> {
        let fields = self.source.fields(value, index)?;
        for field in 0..self.schema.structs()[index].fields.len() {
            let value = self.source.field(&fields, field)?;
            if !self.is_preset(index, field, &value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn place(&self, index: usize, field: usize) -> Place {
        Place::Field(self.schema.structs()[index].fields[field].name.clone())
    }
}

/// The longest array, bytes or tagged field.
const MAX_LENGTH: usize = i32::MAX as usize;

fn fits<H>(length: usize, limit: usize) -> Result<(), EncodeError<H>> {
    if length > limit { Err(EncodeError::TooLong { length, limit }) } else { Ok(()) }
}

fn put_int<H>(kind: Primitive, value: i64, writer: &mut Writer<'_>) -> Result<(), EncodeError<H>> {
    let outside = || EncodeError::OutOfRange { value, kind };
    match kind {
        Primitive::Int8 => writer.i8(value.try_into().map_err(|_| outside())?),
        Primitive::Int16 => writer.i16(value.try_into().map_err(|_| outside())?),
        Primitive::Int32 => writer.i32(value.try_into().map_err(|_| outside())?),
        Primitive::Uint16 => writer.u16(value.try_into().map_err(|_| outside())?),
        Primitive::Uint32 => writer.u32(value.try_into().map_err(|_| outside())?),
        _ => writer.i64(value),
    }
    Ok(())
}

/// Reads a message of `version` that begins at `at` in `bytes`: it, and the bytes it took.
pub fn decode<S: Sink>(
    schema: &Schema,
    sink: &S,
    bytes: &[u8],
    at: usize,
    version: i16,
) -> Result<(S::Value, usize), Located<DecodeError<S::Error>>> {
    let programs = schema.programs(version).ok_or(DecodeError::UnknownVersion(version))?;
    let mut reader = Reader::new(bytes, at, false);
    let start = reader.position();
    let value = Decoder { schema, programs, sink }.structure(schema.root(), &mut reader)?;
    Ok((value, reader.position() - start))
}

struct Decoder<'a, S: Sink> {
    schema: &'a Schema,
    programs: &'a [Program],
    sink: &'a S,
}

type Decoded<S, T> = Result<T, Located<DecodeError<<S as Sink>::Error>>>;

impl<H> From<Malformed> for Located<DecodeError<H>> {
    fn from(cause: Malformed) -> Self {
        DecodeError::Malformed(cause).into()
    }
}

impl<S: Sink> Decoder<'_, S> {
    fn structure(&self, index: usize, reader: &mut Reader<'_>) -> Decoded<S, S::Value> {
        let program = &self.programs[index];
        let declared = &self.schema.structs()[index].fields;
        let mut fields = Vec::with_capacity(declared.len());
        fields.resize_with(declared.len(), || None);
        for step in &program.steps {
            let value = self.value(step, reader).map_err(|error| error.below(self.place(index, step)))?;
            fields[step.field] = Some(value);
        }
        if program.flexible {
            self.tagged_section(index, &program.tagged, &mut fields, reader)?;
        }
        Ok(self.sink.structure(index, fields).map_err(DecodeError::Host)?)
    }

    fn tagged_section(
        &self,
        index: usize,
        tagged: &[(u32, Step)],
        fields: &mut [Option<S::Value>],
        reader: &mut Reader<'_>,
    ) -> Decoded<S, ()> {
        for _ in 0..reader.tag_count()? {
            let (tag, mut inner) = reader.tagged_field()?;
            let Some((_, step)) = tagged.iter().find(|(known, _)| *known == tag) else { continue };
            let value = self.value(step, &mut inner).and_then(|value| match inner.left() {
                0 => Ok(value),
                left => Err(Malformed::TagSize { at: inner.position(), left }.into()),
            });
            fields[step.field] = Some(value.map_err(|error| error.below(self.place(index, step)))?);
        }
        Ok(())
    }

    fn value(&self, step: &Step, reader: &mut Reader<'_>) -> Decoded<S, S::Value> {
        reader.set_flexible(step.compact);
        if step.array {
            return self.array(step, reader);
        }
        match step.kind {
            Kind::Primitive(kind) => Ok(self.primitive(kind, step.nullable, reader)?),
            Kind::Struct(index) => {
                if step.nullable && !reader.presence()? {
                    return Ok(self.sink.null());
                }
                self.structure(index, reader)
            }
        }
    }

    fn array(&self, step: &Step, reader: &mut Reader<'_>) -> Decoded<S, S::Value> {
        let at = reader.position();
        let Some(count) = reader.nullable_array_len()? else {
            return Ok(self.null(step.nullable, at)?);
        };
        let mut elements = Vec::with_capacity(count);
        for position in 0..count {
            let element = match step.kind {
                Kind::Primitive(kind) => self.primitive(kind, false, reader).map_err(Located::from),
                Kind::Struct(index) => self.structure(index, reader),
            };
            elements.push(element.map_err(|error| error.below(Place::Element(position)))?);
        }
        Ok(self.sink.list(elements).map_err(DecodeError::Host)?)
    }

    fn primitive(
        &self,
        kind: Primitive,
        nullable: bool,
        reader: &mut Reader<'_>,
    ) -> Result<S::Value, DecodeError<S::Error>> {
        let sink = self.sink;
        let at = reader.position();
        let number = match kind {
            Primitive::Bool => return Ok(sink.bool(reader.bool()?)),
            Primitive::Float64 => return Ok(sink.float(reader.f64()?)),
            Primitive::Uuid => return Ok(sink.uuid(&reader.uuid()?)),
            Primitive::String => {
                return reader.nullable_string()?.map_or_else(|| self.null(nullable, at), |text| Ok(sink.text(text)));
            }
            Primitive::Bytes | Primitive::Records => {
                return reader.nullable_bytes()?.map_or_else(|| self.null(nullable, at), |bytes| Ok(sink.bytes(bytes)));
            }
            Primitive::Int8 => reader.i8()?.into(),
            Primitive::Int16 => reader.i16()?.into(),
            Primitive::Int32 => reader.i32()?.into(),
            Primitive::Int64 => reader.i64()?,
            Primitive::Uint16 => reader.u16()?.into(),
            Primitive::Uint32 => reader.u32()?.into(),
        };
        sink.int(number).map_err(DecodeError::Host)
    }

    fn null(&self, nullable: bool, at: usize) -> Result<S::Value, DecodeError<S::Error>> {
        if nullable { Ok(self.sink.null()) } else { Err(Malformed::Null { at }.into()) }
    }

    fn place(&self, index: usize, step: &Step) -> Place {
        Place::Field(self.schema.structs()[index].fields[step.field].name.clone())
    }
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
