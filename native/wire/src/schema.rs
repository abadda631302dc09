//! The declaration of a message as a table, and its compilation to one program per version.
//!
//! Owns the fields and their order in each version. Knows neither bytes nor Python: declarations are passed to
//! [`Schema::compile`], and [`super::codec`] executes the programs. The first message of an API and version compiles
//! its program; later ones look it up.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use thiserror::Error;

/// Versions `first` to `last`, inclusive; empty when `first > last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The lowest version.
    pub first: i16,
    /// The highest version.
    pub last: i16,
}

impl Versions {
    /// No version at all.
    pub const NONE: Versions = Versions { first: 0, last: -1 };

    /// Returns whether `version` is in the range.
    pub fn contains(self, version: i16) -> bool {
        self.first <= version && version <= self.last
    }
}

/// Kafka's primitive types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum Primitive {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint16,
    Uint32,
    Float64,
    String,
    Bytes,
    Records,
    Uuid,
}

impl Primitive {
    /// Returns the type with a name in Kafka's schemas.
    pub fn from_name(name: &str) -> Option<Primitive> {
        Some(match name {
            "bool" => Primitive::Bool,
            "int8" => Primitive::Int8,
            "int16" => Primitive::Int16,
            "int32" => Primitive::Int32,
            "int64" => Primitive::Int64,
            "uint16" => Primitive::Uint16,
            "uint32" => Primitive::Uint32,
            "float64" => Primitive::Float64,
            "string" => Primitive::String,
            "bytes" => Primitive::Bytes,
            "records" => Primitive::Records,
            "uuid" => Primitive::Uuid,
            _ => return None,
        })
    }

    /// Returns the range of numbers of an integer type; `None` for another type.
    pub fn range(self) -> Option<RangeInclusive<i64>> {
        Some(match self {
            Primitive::Int8 => i8::MIN.into()..=i8::MAX.into(),
            Primitive::Int16 => i16::MIN.into()..=i16::MAX.into(),
            Primitive::Int32 => i32::MIN.into()..=i32::MAX.into(),
            Primitive::Int64 => i64::MIN..=i64::MAX,
            Primitive::Uint16 => 0..=u16::MAX.into(),
            Primitive::Uint32 => 0..=u32::MAX.into(),
            _ => return None,
        })
    }
}

/// The type of a field, or of the elements of its array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Primitive(Primitive),
    /// The struct with that index in the table.
    Struct(usize),
}

/// The default value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Preset {
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    Text(String),
    /// Bytes, or a uuid.
    Bytes(Vec<u8>),
    /// A list without elements.
    EmptyList,
    /// A struct whose fields all have their default.
    Struct,
}

/// The declaration of a field.
#[derive(Debug, Clone)]
pub struct Field {
    /// The name for error messages.
    pub name: String,
    /// The type of the value, or of each element.
    pub kind: Kind,
    /// Whether it is an array.
    pub array: bool,
    /// The versions that have the field.
    pub versions: Versions,
    /// The versions in which it is nullable.
    pub nullable: Versions,
    /// Its tag in the versions [`Field::tagged`].
    pub tag: u32,
    /// The versions in which it is a tagged field.
    pub tagged: Versions,
    /// Its default.
    pub preset: Preset,
    /// Whether its value is dropped silently in a version without the field.
    pub ignorable: bool,
    /// Whether it has compact lengths in flexible versions.
    pub flexible: bool,
}

/// The declaration of a struct.
#[derive(Debug, Clone)]
pub struct Struct {
    /// The name for error messages.
    pub name: String,
    /// The fields in wire order.
    pub fields: Vec<Field>,
}

/// The encoding of one field in one version.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Index of the field in its struct.
    pub field: usize,
    /// The type of the value, or of each element.
    pub kind: Kind,
    /// Whether it is an array.
    pub array: bool,
    /// Whether it may be null.
    pub nullable: bool,
    /// Whether its lengths are compact.
    pub compact: bool,
}

/// The encoding of one struct in one version.
#[derive(Debug, Default)]
pub struct Program {
    /// The untagged fields, in order.
    pub steps: Vec<Step>,
    /// The tagged fields, by ascending tag.
    pub tagged: Vec<(u32, Step)>,
    /// Fields that the version lacks, and whose value must be the default.
    pub required_default: Vec<usize>,
    /// Whether the struct ends with a tagged section.
    pub flexible: bool,
}

/// An invalid declaration.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SchemaError {
    /// There are no structs.
    #[error("no struct is declared")]
    Empty,
    /// A struct refers to a later one.
    #[error("{owner}.{field} refers to struct {index}, which does not come before its own")]
    ForwardReference {
        /// The struct.
        owner: String,
        field: String,
        /// The index it refers to.
        index: usize,
    },
    /// Two fields with the same tag in one version.
    #[error("{owner} uses tag {tag} twice in version {version}")]
    DuplicateTag {
        /// The struct.
        owner: String,
        tag: u32,
        /// The version with both fields.
        version: i16,
    },
    /// The versions are empty or negative.
    #[error("versions {first} to {last}")]
    BadVersions {
        /// The lowest version.
        first: i16,
        /// The highest version.
        last: i16,
    },
    /// A default that is invalid for its field's type.
    #[error("{owner}.{field} has a default that its type does not have")]
    BadPreset {
        /// The struct.
        owner: String,
        field: String,
    },
}

/// A message's structs, and their programs, which are compiled on first use.
#[derive(Debug)]
pub struct Schema {
    structs: Vec<Struct>,
    versions: Versions,
    flexible: Versions,
    programs: Vec<OnceLock<Vec<Program>>>,
}

impl Schema {
    /// Checks a table of structs. Each must come after those it refers to; the last one is the message itself.
    pub fn compile(structs: Vec<Struct>, versions: Versions, flexible: Versions) -> Result<Schema, SchemaError> {
        if versions.first < 0 || versions.first > versions.last {
            return Err(SchemaError::BadVersions { first: versions.first, last: versions.last });
        }
        if structs.is_empty() {
            return Err(SchemaError::Empty);
        }
        for (index, declared) in structs.iter().enumerate() {
            check(declared, index)?;
        }
        let schema = Schema {
            programs: (versions.first..=versions.last).map(|_| OnceLock::new()).collect(),
            structs,
            versions,
            flexible,
        };
        schema.check_tags()?;
        Ok(schema)
    }

    /// Returns the declared versions of the message.
    pub fn versions(&self) -> Versions {
        self.versions
    }

    /// Returns the declared structs; the last one is the message itself.
    pub fn structs(&self) -> &[Struct] {
        &self.structs
    }

    /// Returns the index of the message's own struct.
    pub fn root(&self) -> usize {
        self.structs.len() - 1
    }

    /// Returns the programs of all structs in `version`; `None` when the message has no such version.
    pub fn programs(&self, version: i16) -> Option<&[Program]> {
        if !self.versions.contains(version) {
            return None;
        }
        let slot = &self.programs[usize::from((version - self.versions.first) as u16)];
        Some(slot.get_or_init(|| self.structs.iter().map(|declared| self.program(declared, version)).collect()))
    }

    fn program(&self, declared: &Struct, version: i16) -> Program {
        let flexible = self.flexible.contains(version);
        let mut program = Program { flexible, ..Program::default() };
        for (index, field) in declared.fields.iter().enumerate() {
            let step = Step {
                field: index,
                kind: field.kind,
                array: field.array,
                nullable: field.nullable.contains(version),
                compact: flexible && field.flexible,
            };
            if !field.versions.contains(version) {
                if !field.ignorable {
                    program.required_default.push(index);
                }
            } else if flexible && field.tagged.contains(version) {
                program.tagged.push((field.tag, step));
            } else {
                program.steps.push(step);
            }
        }
        program.tagged.sort_by_key(|(tag, _)| *tag);
        program
    }

    fn check_tags(&self) -> Result<(), SchemaError> {
        for version in self.versions.first..=self.versions.last {
            for declared in &self.structs {
                let program = self.program(declared, version);
                if let Some(pair) = program.tagged.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                    return Err(SchemaError::DuplicateTag { owner: declared.name.clone(), tag: pair[0].0, version });
                }
            }
        }
        Ok(())
    }
}

fn check(declared: &Struct, index: usize) -> Result<(), SchemaError> {
    for field in &declared.fields {
        let (owner, name) = (declared.name.clone(), field.name.clone());
        if let Kind::Struct(inner) = field.kind
            && inner >= index
        {
            return Err(SchemaError::ForwardReference { owner, field: name, index: inner });
        }
        if !preset_fits(field) {
            return Err(SchemaError::BadPreset { owner, field: name });
        }
    }
    Ok(())
}

fn preset_fits(field: &Field) -> bool {
    match (&field.preset, field.kind) {
        (Preset::Null, Kind::Struct(_)) => true,
        (Preset::Null, Kind::Primitive(kind)) => {
            field.array || matches!(kind, Primitive::String | Primitive::Bytes | Primitive::Records)
        }
        (Preset::EmptyList, _) => field.array,
        (_, _) if field.array => false,
        (Preset::Struct, Kind::Struct(_)) => true,
        (Preset::Bool(_), Kind::Primitive(Primitive::Bool)) => true,
        (Preset::Float(_), Kind::Primitive(Primitive::Float64)) => true,
        (Preset::Text(_), Kind::Primitive(Primitive::String)) => true,
        (Preset::Bytes(bytes), Kind::Primitive(Primitive::Uuid)) => bytes.len() == 16,
        (Preset::Bytes(_), Kind::Primitive(Primitive::Bytes | Primitive::Records)) => true,
        (Preset::Int(value), Kind::Primitive(kind)) => kind.range().is_some_and(|range| range.contains(value)),
        _ => false,
    }
}
