//! Bounds checks of the reader, and round trips of writer and reader.

use proptest::prelude::*;

use super::*;

#[test]
fn what_is_written_is_read_again_in_both_encodings() {
    for flexible in [false, true] {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, flexible);
        writer.string("topic");
        writer.nullable_string(None);
        writer.array_len(3);
        writer.array_null();
        writer.bytes(&[1, 2, 3]);
        writer.tags_none();
        let mut reader = Reader::new(&bytes, 0, flexible);
        assert_eq!(reader.string(), Ok("topic"));
        assert_eq!(reader.nullable_string(), Ok(None));
        assert_eq!(reader.array_len(), Ok(3));
        assert_eq!(reader.nullable_array_len(), Ok(None));
        assert_eq!(reader.nullable_bytes(), Ok(Some(&[1, 2, 3][..])));
        assert_eq!(reader.tags(), Ok(()));
        assert_eq!(reader.left(), 0);
    }
}

#[test]
fn no_length_is_believed_beyond_what_is_left() {
    let huge = i32::MAX.to_be_bytes();
    let array = Reader::new(&huge, 0, false).array_len();
    assert_eq!(array, Err(Malformed::Array { at: 0, count: i32::MAX as usize, left: 0 }));
    let bytes = Reader::new(&huge, 0, false).nullable_bytes_range();
    assert_eq!(bytes, Err(Malformed::Truncated { at: 4, wanted: i32::MAX as usize, left: 0 }));
    let negative = Reader::new(&(-2_i32).to_be_bytes(), 0, false).array_len();
    assert_eq!(negative, Err(Malformed::Length { at: 0, length: -2 }));
    assert_eq!(Reader::new(&[0xff; 6], 0, true).uvarint(), Err(Malformed::Varint { at: 0 }));
}

#[test]
fn a_nullable_structure_is_there_or_not() {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, true);
    writer.presence(true, false);
    writer.presence(false, false);
    writer.i8(0);
    let mut reader = Reader::new(&bytes, 0, true);
    assert_eq!(reader.presence(false), Ok(true));
    assert_eq!(reader.presence(false), Ok(false));
    assert_eq!(reader.presence(false), Err(Malformed::Marker { at: 2, marker: 0 }));
}

#[test]
fn a_tagged_field_ends_where_it_says() {
    let bytes = [2, 5, 1, 9, 7, 3, 1, 2, 3];
    let mut reader = Reader::new(&bytes, 0, true);
    assert_eq!(reader.tag_count(), Ok(2));
    let (tag, mut value) = reader.tagged_field().expect("a field");
    assert_eq!((tag, value.position(), value.left()), (5, 3, 1));
    assert_eq!(value.i16(), Err(Malformed::Truncated { at: 3, wanted: 2, left: 1 }));
    assert_eq!(reader.tagged_field().map(|(tag, value)| (tag, value.left())), Ok((7, 3)));
    assert_eq!(reader.left(), 0);
    let mut seen = Vec::new();
    Reader::new(&bytes, 0, true)
        .each_tag(|tag, value| {
            seen.push((tag, value.take(value.left())?.to_vec()));
            Ok(())
        })
        .expect("a section");
    assert_eq!(seen, [(5, vec![9]), (7, vec![1, 2, 3])]);
}

#[test]
fn more_tagged_fields_than_any_message_has_are_refused() {
    let section = |count: u32| {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, true).uvarint(count);
        bytes.resize(bytes.len() + count as usize * 2, 0);
        bytes
    };
    assert_eq!(Reader::new(&section(10_000), 0, true).tags(), Ok(()));
    let refused = Err(Malformed::Array { at: 0, count: 10_001, left: 20_002 });
    assert_eq!(Reader::new(&section(10_001), 0, true).tags(), refused);
}

#[test]
fn strings_are_short_and_utf_8() {
    let mut long = Vec::new();
    Writer::new(&mut long, true).string(&"x".repeat(MAX_STRING + 1));
    let refused = Err(Malformed::Length { at: 0, length: 32_768 });
    assert_eq!(Reader::new(&long, 0, true).string(), refused);
    assert_eq!(Reader::new(b"\x02\xff", 0, true).string(), Err(Malformed::NotUtf8 { at: 0 }));
    assert_eq!(Reader::new(b"\x00", 0, true).string(), Err(Malformed::Null { at: 0 }));
}

/// The type with which a value is written and read.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Int(i64),
    Varint(u32),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Uuid([u8; 16]),
    Bool(bool),
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![
        any::<i64>().prop_map(Part::Int),
        any::<u32>().prop_map(Part::Varint),
        prop::option::of(".{0,9}").prop_map(Part::Text),
        prop::option::of(prop::collection::vec(any::<u8>(), 0..9)).prop_map(Part::Bytes),
        any::<[u8; 16]>().prop_map(Part::Uuid),
        any::<bool>().prop_map(Part::Bool),
    ];
    prop::collection::vec(part, 0..12)
}

fn put(writer: &mut Writer<'_>, part: &Part) {
    match part {
        Part::Int(value) => writer.i64(*value),
        Part::Varint(value) => writer.uvarint(*value),
        Part::Text(value) => writer.nullable_string(value.as_deref()),
        Part::Bytes(Some(value)) => writer.bytes(value),
        Part::Bytes(None) => writer.bytes_null(),
        Part::Uuid(value) => writer.uuid(value),
        Part::Bool(value) => writer.bool(*value),
    }
}

fn take(reader: &mut Reader<'_>, like: &Part) -> Result<Part, Malformed> {
    Ok(match like {
        Part::Int(_) => Part::Int(reader.i64()?),
        Part::Varint(_) => Part::Varint(reader.uvarint()?),
        Part::Text(_) => Part::Text(reader.nullable_string()?.map(str::to_owned)),
        Part::Bytes(_) => Part::Bytes(reader.nullable_bytes()?.map(<[u8]>::to_vec)),
        Part::Uuid(_) => Part::Uuid(reader.uuid()?),
        Part::Bool(_) => Part::Bool(reader.bool()?),
    })
}

proptest! {
    #[test]
    fn any_values_are_read_as_they_were_written(parts in parts(), flexible in any::<bool>()) {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes, flexible);
        parts.iter().for_each(|part| put(&mut writer, part));
        let mut reader = Reader::new(&bytes, 0, flexible);
        for part in &parts {
            let taken = take(&mut reader, part);
            prop_assert_eq!(taken.as_ref(), Ok(part));
        }
        prop_assert_eq!(reader.left(), 0);
    }

    #[test]
    fn no_bytes_lead_past_the_end(
        like in parts(),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        flexible in any::<bool>(),
    ) {
        let mut reader = Reader::new(&bytes, 0, flexible);
        for part in &like {
            let before = reader.position();
            if take(&mut reader, part).is_err() {
                break;
            }
            prop_assert!(before < reader.position() && reader.position() <= bytes.len());
        }
    }
}
