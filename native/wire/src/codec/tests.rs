//! The codec's rules on a small schema, and on random schemas and messages.

use proptest::prelude::*;

use super::*;
use crate::schema::{Field, Kind, Preset, Primitive, Schema, SchemaError, Struct, Versions};
use crate::tree::{Mismatch, Tree, Value};

fn from(first: i16) -> Versions {
    Versions { first, last: i16::MAX }
}

fn field(name: &str, kind: Kind, preset: Preset) -> Field {
    Field {
        name: name.to_owned(),
        kind,
        array: matches!(preset, Preset::EmptyList),
        versions: from(0),
        nullable: Versions::NONE,
        tag: 0,
        tagged: Versions::NONE,
        preset,
        ignorable: false,
        flexible: true,
    }
}

/// Versions 0 to 3, flexible from 2: a name, nullable from 1; an array of numbers from 1; from 2 a tagged number with
/// default -1; from 3 an ignorable structure with a text field.
fn schema() -> Schema {
    let inner = Struct {
        name: "Inner".into(),
        fields: vec![field("text", Kind::Primitive(Primitive::String), Preset::Text(String::new()))],
    };
    let outer = Struct {
        name: "Outer".into(),
        fields: vec![
            Field {
                nullable: from(1),
                ..field("name", Kind::Primitive(Primitive::String), Preset::Text(String::new()))
            },
            Field { versions: from(1), ..field("numbers", Kind::Primitive(Primitive::Int16), Preset::EmptyList) },
            Field {
                versions: from(2),
                tag: 7,
                tagged: from(2),
                ..field("limit", Kind::Primitive(Primitive::Int32), Preset::Int(-1))
            },
            Field { versions: from(3), ignorable: true, ..field("inner", Kind::Struct(0), Preset::Struct) },
        ],
    };
    Schema::compile(vec![inner, outer], Versions { first: 0, last: 3 }, from(2)).expect("a sound schema")
}

fn message(name: Option<&str>, numbers: &[i64], limit: i64, text: &str) -> Value {
    Value::Struct(vec![
        name.map_or(Value::Null, |name| Value::Text(name.to_owned())),
        Value::List(numbers.iter().map(|number| Value::Int(*number)).collect()),
        Value::Int(limit),
        Value::Struct(vec![Value::Text(text.to_owned())]),
    ])
}

fn encoded(message: &Value, version: i16) -> Result<Vec<u8>, Located<EncodeError<Mismatch>>> {
    let (schema, mut out) = (schema(), Vec::new());
    encode(&schema, &Tree(&schema), message, version, &mut out).map(|()| out)
}

fn decoded(bytes: &[u8], version: i16) -> Result<(Value, usize), Located<DecodeError<Mismatch>>> {
    let schema = schema();
    decode(&schema, &Tree(&schema), bytes, 0, version)
}

#[test]
fn each_version_writes_the_fields_that_it_has() {
    let value = message(Some("ab"), &[], -1, "");
    assert_eq!(encoded(&value, 0).unwrap(), b"\x00\x02ab");
    assert_eq!(encoded(&value, 1).unwrap(), b"\x00\x02ab\0\0\0\0");
    assert_eq!(encoded(&value, 2).unwrap(), b"\x03ab\x01\x00");
    assert_eq!(encoded(&message(None, &[5], 9, "x"), 3).unwrap(), b"\x00\x02\x00\x05\x02x\x00\x01\x07\x04\0\0\0\x09");
}

#[test]
fn a_value_that_the_version_cannot_carry_is_an_error_unless_it_is_ignorable() {
    let error = encoded(&message(Some(""), &[5], -1, "ignored"), 0).unwrap_err();
    assert_eq!(error.cause, EncodeError::NotInVersion { version: 0, value: "List([Int(5)])".into() });
    assert_eq!(error.path.to_string(), "numbers");
    let error = encoded(&message(None, &[], -1, ""), 0).unwrap_err();
    assert_eq!(error.to_string(), "name: null cannot be written in version 0");
    let error = encoded(&message(None, &[], 3, ""), 1).unwrap_err();
    assert_eq!(error.path.to_string(), "limit");
    assert_eq!(encoded(&message(None, &[], 3, ""), 4).unwrap_err().cause, EncodeError::UnknownVersion(4));
}

#[test]
fn a_value_of_another_type_or_range_is_an_error_with_its_place() {
    let error = encoded(&message(None, &[1, 40_000], -1, ""), 1).unwrap_err();
    assert_eq!(error.to_string(), "numbers[1]: 40000 does not fit Int16");
    let error = encoded(&Value::Struct(vec![Value::Int(1), Value::Null, Value::Null, Value::Null]), 0).unwrap_err();
    assert_eq!(error.to_string(), "name: Text wanted");
    let long = "x".repeat(32_768);
    let error = encoded(&message(Some(&long), &[], -1, ""), 2).unwrap_err();
    assert_eq!(error.cause, EncodeError::TooLong { length: 32_768, limit: 32_767 });
}

#[test]
fn fields_that_the_version_lacks_take_their_defaults() {
    assert_eq!(decoded(b"\x00\x02ab", 0), Ok((message(Some("ab"), &[], -1, ""), 4)));
    assert_eq!(decoded(b"\x03ab\x01\x00more", 2), Ok((message(Some("ab"), &[], -1, ""), 5)));
}

#[test]
fn unknown_tagged_fields_are_passed_over() {
    assert_eq!(decoded(b"\x01\x01\x02\x05\x01x\x07\x04\0\0\0\x02", 2), Ok((message(Some(""), &[], 2, ""), 12)));
}

#[test]
fn bytes_that_are_not_the_message_are_refused_with_their_place() {
    let text = |bytes: &[u8], version| decoded(bytes, version).unwrap_err().to_string();
    assert_eq!(text(b"\xff\xff", 0), "name: null at byte 0, where the schema has none");
    assert_eq!(text(b"\x00\x05ab", 0), "name: 5 bytes wanted at byte 2, 2 left");
    assert_eq!(text(b"\x00\x01\xff", 0), "name: a string that is not UTF-8 at byte 0");
    assert_eq!(
        text(b"\xff\xff\x7f\xff\xff\xff", 1),
        "numbers: an array of 2147483647 elements at byte 2, with 0 bytes left"
    );
    assert_eq!(text(b"\xff\xff\xff\xff\xff\xfe", 1), "numbers: length -2 at byte 2");
    assert_eq!(
        text(b"\x00\x01\x01\x07\x05\0\0\0\x02\0", 2),
        "limit: 1 bytes left after the tagged field that ends at byte 9"
    );
    assert_eq!(text(b"\x00\x01\x01\x07\x03\0\0\0", 2), "limit: 4 bytes wanted at byte 5, 3 left");
    assert_eq!(text(b"\x00\x01\x91\x4e", 2), "an array of 10001 elements at byte 2, with 0 bytes left");
    assert_eq!(decoded(b"", 4).unwrap_err().cause, DecodeError::UnknownVersion(4));
}

#[test]
fn a_nullable_structure_has_a_marker() {
    let inner = Struct {
        name: "Inner".into(),
        fields: vec![field("flag", Kind::Primitive(Primitive::Bool), Preset::Bool(false))],
    };
    let outer = Struct {
        name: "Outer".into(),
        fields: vec![Field { nullable: from(0), ..field("inner", Kind::Struct(0), Preset::Null) }],
    };
    let schema = Schema::compile(vec![inner, outer], from(0), Versions::NONE).unwrap();
    let host = Tree(&schema);
    for (value, bytes) in [
        (Value::Struct(vec![Value::Null]), &b"\xff"[..]),
        (Value::Struct(vec![Value::Struct(vec![Value::Bool(true)])]), b"\x01\x01"),
    ] {
        let mut out = Vec::new();
        encode(&schema, &host, &value, 0, &mut out).unwrap();
        assert_eq!(out, bytes);
        assert_eq!(decode(&schema, &host, bytes, 0, 0), Ok((value, bytes.len())));
    }
    let marker = decode(&schema, &host, b"\x02", 0, 0).unwrap_err();
    assert_eq!(marker.to_string(), "inner: presence marker 2 at byte 0");
}

#[test]
fn the_marker_of_a_tagged_structure_is_a_varint() {
    let inner = Struct {
        name: "Inner".into(),
        fields: vec![field("flag", Kind::Primitive(Primitive::Bool), Preset::Bool(false))],
    };
    let outer = Struct {
        name: "Outer".into(),
        fields: vec![Field {
            nullable: from(0),
            tagged: from(0),
            tag: 3,
            ..field("inner", Kind::Struct(0), Preset::Struct)
        }],
    };
    let schema = Schema::compile(vec![inner, outer], from(0), from(0)).unwrap();
    let host = Tree(&schema);
    for (value, bytes) in [
        (Value::Struct(vec![Value::Null]), &b"\x01\x03\x01\0"[..]),
        (Value::Struct(vec![Value::Struct(vec![Value::Bool(true)])]), b"\x01\x03\x03\x01\x01\0"),
        (Value::Struct(vec![Value::Struct(vec![Value::Bool(false)])]), b"\0"),
    ] {
        let mut out = Vec::new();
        encode(&schema, &host, &value, 0, &mut out).unwrap();
        assert_eq!(out, bytes);
        assert_eq!(decode(&schema, &host, bytes, 0, 0), Ok((value, bytes.len())));
    }
    let marker = decode(&schema, &host, b"\x01\x03\x01\xff", 0, 0).unwrap_err();
    assert_eq!(marker.to_string(), "inner: presence marker -1 at byte 3");
}

#[test]
fn a_schema_that_makes_no_sense_is_refused() {
    let one = |field: Field| vec![Struct { name: "S".into(), fields: vec![field] }];
    let compile = |structs| Schema::compile(structs, from(0), from(0)).map(|_| ()).unwrap_err();
    assert_eq!(compile(Vec::new()), SchemaError::Empty);
    let error = compile(one(field("f", Kind::Struct(0), Preset::Struct)));
    assert!(matches!(error, SchemaError::ForwardReference { index: 0, .. }));
    let error = compile(one(field("f", Kind::Primitive(Primitive::Int8), Preset::Int(128))));
    assert!(matches!(error, SchemaError::BadPreset { .. }));
    let tagged = |name| Field { tagged: from(0), ..field(name, Kind::Primitive(Primitive::Int8), Preset::Int(0)) };
    let error = compile(vec![Struct { name: "S".into(), fields: vec![tagged("a"), tagged("b")] }]);
    assert!(matches!(error, SchemaError::DuplicateTag { tag: 0, version: 0, .. }));
}

/// One field of a random structure: its type, whether it is an array, whether it is nullable, whether it is tagged.
type Choice = (usize, bool, bool, bool);

const PRIMITIVES: [(Primitive, fn() -> Preset); 12] = [
    (Primitive::Bool, || Preset::Bool(true)),
    (Primitive::Int8, || Preset::Int(-3)),
    (Primitive::Int16, || Preset::Int(0)),
    (Primitive::Int32, || Preset::Int(-1)),
    (Primitive::Int64, || Preset::Int(i64::MIN)),
    (Primitive::Uint16, || Preset::Int(7)),
    (Primitive::Uint32, || Preset::Int(0)),
    (Primitive::Float64, || Preset::Float(0.5)),
    (Primitive::String, || Preset::Text("preset".into())),
    (Primitive::Bytes, || Preset::Bytes(Vec::new())),
    (Primitive::Records, || Preset::Bytes(Vec::new())),
    (Primitive::Uuid, || Preset::Bytes(vec![0; 16])),
];

fn chosen(position: usize, (kind, array, nullable, tagged): Choice, inner: Option<usize>) -> Field {
    let nothing_to_null = |kind| !matches!(kind, Primitive::String | Primitive::Bytes | Primitive::Records);
    let (kind, preset) = match (PRIMITIVES.get(kind), inner) {
        (None, Some(inner)) => (Kind::Struct(inner), Preset::Struct),
        (found, _) => {
            let (kind, preset) = found.unwrap_or(&PRIMITIVES[3]);
            (Kind::Primitive(*kind), preset())
        }
    };
    let nullable = nullable && (array || !matches!(kind, Kind::Primitive(kind) if nothing_to_null(kind)));
    Field {
        array,
        nullable: if nullable { from(0) } else { Versions::NONE },
        tag: position as u32,
        tagged: if tagged { from(0) } else { Versions::NONE },
        ..field("field", kind, if array { Preset::EmptyList } else { preset })
    }
}

fn schemas() -> impl Strategy<Value = Schema> {
    let fields = || prop::collection::vec((0..13_usize, any::<bool>(), any::<bool>(), any::<bool>()), 1..6);
    prop::collection::vec(fields(), 1..4).prop_map(|structs| {
        let build = |(index, choices): (usize, Vec<Choice>)| Struct {
            name: format!("S{index}"),
            fields: choices
                .into_iter()
                .enumerate()
                .map(|(at, choice)| chosen(at, choice, index.checked_sub(1)))
                .collect(),
        };
        let structs = structs.into_iter().enumerate().map(build).collect();
        Schema::compile(structs, Versions { first: 0, last: 1 }, from(1)).expect("a sound schema")
    })
}

fn structures(schema: &Schema, index: usize) -> BoxedStrategy<Value> {
    let fields: Vec<_> = schema.structs()[index].fields.iter().map(|field| values(schema, field)).collect();
    fields.prop_map(Value::Struct).boxed()
}

fn values(schema: &Schema, field: &Field) -> BoxedStrategy<Value> {
    let one = match field.kind {
        Kind::Struct(index) => structures(schema, index),
        Kind::Primitive(Primitive::Bool) => any::<bool>().prop_map(Value::Bool).boxed(),
        Kind::Primitive(Primitive::Float64) => (-1e9..1e9).prop_map(Value::Float).boxed(),
        Kind::Primitive(Primitive::String) => ".{0,8}".prop_map(Value::Text).boxed(),
        Kind::Primitive(Primitive::Bytes | Primitive::Records) => {
            prop::collection::vec(any::<u8>(), 0..9).prop_map(Value::Bytes).boxed()
        }
        Kind::Primitive(Primitive::Uuid) => any::<[u8; 16]>().prop_map(Value::Uuid).boxed(),
        Kind::Primitive(kind) => {
            let range = kind.range().expect("a whole number");
            range.prop_map(Value::Int).boxed()
        }
    };
    let one = if field.array { prop::collection::vec(one, 0..4).prop_map(Value::List).boxed() } else { one };
    if field.nullable == Versions::NONE { one } else { prop_oneof![1 => Just(Value::Null), 3 => one].boxed() }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_again(
        (schema, value, version) in schemas().prop_flat_map(|schema| {
            let value = structures(&schema, schema.root());
            (Just(std::sync::Arc::new(schema)), value, 0..2_i16)
        })
    ) {
        let host = Tree(&schema);
        let mut bytes = b"before".to_vec();
        encode(&schema, &host, &value, version, &mut bytes).unwrap();
        let size = bytes.len() - 6;
        for end in 6..bytes.len() {
            prop_assert!(decode(&schema, &host, &bytes[..end], 6, version).is_err());
        }
        bytes.extend_from_slice(b"after");
        prop_assert_eq!(decode(&schema, &host, &bytes, 6, version), Ok((value, size)));
    }

    #[test]
    fn arbitrary_bytes_are_a_message_or_malformed(
        schema in schemas(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        version in 0..2_i16,
    ) {
        match decode(&schema, &Tree(&schema), &bytes, 0, version) {
            Ok((_, size)) => prop_assert!(size <= bytes.len()),
            Err(error) => prop_assert!(matches!(error.cause, DecodeError::Malformed(_))),
        }
    }
}

#[test]
fn more_elements_than_are_wanted_are_refused_before_they_are_built() {
    let schema = schema();
    let bytes = encoded(&message(None, &[1, 2, 3], 9, "x"), 3).unwrap();
    let decoded = |elements| decode_within(&schema, &Tree(&schema), &bytes, 0, 3, elements);
    // Three numbers and a tagged field.
    assert!(decoded(4).is_ok());
    assert_eq!(decoded(3).unwrap_err().cause, DecodeError::TooMany(3));
    let error = decoded(2).unwrap_err();
    assert_eq!(error.to_string(), "numbers: more than 2 elements and tagged fields in all");
}

#[test]
fn a_message_is_encoded_no_longer_than_is_wanted() {
    let schema = schema();
    let long = message(None, &[1, 2, 3], -1, "");
    let encoded = |limit| {
        let mut out = Vec::new();
        encode_within(&schema, &Tree(&schema), &long, 3, limit, &mut out).map(|()| out)
    };
    assert_eq!(encoded(4).unwrap_err().cause, EncodeError::OverLimit(4));
    assert!(encoded(100).is_ok());
}
