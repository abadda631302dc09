//! The columnar interface of the client: fetched batches become Arrow arrays, and Arrow arrays become records to send.
//!
//! Owns the names, types and order of the columns. The order is that of Spark's Kafka connector. Knows neither Python nor
//! the C interface. For a fetch, [`ColumnReader`] takes a chunk of the [`fetcher`](super::fetcher), [`pieces`] splits it
//! into parts of limited size, and [`builder`] copies the selected columns once. For a produce, [`sent`] checks the columns
//! and returns their rows as records, [`routes`] sorts the rows by partition for the accumulator, and [`parts`] reads texts
//! and byte strings.

mod builder;
mod json;
#[cfg(test)]
mod json_tests;
#[cfg(test)]
mod kafka_tests;
mod parts;
mod pieces;
mod reader;
mod routes;
mod sent;
#[cfg(test)]
mod tests;

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::StructArray;
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use super::error::ClientError;

pub use json::{JsonError, JsonType, decode_json, encode_json};
pub use reader::ColumnReader;
pub use routes::SentRows;
pub use sent::SentColumns;

/// A column that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The record's key.
    Key,
    /// The record's value.
    Value,
    /// The topic's name.
    Topic,
    Partition,
    /// The record's offset.
    Offset,
    /// The record's time, in microseconds of UTC.
    Timestamp,
    /// 0: the time is the producer's; 1: the broker's; -1: there is none (format v0).
    TimestampType,
    /// Keys and values of the record's headers; null without headers.
    Headers,
    /// The producer id of the record's batch; -1 without one.
    ProducerId,
}

impl Column {
    const ALL: [Self; 9] = [
        Self::Key,
        Self::Value,
        Self::Topic,
        Self::Partition,
        Self::Offset,
        Self::Timestamp,
        Self::TimestampType,
        Self::Headers,
        Self::ProducerId,
    ];

    /// The name in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
            Self::Topic => "topic",
            Self::Partition => "partition",
            Self::Offset => "offset",
            Self::Timestamp => "timestamp",
            Self::TimestampType => "timestamp_type",
            Self::Headers => "headers",
            Self::ProducerId => "producer_id",
        }
    }

    /// Name and type; every column is nullable, as in Spark.
    fn field(self) -> Field {
        let data_type = match self {
            Self::Key | Self::Value => DataType::Binary,
            Self::Topic => DataType::Utf8,
            Self::Partition | Self::TimestampType => DataType::Int32,
            Self::Offset | Self::ProducerId => DataType::Int64,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::Headers => DataType::List(header_field()),
        };
        Field::new(self.name(), data_type, true)
    }
}

impl FromStr for Column {
    type Err = ClientError;

    fn from_str(name: &str) -> Result<Self, ClientError> {
        let snake_case = snake_case(name);
        Self::ALL.into_iter().find(|column| column.name() == snake_case).ok_or_else(|| ClientError::BadSetting {
            setting: "columns",
            value: name.to_owned(),
            detail: "must be key, value, topic, partition, offset, timestamp, timestamp_type, headers or producer_id",
        })
    }
}

/// The client's name of a column; Spark's Kafka connector has `timestampType`.
fn snake_case(name: &str) -> &str {
    match name {
        "timestampType" => "timestamp_type",
        "producerId" => "producer_id",
        _ => name,
    }
}

fn header_fields() -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)])
}

fn header_field() -> Arc<Field> {
    Arc::new(Field::new("element", DataType::Struct(header_fields()), true))
}

/// The selection of columns and the limits of the next records.
#[derive(Debug, Clone, Copy)]
pub struct Pick<'a> {
    /// The columns, in this order.
    pub columns: &'a [Column],
    /// The offset at which to stop; records from it on are left for later.
    pub end: Option<i64>,
    /// The most rows.
    pub max_rows: usize,
    /// No further row once the rows' encoded records reach so many bytes; a single record may be larger.
    pub max_bytes: usize,
}

/// Records of one partition as columns.
#[derive(Debug)]
pub struct RecordColumns {
    pub topic: Arc<str>,
    /// The partition.
    pub index: i32,
    /// Bytes of the keys and values, selected or not.
    pub bytes: u64,
    /// The offset at which reading continues.
    pub next_offset: i64,
    /// The selected columns.
    pub array: StructArray,
}
