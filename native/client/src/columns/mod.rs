//! The columnar face of the client: fetched batches become Arrow arrays, and Arrow arrays become records to send.
//!
//! Owns the columns' names, types and order. The order is that of Spark's Kafka connector. Knows neither Python nor the C
//! interface. On the way of a fetch it stands behind the [`fetcher`](super::fetcher): [`ColumnReader`] takes a chunk,
//! [`pieces`] gives it out in parts of bounded size, [`builder`] copies what was picked, once. On the way of a produce it
//! stands before the accumulator: [`sent`] checks the columns and shows them as records, [`routes`] sorts the rows
//! by partition; [`parts`] reads their texts and byte strings.

mod builder;
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
    /// Keys and values of the record's headers; null where it has none.
    Headers,
    /// The producer id of the record's batch; -1 where it has none.
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

    /// Its name, in snake case.
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

    /// Name and type; every column is nullable, as Spark declares them.
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

/// The name of a column as this client has it; Spark's Kafka connector has `timestampType`.
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

/// What is wanted of the next records.
#[derive(Debug, Clone, Copy)]
pub struct Pick<'a> {
    /// The columns, in this order.
    pub columns: &'a [Column],
    /// Records at or above this offset are left for later.
    pub end: Option<i64>,
    /// At most so many rows.
    pub max_rows: usize,
    /// No further row once the rows' encoded records come to so many bytes; a single one may be larger.
    pub max_bytes: usize,
}

/// Records of one partition as columns.
#[derive(Debug)]
pub struct RecordColumns {
    pub topic: Arc<str>,
    /// The partition.
    pub index: i32,
    /// Bytes of the keys and values, whether they were picked or not.
    pub bytes: u64,
    /// Where reading goes on.
    pub next_offset: i64,
    /// The picked columns.
    pub array: StructArray,
}
