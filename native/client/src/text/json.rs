//! A record as one JSON object; the schema is in docs/guides/console.md.

use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::decoder::Decoder;
use super::format::{RecordFormat, type_name};
use crate::fetcher::chunk::FetchedRecord;
use pybroker_record::Headers;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Append the object and a line end.
///
/// # Errors
/// The decoder's error about a part; no part of the line is written then.
pub fn write(
    format: &RecordFormat,
    topic: &str,
    partition: i32,
    fetched: &FetchedRecord<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let before = out.len();
    let written = write_object(format, topic, partition, fetched, out);
    if written.is_err() {
        out.truncate(before);
    }
    written
}

fn write_object(
    format: &RecordFormat,
    topic: &str,
    partition: i32,
    fetched: &FetchedRecord<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    out.extend_from_slice(b"{\"topic\":");
    write_string(topic, out);
    let (offset, time, whose) = (fetched.offset, fetched.timestamp_ms, fetched.timestamp_type);
    put(out, format_args!(",\"partition\":{partition},\"offset\":{offset},\"timestamp\":"));
    match whose {
        Some(whose) => put(out, format_args!("{time},\"timestampType\":\"{}\"", type_name(whose))),
        None => out.extend_from_slice(b"null,\"timestampType\":null"),
    }
    out.extend_from_slice(b",\"leaderEpoch\":");
    match fetched.leader_epoch.0 {
        ..0 => out.extend_from_slice(b"null"),
        epoch => put(out, format_args!("{epoch}")),
    }
    out.extend_from_slice(b",\"headers\":[");
    for (number, (key, value)) in Headers::new(&fetched.record).map_while(Result::ok).enumerate() {
        out.extend_from_slice(if number == 0 { b"{\"key\":" } else { b",{\"key\":" });
        write_string(&String::from_utf8_lossy(key), out);
        out.extend_from_slice(b",\"value\":");
        write_part(format.headers, value, out)?;
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"key\":");
    write_part(format.key, fetched.record.key, out)?;
    out.extend_from_slice(b",\"value\":");
    write_part(format.value, fetched.record.value, out)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn write_part(decoder: Option<Decoder>, part: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), String> {
    let (bytes, decoder) = match (part, decoder) {
        (None, _) => {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        (Some(bytes), None | Some(Decoder::ByteArray)) => {
            match std::str::from_utf8(bytes) {
                Ok(text) => write_string(text, out),
                Err(_) => put(out, format_args!("{{\"base64\":\"{}\"}}", BASE64_STANDARD.encode(bytes))),
            }
            return Ok(());
        }
        (Some(bytes), Some(decoder)) => (bytes, decoder),
    };
    let mut text = Vec::new();
    decoder.write(bytes, &mut text)?;
    let text = String::from_utf8_lossy(&text);
    if decoder.is_bare_in_json() && !text.ends_with(['N', 'y']) {
        out.extend_from_slice(text.as_bytes());
    } else {
        write_string(&text, out);
    }
    Ok(())
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

/// A JSON string; runs without anything to escape are copied whole.
fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let (bytes, mut copied) = (text.as_bytes(), 0);
    for (at, byte) in bytes.iter().enumerate() {
        if *byte >= b' ' && *byte != b'"' && *byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => {
                out.extend_from_slice(b"\\u00");
                out.extend([HEX[usize::from(other >> 4)], HEX[usize::from(other & 15)]]);
            }
        }
    }
    out.extend_from_slice(&bytes[copied..]);
    out.push(b'"');
}
