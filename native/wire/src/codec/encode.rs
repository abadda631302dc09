//! Encoding of a host's values.
//!
//! Owns the encoding of each field in one version. For a response this is the last step in Python.

use thiserror::Error;

use super::{Located, Place, Source};
use crate::primitives::{MAX_STRING, Writer};
use crate::schema::{Kind, Preset, Primitive, Program, Schema, Step};

/// Why a message cannot be encoded.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum EncodeError<H> {
    /// The message has no such version.
    #[error("version {0} is not declared")]
    UnknownVersion(i16),
    /// The version lacks the field, and the value is not the field's default.
    #[error("version {version} has no such field, and its value {value} is not the default")]
    NotInVersion {
        /// The requested version.
        version: i16,
        value: String,
    },
    /// Null in a version in which the field is not nullable.
    #[error("null cannot be written in version {0}")]
    NullNotInVersion(i16),
    /// A number out of the range of its type.
    #[error("{value} does not fit {kind:?}")]
    OutOfRange {
        /// The number.
        value: i64,
        /// The type.
        kind: Primitive,
    },
    /// More bytes or elements than the length field can express.
    #[error("{length} bytes or elements, at most {limit} fit")]
    TooLong {
        /// Number of bytes or elements.
        length: usize,
        /// The limit of the length field.
        limit: usize,
    },
    /// More bytes than the caller's limit.
    #[error("more than {0} bytes")]
    OverLimit(usize),
    /// The host's value does not have the field's type.
    #[error("{0}")]
    Host(H),
}

/// The result of an encoder over the source `S`.
pub type Encoded<S> = Result<(), Located<EncodeError<<S as Source>::Error>>>;

/// Encodes `message` in `version` and appends it to `out`. On an error `out` has a part of the message.
pub fn encode<S: Source>(
    schema: &Schema,
    source: &S,
    message: &S::Value,
    version: i16,
    out: &mut Vec<u8>,
) -> Encoded<S> {
    encode_within(schema, source, message, version, usize::MAX, out)
}

/// Like [`encode`], but fails with [`EncodeError::OverLimit`] soon after `out` is longer than `limit`.
pub fn encode_within<S: Source>(
    schema: &Schema,
    source: &S,
    message: &S::Value,
    version: i16,
    limit: usize,
    out: &mut Vec<u8>,
) -> Encoded<S> {
    let programs = schema.programs(version).ok_or(EncodeError::UnknownVersion(version))?;
    Encoder { schema, programs, source, version, limit }.structure(schema.root(), message, out)
}

/// Appends an instance of the struct of that index to `out`, as it stands in an array of the message.
pub fn encode_element<S: Source>(
    schema: &Schema,
    source: &S,
    index: usize,
    element: &S::Value,
    version: i16,
    out: &mut Vec<u8>,
) -> Encoded<S> {
    let programs = schema.programs(version).ok_or(EncodeError::UnknownVersion(version))?;
    Encoder { schema, programs, source, version, limit: usize::MAX }.structure(index, element, out)
}

struct Encoder<'a, S: Source> {
    schema: &'a Schema,
    programs: &'a [Program],
    source: &'a S,
    version: i16,
    limit: usize,
}

impl<S: Source> Encoder<'_, S> {
    fn structure(&self, index: usize, value: &S::Value, out: &mut Vec<u8>) -> Encoded<S> {
        let program = &self.programs[index];
        let fields = self.source.fields(value, index).map_err(EncodeError::Host)?;
        for step in &program.steps {
            let value = self.source.field(&fields, step.field).map_err(EncodeError::Host)?;
            self.value(step, false, &value, out).map_err(|error| error.below(self.place(index, step.field)))?;
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
            self.value(step, true, &value, &mut body).map_err(|error| error.below(self.place(index, step.field)))?;
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

    fn value(&self, step: &Step, tagged: bool, value: &S::Value, out: &mut Vec<u8>) -> Encoded<S> {
        if self.source.is_null(value) {
            return self.null(step, tagged, out);
        }
        if step.array {
            return self.array(step, value, out);
        }
        match step.kind {
            Kind::Primitive(kind) => Ok(self.primitive(kind, step.compact, value, out)?),
            Kind::Struct(index) => {
                if step.nullable {
                    Writer::new(out, step.compact).presence(true, tagged);
                }
                self.structure(index, value, out)
            }
        }
    }

    fn null(&self, step: &Step, tagged: bool, out: &mut Vec<u8>) -> Encoded<S> {
        if !step.nullable {
            return Err(EncodeError::NullNotInVersion(self.version).into());
        }
        let mut writer = Writer::new(out, step.compact);
        match step.kind {
            _ if step.array => writer.array_null(),
            Kind::Primitive(Primitive::String) => writer.nullable_string(None),
            Kind::Primitive(_) => writer.bytes_null(),
            Kind::Struct(_) => writer.presence(false, tagged),
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
                Kind::Struct(index) => match self.source.with_encoded(&element, |bytes| out.extend_from_slice(bytes)) {
                    Some(()) => Ok(()),
                    None => self.structure(index, &element, out),
                },
            };
            if out.len() > self.limit {
                return Err(EncodeError::OverLimit(self.limit).into());
            }
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

    /// Returns whether every field of a struct has its default value, in whichever versions it exists.
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
