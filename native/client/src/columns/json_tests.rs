//! JSON as columns: exact types, nulls, and rows that are refused. The expected values are JSON texts and Rust numbers.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, Float64Array, Int32Array, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use proptest::prelude::*;

use super::json::{JsonType, decode_json, encode_json};

const COLUMNS: [(&str, JsonType); 4] =
    [("i", JsonType::Int), ("f", JsonType::Float), ("s", JsonType::Text), ("b", JsonType::Bool)];

fn columns() -> Vec<(String, JsonType)> {
    COLUMNS.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
}

fn decoded(rows: &[Option<&str>]) -> Result<StructArray, String> {
    let rows: BinaryArray = rows.iter().map(|row| row.map(str::as_bytes)).collect();
    decode_json(&rows, &columns()).map_err(|e| e.to_string())
}

fn encoded(array: &StructArray) -> Vec<Option<String>> {
    let found = encode_json(array).unwrap();
    found.iter().map(|row| row.map(|json| String::from_utf8(json.to_vec()).unwrap())).collect()
}

#[test]
fn fields_become_columns_and_fields_again() {
    let array = decoded(&[
        Some(r#" {"s": "t\u00e9\"", "i": -9223372036854775808, "f": 1, "b": true, "other": [{"x": null}]} "#),
        None,
        Some(r#"{"f": 0.1, "s": null}"#),
    ])
    .unwrap();
    assert_eq!(array.column(0).as_primitive::<Int64Type>().value(0), i64::MIN);
    assert!(array.is_null(1));
    assert_eq!(array.column(1).as_primitive::<Float64Type>().value(2), 0.1);
    assert!(array.column(2).is_null(2));
    let first = r#"{"i":-9223372036854775808,"f":1.0,"s":"té\"","b":true}"#;
    let last = r#"{"i":null,"f":0.1,"s":null,"b":null}"#;
    assert_eq!(encoded(&array), [Some(first.to_owned()), None, Some(last.to_owned())]);
}

#[test]
fn a_value_of_another_type_is_refused_with_its_row() {
    let invalid = [
        r#"{"i": 1.0}"#,
        r#"{"i": 9223372036854775808}"#,
        r#"{"i": true}"#,
        r#"{"i": "1"}"#,
        r#"{"f": "1"}"#,
        r#"{"f": -0}"#,
        r#"{"f": 1e400}"#,
        r#"{"s": 1}"#,
        r#"{"b": 0}"#,
        r#"{"b": []}"#,
        "null",
        "[]",
        "",
        "{} {}",
        r#"{"i": 1"#,
    ];
    for row in invalid {
        let error = decoded(&[Some("{}"), Some(row)]).expect_err(row);
        assert!(error.starts_with("row 1: "), "{row}: {error}");
    }
}

#[test]
fn bytes_that_are_not_text_are_refused() {
    let rows: BinaryArray = [Some(&b"{\"other\": \"\xff\"}"[..])].into_iter().collect();
    assert!(decode_json(&rows, &columns()).is_err());
}

#[test]
fn the_last_of_two_equal_fields_counts() {
    let array = decoded(&[Some(r#"{"i": 1, "i": 2}"#)]).unwrap();
    assert_eq!(array.column(0).as_primitive::<Int64Type>().value(0), 2);
}

#[test]
fn floats_that_json_cannot_express_are_null() {
    let values: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN, f64::NEG_INFINITY, 1e16, -0.0]));
    let fields = Fields::from(vec![Field::new("f", DataType::Float64, true)]);
    let found = encoded(&StructArray::new(fields, vec![values], None));
    let expected = [r#"{"f":null}"#, r#"{"f":null}"#, r#"{"f":1e16}"#, r#"{"f":-0.0}"#];
    assert_eq!(found, expected.map(|json| Some(json.to_owned())));
}

#[test]
fn a_column_of_another_type_is_refused() {
    let values: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let fields = Fields::from(vec![Field::new("x", DataType::Int32, true)]);
    let error = encode_json(&StructArray::new(fields, vec![values], None)).unwrap_err();
    assert_eq!(error.to_string(), "column x has the type Int32: expected int64, float64, string or bool");
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(json in proptest::collection::vec(any::<u8>(), 0..60)) {
        let rows: BinaryArray = [Some(&json[..])].into_iter().collect();
        drop(decode_json(&rows, &columns()));
    }

    #[test]
    fn texts_are_those_of_serde_json(text in any::<String>()) {
        let values: ArrayRef = Arc::new(StringArray::from(vec![text.as_str()]));
        let fields = Fields::from(vec![Field::new("s", DataType::Utf8, true)]);
        let found = encoded(&StructArray::new(fields, vec![values], None));
        let parsed: serde_json::Value = serde_json::from_str(found[0].as_ref().unwrap()).unwrap();
        prop_assert_eq!(parsed, serde_json::json!({ "s": text }));
    }
}
