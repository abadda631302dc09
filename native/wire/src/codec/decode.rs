//! Decoding to a host's values.
//!
//! Owns only the walk: the reader checks the bounds, and the program defines the order. For a request this is the
//! first step in Python.

use std::cell::Cell;

use thiserror::Error;

use super::{Located, Place, Sink};
use crate::primitives::{Malformed, Reader};
use crate::schema::{Kind, Primitive, Program, Schema, Step};

/// Why bytes cannot be decoded.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum DecodeError<H> {
    /// The message has no such version.
    #[error("version {0} is not declared")]
    UnknownVersion(i16),
    /// The bytes are not a valid message.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// More elements than the caller's limit.
    #[error("more than {0} elements and tagged fields in all")]
    TooMany(usize),
    /// The host could not build a value.
    #[error("{0}")]
    Host(H),
}

/// The result of a decoder over the sink `S`.
pub type Decoded<S, T> = Result<T, Located<DecodeError<<S as Sink>::Error>>>;

/// Decodes a message of `version` at `at` in `bytes`. Returns it and the number of bytes read.
pub fn decode<S: Sink>(
    schema: &Schema,
    sink: &S,
    bytes: &[u8],
    at: usize,
    version: i16,
) -> Decoded<S, (S::Value, usize)> {
    decode_within(schema, sink, bytes, at, version, usize::MAX)
}

/// Like [`decode`], for messages with at most `elements` array elements and tagged fields in total. An array over the
/// limit is rejected before any of its elements is built.
pub fn decode_within<S: Sink>(
    schema: &Schema,
    sink: &S,
    bytes: &[u8],
    at: usize,
    version: i16,
    elements: usize,
) -> Decoded<S, (S::Value, usize)> {
    let programs = schema.programs(version).ok_or(DecodeError::UnknownVersion(version))?;
    let mut reader = Reader::new(bytes, at, false);
    let start = reader.position();
    let decoder = Decoder { schema, programs, sink, elements, left: Cell::new(elements) };
    let value = decoder.structure(schema.root(), &mut reader)?;
    Ok((value, reader.position() - start))
}

struct Decoder<'a, S: Sink> {
    schema: &'a Schema,
    programs: &'a [Program],
    sink: &'a S,
    /// The limit of elements and tagged fields, and the number that is left.
    elements: usize,
    left: Cell<usize>,
}

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
            let value = self.value(step, false, reader).map_err(|error| error.below(self.place(index, step)))?;
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
        let count = reader.tag_count()?;
        self.expect(count)?;
        for _ in 0..count {
            let (tag, mut inner) = reader.tagged_field()?;
            let Some((_, step)) = tagged.iter().find(|(known, _)| *known == tag) else { continue };
            let value = self.value(step, true, &mut inner).and_then(|value| match inner.left() {
                0 => Ok(value),
                left => Err(Malformed::TagSize { at: inner.position(), left }.into()),
            });
            fields[step.field] = Some(value.map_err(|error| error.below(self.place(index, step)))?);
        }
        Ok(())
    }

    fn value(&self, step: &Step, tagged: bool, reader: &mut Reader<'_>) -> Decoded<S, S::Value> {
        reader.set_flexible(step.compact);
        if step.array {
            return self.array(step, reader);
        }
        match step.kind {
            Kind::Primitive(kind) => Ok(self.primitive(kind, step.nullable, reader)?),
            Kind::Struct(index) => {
                if step.nullable && !reader.presence(tagged)? {
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
        self.expect(count)?;
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

    /// Counts elements that are about to be read.
    fn expect(&self, count: usize) -> Result<(), DecodeError<S::Error>> {
        let left = self.left.get().checked_sub(count).ok_or(DecodeError::TooMany(self.elements))?;
        self.left.set(left);
        Ok(())
    }

    fn place(&self, index: usize, step: &Step) -> Place {
        Place::Field(self.schema.structs()[index].fields[step.field].name.clone())
    }
}
