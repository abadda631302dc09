//! Columns to send: their checks, and their rows as records.
//!
//! Every read of a buffer is checked: invalid offsets are an error of their row, never a read out of bounds.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, StructArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};

use super::parts::{Ends, Parts, is_text};
use super::{Column, snake_case};
use crate::error::ClientError;
use crate::producer::new_record::NewRecord;
use pybroker_record::RecordHeader;

const NAMES: &str = "value, key, topic, partition, headers or timestamp";
/// Columns of fetched records that are ignored.
const ASSIGNED: [Column; 3] = [Column::Offset, Column::TimestampType, Column::ProducerId];

/// Integers, and their unit.
#[derive(Debug)]
struct Numbers<T: arrow_buffer::ArrowNativeType> {
    numbers: ScalarBuffer<T>,
    nulls: Option<NullBuffer>,
}

impl<T: arrow_buffer::ArrowNativeType> Numbers<T> {
    #[inline(always)]
    fn get(&self, row: usize) -> Option<T> {
        let null = self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        (!null).then(|| self.numbers[row])
    }
}

#[derive(Debug)]
enum Partitions {
    Narrow(Numbers<i32>),
    Wide(Numbers<i64>),
}

impl Partitions {
    fn of(array: &ArrayRef) -> Option<Self> {
        let nulls = array.nulls().cloned();
        Some(match array.data_type() {
            DataType::Int32 => {
                Self::Narrow(Numbers { numbers: array.as_primitive::<Int32Type>().values().clone(), nulls })
            }
            DataType::Int64 => {
                Self::Wide(Numbers { numbers: array.as_primitive::<Int64Type>().values().clone(), nulls })
            }
            _ => return None,
        })
    }

    #[inline(always)]
    fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::Narrow(numbers) => numbers.get(row).map(i64::from),
            Self::Wide(numbers) => numbers.get(row),
        }
    }
}

#[derive(Debug)]
struct Timestamps {
    numbers: Numbers<i64>,
    /// The unit of the numbers.
    unit: TimeUnit,
}

impl Timestamps {
    fn of(array: &ArrayRef) -> Option<Self> {
        let DataType::Timestamp(unit, _) = array.data_type() else { return None };
        let numbers = match unit {
            TimeUnit::Second => array.as_primitive::<TimestampSecondType>().values().clone(),
            TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().values().clone(),
            TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().values().clone(),
            TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().values().clone(),
        };
        Some(Self { numbers: Numbers { numbers, nulls: array.nulls().cloned() }, unit: *unit })
    }

    #[inline(always)]
    fn get(&self, row: usize) -> Option<i64> {
        let number = self.numbers.get(row)?;
        Some(match self.unit {
            TimeUnit::Second => number.saturating_mul(1000),
            TimeUnit::Millisecond => number,
            TimeUnit::Microsecond => number.div_euclid(1000),
            TimeUnit::Nanosecond => number.div_euclid(1_000_000),
        })
    }
}

#[derive(Debug)]
struct HeaderLists {
    ends: Ends,
    nulls: Option<NullBuffer>,
    /// The number of all headers.
    entries: usize,
    /// The headers that are null themselves.
    holes: Option<NullBuffer>,
    keys: Parts,
    values: Parts,
}

impl HeaderLists {
    fn of(array: &ArrayRef) -> Option<Self> {
        let (ends, structs) = match array.data_type() {
            DataType::List(_) => (Ends::Narrow(array.as_list::<i32>().offsets().clone()), list_values::<i32>(array)),
            DataType::LargeList(_) => (Ends::Wide(array.as_list::<i64>().offsets().clone()), list_values::<i64>(array)),
            _ => return None,
        };
        let structs = structs.as_struct_opt()?;
        if structs.num_columns() != 2 {
            return None;
        }
        let keys = structs.column_by_name("key").filter(|keys| is_text(keys.data_type()));
        Some(Self {
            ends,
            nulls: array.nulls().cloned(),
            entries: structs.len(),
            holes: structs.nulls().cloned(),
            keys: Parts::of(keys?)?,
            values: Parts::of(structs.column_by_name("value")?)?,
        })
    }

    fn read<'a>(&'a self, row: usize, headers: &mut Vec<RecordHeader<'a>>) -> Result<(), String> {
        headers.clear();
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(());
        }
        for place in self.ends.range(row) {
            if place >= self.entries {
                return Err("the headers' offsets lead outside their entries".to_owned());
            }
            let whole = self.holes.as_ref().is_none_or(|holes| holes.is_valid(place));
            let key = if whole { self.keys.get(place)? } else { None };
            let key = key.ok_or_else(|| "a header without key: every header has to have one".to_owned())?;
            headers.push((key, self.values.get(place)?));
        }
        Ok(())
    }
}

fn list_values<O: OffsetSizeTrait>(array: &ArrayRef) -> &ArrayRef {
    array.as_list::<O>().values()
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The row's own topic.
    pub topic: Option<&'a [u8]>,
    /// The row's own partition.
    pub partition: Option<i64>,
    /// The time, ms.
    pub timestamp_ms: Option<i64>,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
}

/// The columns of records to send.
#[derive(Debug)]
pub struct SentColumns {
    rows: usize,
    values: Parts,
    keys: Option<Parts>,
    topics: Option<Parts>,
    partitions: Option<Partitions>,
    timestamps: Option<Timestamps>,
    headers: Option<HeaderLists>,
}

impl SentColumns {
    /// Find the columns by their names, and check their types.
    ///
    /// # Errors
    /// A column that is missing, unknown, or of a wrong type; rows that are null themselves.
    pub fn of(batch: &StructArray) -> Result<Self, ClientError> {
        let bad = |column: &str, found: String, wanted| {
            Err(ClientError::BadColumn { column: column.to_owned(), found, wanted })
        };
        if batch.null_count() > 0 {
            return bad("(the batch)", format!("has {} null rows", batch.null_count()), "rows with values");
        }
        let (mut values, mut keys, mut topics, mut partitions, mut timestamps, mut headers) =
            (None, None, None, None, None, None);
        for (field, array) in batch.fields().iter().zip(batch.columns()) {
            let name = field.name().as_str();
            let text = is_text(array.data_type());
            let (twice, wanted) = match name {
                "value" => (put(&mut values, Parts::of(array)), "binary or string"),
                "key" => (put(&mut keys, Parts::of(array)), "binary or string"),
                "topic" => (put(&mut topics, Parts::of(array).filter(|_| text)), "string"),
                "partition" => (put(&mut partitions, Partitions::of(array)), "int32 or int64"),
                "timestamp" => (put(&mut timestamps, Timestamps::of(array)), "timestamp[us]"),
                "headers" => (put(&mut headers, HeaderLists::of(array)), "list<struct<key: string, value: binary>>"),
                // The broker assigns them: a fetched batch can be sent without dropping columns.
                name if ASSIGNED.iter().any(|column| column.name() == snake_case(name)) => continue,
                _ => return bad(name, "is not known".to_owned(), NAMES),
            };
            match twice {
                Put::Done => {}
                Put::Unfit => return bad(name, format!("is {}", array.data_type()), wanted),
                Put::Twice => return bad(name, "is there twice".to_owned(), "one column of each name"),
            }
        }
        match values {
            Some(values) => Ok(Self { rows: batch.len(), values, keys, topics, partitions, timestamps, headers }),
            None => bad("value", "is missing".to_owned(), "binary or string"),
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values, if there is no other column.
    pub fn only_values(&self) -> Option<&Parts> {
        let Self { rows: _, values, keys, topics, partitions, timestamps, headers } = self;
        let alone = keys.is_none() && topics.is_none() && partitions.is_none();
        (alone && timestamps.is_none() && headers.is_none()).then_some(values)
    }

    /// One row without its headers; the error is the reason why it is invalid.
    #[inline(always)]
    pub fn row(&self, row: usize) -> Result<Row<'_>, String> {
        Ok(Row {
            topic: self.topics.as_ref().map_or(Ok(None), |parts| parts.get(row))?,
            partition: self.partitions.as_ref().and_then(|numbers| numbers.get(row)),
            timestamp_ms: self.timestamps.as_ref().and_then(|times| times.get(row)),
            key: self.keys.as_ref().map_or(Ok(None), |parts| parts.get(row))?,
            value: self.values.get(row)?,
        })
    }

    /// Read the headers of a row into `headers`.
    #[inline(always)]
    pub fn headers<'a>(&'a self, row: usize, headers: &mut Vec<RecordHeader<'a>>) -> Result<(), String> {
        self.headers.as_ref().map_or(Ok(()), |lists| lists.read(row, headers))
    }
}

impl<'a> Row<'a> {
    /// The row as a record; `now_ms` is the time of rows without one.
    #[inline(always)]
    pub fn record<'h>(&self, now_ms: i64, headers: &'h [RecordHeader<'h>]) -> NewRecord<'h>
    where
        'a: 'h,
    {
        let timestamp_ms = self.timestamp_ms.unwrap_or(now_ms);
        NewRecord { timestamp_ms, key: self.key, value: self.value, headers }
    }
}

enum Put {
    Done,
    Unfit,
    Twice,
}

fn put<T>(place: &mut Option<T>, column: Option<T>) -> Put {
    match (&place, column) {
        (Some(_), _) => Put::Twice,
        (None, None) => Put::Unfit,
        (None, column) => {
            *place = column;
            Put::Done
        }
    }
}
