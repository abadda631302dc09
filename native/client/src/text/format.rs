//! The console consumer's output for a record.
//!
//! Owns the order and names of a record's parts (`DefaultMessageFormatter`), and the separators.

use std::io::Write;

use super::decoder::{Decoder, write_utf8};
use crate::fetcher::chunk::FetchedRecord;
use pybroker_record::{Headers, TimestampType};

/// The parts of a record to print.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "Kafka's names of the parts")]
pub struct Shown {
    pub timestamp: bool,
    pub partition: bool,
    pub offset: bool,
    pub delivery: bool,
    pub epoch: bool,
    pub headers: bool,
    pub key: bool,
    pub value: bool,
}

/// The output style of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The selected parts, with separators between them.
    Text,
    /// All parts, as a JSON object on one line.
    Json,
    /// No output: records are counted.
    Nothing,
}

/// The output format of records.
#[derive(Debug, Clone)]
pub struct RecordFormat {
    pub style: Style,
    pub shown: Shown,
    /// Between two parts.
    pub key_separator: Vec<u8>,
    /// After the last part.
    pub line_separator: Vec<u8>,
    /// Between two headers.
    pub headers_separator: Vec<u8>,
    /// The text for null.
    pub null_literal: Vec<u8>,
    /// `None` leaves the bytes unchanged, here and below.
    pub key: Option<Decoder>,
    pub value: Option<Decoder>,
    /// For the headers' values.
    pub headers: Option<Decoder>,
    /// Whether to write a log line for each record (`LoggingMessageFormatter`).
    pub logs: bool,
}

impl RecordFormat {
    /// Append the selected parts.
    ///
    /// # Errors
    /// A decoder's error about a part.
    pub fn write_text(&self, partition: i32, fetched: &FetchedRecord<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        let (shown, record) = (&self.shown, &fetched.record);
        let mut left = shown.count();
        let mut end = |out: &mut Vec<u8>| {
            left -= 1;
            out.extend_from_slice(if left > 0 { &self.key_separator } else { &self.line_separator });
        };
        if shown.timestamp {
            write_timestamp(fetched, out);
            end(out);
        }
        if shown.partition {
            put(out, format_args!("Partition:{partition}"));
            end(out);
        }
        if shown.offset {
            put(out, format_args!("Offset:{}", fetched.offset));
            end(out);
        }
        if shown.delivery {
            // Only a share group counts deliveries.
            out.extend_from_slice(b"Delivery:NOT_PRESENT");
            end(out);
        }
        if shown.epoch {
            match fetched.leader_epoch.0 {
                ..0 => out.extend_from_slice(b"Epoch:NOT_PRESENT"),
                epoch => put(out, format_args!("Epoch:{epoch}")),
            }
            end(out);
        }
        if shown.headers {
            self.write_headers(Headers::new(record), out)?;
            end(out);
        }
        if shown.key {
            self.write_part(self.key, record.key, out)?;
            end(out);
        }
        if shown.value {
            self.write_part(self.value, record.value, out)?;
            end(out);
        }
        Ok(())
    }

    fn write_headers(&self, headers: Headers<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        let mut first = true;
        for (key, value) in headers.map_while(Result::ok) {
            if !std::mem::take(&mut first) {
                out.extend_from_slice(&self.headers_separator);
            }
            write_utf8(key, out);
            out.push(b':');
            self.write_part(self.headers, value, out)?;
        }
        if first {
            out.extend_from_slice(b"NO_HEADERS");
        }
        Ok(())
    }

    #[inline(always)]
    fn write_part(&self, decoder: Option<Decoder>, part: Option<&[u8]>, out: &mut Vec<u8>) -> Result<(), String> {
        match (part, decoder) {
            (None, _) => out.extend_from_slice(&self.null_literal),
            (Some(bytes), None) => out.extend_from_slice(bytes),
            (Some(bytes), Some(decoder)) => decoder.write(bytes, out)?,
        }
        Ok(())
    }
}

impl Shown {
    fn count(&self) -> usize {
        let Self { timestamp, partition, offset, delivery, epoch, headers, key, value } = *self;
        [timestamp, partition, offset, delivery, epoch, headers, key, value].into_iter().filter(|shown| *shown).count()
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory does not fail.
    let _ = out.write_fmt(text);
}

/// Kafka's name of a timestamp type.
pub(super) fn type_name(timestamp_type: TimestampType) -> &'static str {
    match timestamp_type {
        TimestampType::CreateTime => "CreateTime",
        TimestampType::LogAppendTime => "LogAppendTime",
    }
}

fn write_timestamp(fetched: &FetchedRecord<'_>, out: &mut Vec<u8>) {
    match fetched.timestamp_type {
        Some(whose) => put(out, format_args!("{}:{}", type_name(whose), fetched.timestamp_ms)),
        None => out.extend_from_slice(b"NO_TIMESTAMP"),
    }
}

/// Append a log line (`LoggingMessageFormatter`).
pub(super) fn write_log(fetched: &FetchedRecord<'_>, out: &mut Vec<u8>) {
    if fetched.timestamp_type.is_some() {
        write_timestamp(fetched, out);
        out.extend_from_slice(b", ");
    }
    out.extend_from_slice(b"key:");
    match fetched.record.key {
        Some(key) => {
            write_utf8(key, out);
            out.extend_from_slice(b", ");
        }
        None => out.extend_from_slice(b"null "),
    }
    out.extend_from_slice(b"value:");
    match fetched.record.value {
        Some(value) => write_utf8(value, out),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'\n');
}
