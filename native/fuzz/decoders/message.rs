//! Messages that the table-driven codec reads: one schema with all that a schema can say.

use std::sync::OnceLock;

use pybroker_wire::codec::{decode as decode_message, encode};
use pybroker_wire::schema::{Field, Kind, Preset, Primitive, Schema, Struct, Versions};
use pybroker_wire::tree::Tree;

const LAST: i16 = 3;

/// Decodes all but the first byte as a message of the version that the first one names. What is decoded is encoded
/// again, and these bytes mean the same.
pub fn decode(bytes: &[u8]) {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    let schema = SCHEMA.get_or_init(schema);
    let Some((version, message)) = bytes.split_first() else { return };
    let version = i16::from(*version) % (LAST + 1);
    let Ok((value, end)) = decode_message(schema, &Tree(schema), message, 0, version) else { return };
    assert!(end <= message.len());
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    encode(schema, &Tree(schema), &value, version, &mut once).expect("what was decoded can be encoded");
    let (again, end) = decode_message(schema, &Tree(schema), &once, 0, version).expect("our own bytes");
    assert_eq!(end, once.len());
    encode(schema, &Tree(schema), &again, version, &mut twice).expect("what was decoded can be encoded");
    assert_eq!(once, twice);
}

fn from(first: i16) -> Versions {
    Versions { first, last: i16::MAX }
}

fn field(kind: Kind, preset: Preset) -> Field {
    Field {
        name: "field".into(),
        kind,
        array: preset == Preset::EmptyList,
        versions: from(0),
        nullable: Versions::NONE,
        tag: 0,
        tagged: Versions::NONE,
        preset,
        ignorable: false,
        flexible: true,
    }
}

/// Versions 0 to 3, flexible from 2: every primitive, arrays, nullable and tagged fields, a struct and its array.
fn schema() -> Schema {
    use Primitive::{Bool, Bytes, Float64, Int8, Int16, Int32, Int64, Records, String, Uint16, Uint32, Uuid};
    let text = || Preset::Text(std::string::String::new());
    let primitive = |primitive, preset| field(Kind::Primitive(primitive), preset);
    let mut fields: Vec<Field> = [Int8, Int16, Int32, Int64, Uint16, Uint32]
        .into_iter()
        .map(|number| primitive(number, Preset::Int(0)))
        .collect();
    fields.extend([
        primitive(Bool, Preset::Bool(false)),
        primitive(Float64, Preset::Float(0.0)),
        primitive(Uuid, Preset::Bytes(vec![0; 16])),
        Field { nullable: from(1), ..primitive(String, text()) },
        Field { nullable: from(0), ..primitive(Records, Preset::Null) },
        primitive(Int32, Preset::EmptyList),
        Field { tag: 3, tagged: from(2), versions: from(2), ..primitive(Bytes, Preset::Bytes(Vec::new())) },
    ]);
    let inner = Struct { name: "Inner".into(), fields };
    let outer = Struct {
        name: "Outer".into(),
        fields: vec![
            field(Kind::Struct(0), Preset::Struct),
            Field { nullable: from(2), ..field(Kind::Struct(0), Preset::EmptyList) },
            Field { tag: 0, tagged: from(2), versions: from(2), ..primitive(String, Preset::EmptyList) },
        ],
    };
    Schema::compile(vec![inner, outer], Versions { first: 0, last: LAST }, from(2)).expect("a sound schema")
}
