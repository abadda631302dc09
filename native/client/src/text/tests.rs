//! Bytes to text, and text to records.

use super::decoder::Decoder;
use super::lines::{LineFormat, Lines, LinesSplitter};

fn shown(decoder: Decoder, bytes: &[u8]) -> Result<String, String> {
    let mut out = Vec::new();
    decoder.write(bytes, &mut out).map(|()| String::from_utf8(out).expect("text"))
}

#[test]
fn numbers_are_written_as_java_does() {
    for (number, text) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (1234.5, "1234.5"),
        (0.001, "0.001"),
        (0.01234, "0.01234"),
        (0.0009, "9.0E-4"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1.25e300, "-1.25E300"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        assert_eq!(shown(Decoder::Double, &number.to_be_bytes()).as_deref(), Ok(text));
    }
    assert_eq!(shown(Decoder::Float, &0.1f32.to_be_bytes()).as_deref(), Ok("0.1"));
    assert_eq!(shown(Decoder::Integer, &(-7i32).to_be_bytes()).as_deref(), Ok("-7"));
    assert_eq!(shown(Decoder::Long, &[0; 4]), Err("Size of data received by LongDeserializer is not 8".to_owned()));
}

#[test]
fn bytes_become_text_as_in_java() {
    assert_eq!(shown(Decoder::String, b"a\xed\xa0\x80b\xff").as_deref(), Ok("a\u{fffd}b\u{fffd}"));
    assert_eq!(shown(Decoder::Bytes, b"a\\\x00\xff~").as_deref(), Ok("a\\x5C\\x00\\xFF~"));
    let uuid = "00000001-0002-0003-0004-000000000005";
    assert_eq!(shown(Decoder::Uuid, b"1-2-3-4-5").as_deref(), Ok(uuid));
    assert!(shown(Decoder::Uuid, b"1-2-3-4").is_err());
    assert_eq!(shown(Decoder::Boolean, &[1]).as_deref(), Ok("true"));
}

fn plain() -> LineFormat {
    LineFormat {
        parse_key: false,
        parse_headers: false,
        key_separator: b"\t".to_vec(),
        headers_delimiter: b"\t".to_vec(),
        headers_separator: b",".to_vec(),
        headers_key_separator: b":".to_vec(),
        null_marker: None,
        ignore_error: false,
    }
}

fn read(blocks: &[&[u8]]) -> Vec<String> {
    let mut splitter = LinesSplitter::default();
    let mut lines = Vec::new();
    let blocks = blocks.iter().map(|block| (*block, false)).chain([(&b""[..], true)]);
    for (block, is_end) in blocks {
        let whole = splitter.split(block, is_end);
        let found = splitter.parse(&whole, &plain());
        let values = found.lines.iter().map(|line| line.value.clone().expect("a value"));
        lines.extend(values.map(|value| String::from_utf8_lossy(&whole[value]).into_owned()));
    }
    lines
}

#[test]
fn a_line_ends_as_java_reads_it_wherever_blocks_are_cut() {
    let text = b"one\ntwo\r\n\nthree\rfour\n\r\nlast";
    let expected = ["one", "two", "", "three", "four", "", "last"];
    for cut in 0..=text.len() {
        assert_eq!(read(&[&text[..cut], &text[cut..]]), expected, "cut at {cut}");
    }
    assert_eq!(read(&text.chunks(1).collect::<Vec<_>>()), expected);
    assert_eq!(read(&[b"ends\n"]), ["ends"]);
    assert_eq!(read(&[]), Vec::<String>::new());
}

fn parse(text: &'static [u8], format: &LineFormat) -> Lines {
    let mut splitter = LinesSplitter::default();
    let whole = splitter.split(text, true);
    assert_eq!(whole, text);
    splitter.parse(&whole, format)
}

#[test]
fn headers_key_and_value_are_parted() {
    let format = LineFormat { parse_key: true, parse_headers: true, null_marker: Some(b"NULL".to_vec()), ..plain() };
    let text = b"a:1,b:NULL,\tkey\tvalue\nNULL\tNULL\tNULL";
    let found = parse(text, &format);
    assert_eq!(found.failure, None);
    let (first, second) = (&found.lines[0], &found.lines[1]);
    assert_eq!((first.key.clone(), first.value.clone()), (Some(12..15), Some(16..21)));
    assert_eq!(found.headers, [(0..1, Some(2..3)), (4..5, None)]);
    assert_eq!((second.key.clone(), second.value.clone(), second.headers.len()), (None, None, 0));
}

#[test]
fn a_line_without_its_separator_ends_reading_unless_that_is_ignored() {
    let format = LineFormat { parse_key: true, ..plain() };
    let found = parse(b"k\tv\nplain", &format);
    assert_eq!(found.lines.len(), 1);
    let failure = found.failure.expect("a line without key");
    assert_eq!(failure.detail, "No key separator found on line number 2: 'plain'");
    let found = parse(b"plain", &LineFormat { ignore_error: true, ..format });
    assert_eq!((found.lines[0].key.clone(), found.lines[0].value.clone()), (None, Some(0..5)));
}
