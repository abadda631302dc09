//! Builders of the selected columns, row by row.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, Int32Array, Int64Array, ListArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{Field, Fields};

use super::{Column, header_field, header_fields};

/// A record to append.
#[derive(Debug, Clone, Copy)]
pub struct NewRow<'a, H> {
    pub offset: i64,
    pub timestamp_ms: i64,
    pub timestamp_type: i32,
    pub producer_id: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: H,
}

/// Adjacent byte strings.
#[derive(Debug)]
struct BytesColumn {
    offsets: Vec<i32>,
    data: Vec<u8>,
    nulls: NullBufferBuilder,
}

impl BytesColumn {
    fn new() -> Self {
        Self { offsets: vec![0], data: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }

    fn reserve(&mut self, rows: usize) {
        self.offsets.reserve(rows);
    }

    /// The caller ensures that the bytes stay below 2 GiB.
    #[inline(always)]
    fn push(&mut self, part: Option<&[u8]>) {
        match part {
            Some(bytes) => {
                self.data.extend_from_slice(bytes);
                self.nulls.append_non_null();
            }
            None => self.nulls.append_null(),
        }
        self.offsets.push(self.data.len() as i32);
    }

    fn finish(mut self) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        (OffsetBuffer::new(self.offsets.into()), Buffer::from_vec(self.data), self.nulls.finish())
    }

    fn binary(self) -> ArrayRef {
        let (offsets, data, nulls) = self.finish();
        Arc::new(BinaryArray::new(offsets, data, nulls))
    }
}

/// Lists of headers. Rows without headers are null.
#[derive(Debug)]
struct HeadersColumn {
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    keys: BytesColumn,
    values: BytesColumn,
}

impl HeadersColumn {
    fn new() -> Self {
        let (keys, values) = (BytesColumn::new(), BytesColumn::new());
        Self { offsets: vec![0], nulls: NullBufferBuilder::new(0), keys, values }
    }

    fn push<'a>(&mut self, headers: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>) {
        let before = self.keys.offsets.len();
        for (key, value) in headers {
            self.keys.push(Some(String::from_utf8_lossy(key).as_bytes()));
            self.values.push(value);
        }
        self.nulls.append(self.keys.offsets.len() > before);
        self.offsets.push(self.keys.offsets.len() as i32 - 1);
    }

    fn finish(mut self) -> ArrayRef {
        let (offsets, data, nulls) = self.keys.finish();
        let keys: ArrayRef = Arc::new(StringArray::new(offsets, data, nulls));
        let headers = StructArray::new(header_fields(), vec![keys, self.values.binary()], None);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Arc::new(ListArray::new(header_field(), offsets, Arc::new(headers), self.nulls.finish()))
    }
}

/// Numbers that are mostly equal from row to row.
#[derive(Debug)]
struct Runs<T> {
    /// Each value with the row at which its run ends.
    runs: Vec<(T, usize)>,
}

impl<T: Copy + PartialEq> Runs<T> {
    #[inline(always)]
    fn push(&mut self, number: T, rows: usize) {
        match self.runs.last_mut() {
            Some((same, end)) if *same == number => *end = rows,
            _ => self.runs.push((number, rows)),
        }
    }

    fn finish(self) -> ScalarBuffer<T>
    where
        T: arrow_buffer::ArrowNativeType,
    {
        let mut numbers = Vec::with_capacity(self.runs.last().map_or(0, |(_, end)| *end));
        self.runs.into_iter().for_each(|(number, end)| numbers.resize(end, number));
        numbers.into()
    }
}

/// The selected columns of the rows so far.
#[derive(Debug)]
pub struct ColumnsBuilder<'p> {
    picked: &'p [Column],
    rows: usize,
    bytes: u64,
    keys: Option<BytesColumn>,
    values: Option<BytesColumn>,
    offsets: Option<Vec<i64>>,
    timestamps: Option<Vec<i64>>,
    timestamp_types: Option<Runs<i32>>,
    producer_ids: Option<Runs<i64>>,
    headers: Option<HeadersColumn>,
}

impl<'p> ColumnsBuilder<'p> {
    pub fn new(picked: &'p [Column]) -> Self {
        let has = |column| picked.contains(&column);
        Self {
            picked,
            rows: 0,
            bytes: 0,
            keys: has(Column::Key).then(BytesColumn::new),
            values: has(Column::Value).then(BytesColumn::new),
            offsets: has(Column::Offset).then(Vec::new),
            timestamps: has(Column::Timestamp).then(Vec::new),
            timestamp_types: has(Column::TimestampType).then(|| Runs { runs: Vec::new() }),
            producer_ids: has(Column::ProducerId).then(|| Runs { runs: Vec::new() }),
            headers: has(Column::Headers).then(HeadersColumn::new),
        }
    }

    /// Reserve space for so many rows and bytes of values.
    pub fn reserve(&mut self, rows: usize, bytes: usize) {
        if let Some(values) = &mut self.values {
            values.data.reserve(bytes);
        }
        [&mut self.keys, &mut self.values].into_iter().flatten().for_each(|column| column.reserve(rows));
        [&mut self.offsets, &mut self.timestamps].into_iter().flatten().for_each(|column| column.reserve(rows));
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the headers were selected.
    pub fn has_headers(&self) -> bool {
        self.headers.is_some()
    }

    /// Bytes of keys and values so far, those of columns not selected included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Append a record. A time before the year -290,000 or after 290,000 is clamped to the range of microseconds.
    #[inline(always)]
    pub fn push<'a, H>(&mut self, row: NewRow<'a, H>)
    where
        H: Iterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    {
        self.rows += 1;
        self.bytes += (row.key.map_or(0, <[u8]>::len) + row.value.map_or(0, <[u8]>::len)) as u64;
        if let Some(keys) = &mut self.keys {
            keys.push(row.key);
        }
        if let Some(values) = &mut self.values {
            values.push(row.value);
        }
        if let Some(offsets) = &mut self.offsets {
            offsets.push(row.offset);
        }
        if let Some(timestamps) = &mut self.timestamps {
            timestamps.push(row.timestamp_ms.saturating_mul(1000));
        }
        if let Some(types) = &mut self.timestamp_types {
            types.push(row.timestamp_type, self.rows);
        }
        if let Some(ids) = &mut self.producer_ids {
            ids.push(row.producer_id, self.rows);
        }
        if let Some(headers) = &mut self.headers {
            headers.push(row.headers);
        }
    }

    /// The columns, in the order of the selection.
    pub fn finish(mut self, topic: &str, index: i32) -> StructArray {
        let fields: Fields = self.picked.iter().map(|column| column.field()).collect::<Vec<Field>>().into();
        let rows = self.rows;
        let arrays = self.picked.iter().map(|column| match column {
            Column::Key => self.keys.take().map(BytesColumn::binary),
            Column::Value => self.values.take().map(BytesColumn::binary),
            Column::Topic => Some(Arc::new(StringArray::new_repeated(topic, rows)) as ArrayRef),
            Column::Partition => Some(Arc::new(Int32Array::from_value(index, rows)) as ArrayRef),
            Column::Offset => self.offsets.take().map(|v| Arc::new(Int64Array::from(v)) as ArrayRef),
            Column::Timestamp => self
                .timestamps
                .take()
                .map(|v| Arc::new(TimestampMicrosecondArray::from(v).with_timezone("UTC")) as ArrayRef),
            Column::TimestampType => {
                self.timestamp_types.take().map(|v| Arc::new(Int32Array::new(v.finish(), None)) as ArrayRef)
            }
            Column::ProducerId => {
                self.producer_ids.take().map(|v| Arc::new(Int64Array::new(v.finish(), None)) as ArrayRef)
            }
            Column::Headers => self.headers.take().map(HeadersColumn::finish),
        });
        let arrays: Vec<ArrayRef> = arrays.flatten().collect();
        if arrays.is_empty() {
            return StructArray::new_empty_fields(rows, None);
        }
        StructArray::new(fields, arrays, None)
    }
}
