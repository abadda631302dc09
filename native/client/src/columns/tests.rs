//! Columns equal records, in pieces of any size, and invalid foreign columns are rejected.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int32Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, BinaryArray, Float64Array, Int64Array, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields};
use proptest::prelude::*;

use super::pieces::Pieces;
use super::*;
use crate::Received;
use crate::fetcher::chunk::{Chunk, Extent, FetchedRecord, by_first_offset};
use crate::network::connection::Frame;
use pybroker_record::{
    BatchBuilder, Compression, EndMarker, Headers, MessageSetBuilder, NewMessage, ProducerId, RecordHeader,
    TimestampType, seal, set_base_offset, set_transactional,
};
use pybroker_wire::fetch::AbortedTransaction;

const EVERYTHING: [Column; 9] = Column::ALL;
pub(super) const MOST: Pick<'_> = Pick { columns: &EVERYTHING, end: None, max_rows: usize::MAX, max_bytes: usize::MAX };

pub(super) type Part = Option<Vec<u8>>;
type OwnedHeaders = Vec<(Vec<u8>, Part)>;

/// The content of a log.
#[derive(Debug, Clone)]
enum Stored {
    /// Timestamp, key, value, headers; codec; the producer of a transactional batch; the broker's time.
    Batch(Vec<(i64, Part, Part, OwnedHeaders)>, Compression, Option<i64>, bool),
    /// The end of a producer's transaction.
    Marker(i64, bool),
    /// Messages of format v0 or v1.
    Old(i8, Vec<(Part, Part)>, Compression),
    /// Offsets that compaction has removed.
    Gap(u8),
}

/// A row in any form.
pub(super) type Seen = (i64, i64, Part, Part, Option<Vec<(String, Part)>>);

pub(super) fn chunk(bytes: Vec<u8>, position: i64, aborted: Vec<AbortedTransaction>, read_committed: bool) -> Chunk {
    let Extent { len, next_offset, leader_epoch } = Extent::measure(&bytes).unwrap();
    Chunk {
        topic: "t".into(),
        index: 3,
        position,
        next_offset,
        leader_epoch,
        readable_end: next_offset,
        aborted: by_first_offset(aborted),
        check_crcs: true,
        read_committed,
        max_decompressed_bytes: 1 << 24,
        frame: Arc::new(Frame::of(bytes)),
        range: 0..len,
    }
}

fn batch(records: &[(i64, Part, Part, OwnedHeaders)], codec: Compression, producer: Option<i64>) -> Vec<u8> {
    let mut builder = BatchBuilder::new(codec, None, 1 << 20);
    for (timestamp, key, value, headers) in records {
        let headers: Vec<RecordHeader<'_>> = headers.iter().map(|(k, v)| (&k[..], v.as_deref())).collect();
        assert!(builder.try_append(*timestamp, key.as_deref(), value.as_deref(), &headers).is_some());
    }
    let mut out = Vec::new();
    builder.finish(producer.unwrap_or(-1), 0, 0, &mut out).unwrap();
    if producer.is_some() {
        set_transactional(&mut out);
    }
    out
}

/// The bytes of a log, and its aborted transactions in the order of their markers, as brokers list them.
fn log(stored: &[Stored]) -> (Vec<u8>, Vec<AbortedTransaction>) {
    let (mut bytes, mut aborted, mut next) = (Vec::new(), Vec::new(), 100_i64);
    let mut begun = std::collections::BTreeMap::new();
    for one in stored {
        match one {
            Stored::Gap(offsets) => next += i64::from(*offsets),
            Stored::Batch(records, codec, producer, log_append) => {
                let mut made = batch(records, *codec, *producer);
                if *log_append {
                    made[22] |= 8;
                    seal(&mut made);
                }
                set_base_offset(&mut made, next);
                producer.map(|producer| begun.entry(producer).or_insert(next));
                next += records.len() as i64;
                bytes.extend(made);
            }
            Stored::Marker(producer, commit) => {
                let marker = EndMarker { commit: *commit, coordinator_epoch: 0 };
                let mut made = marker.build(ProducerId(*producer), 0, 5).unwrap();
                set_base_offset(&mut made, next);
                if let Some(first_offset) = begun.remove(producer).filter(|_| !commit) {
                    aborted.push(AbortedTransaction { producer_id: *producer, first_offset });
                }
                next += 1;
                bytes.extend(made);
            }
            Stored::Old(magic, messages, codec) => {
                let mut set = MessageSetBuilder::new(*magic, *codec, TimestampType::CreateTime);
                for (key, value) in messages {
                    let (key, value) = (key.as_deref(), value.as_deref());
                    set.append(&NewMessage { offset: next, timestamp: next, key, value });
                    next += 1;
                }
                set.finish(&mut bytes).unwrap();
            }
        }
    }
    (bytes, aborted)
}

/// The offsets that a consumer may see from a position on. Computed from the content, in the order of the log: an abort
/// removes the records of its producer since the producer's last marker (KIP-98).
fn visible(stored: &[Stored], position: i64, read_committed: bool) -> Vec<i64> {
    let (mut visible, mut next) = (std::collections::BTreeSet::new(), 100_i64);
    let mut pending = std::collections::BTreeMap::<i64, Vec<i64>>::new();
    for one in stored {
        let records = match one {
            Stored::Gap(offsets) => {
                next += i64::from(*offsets);
                0
            }
            Stored::Batch(records, _, producer, _) => {
                if let Some(producer) = producer {
                    pending.entry(*producer).or_default().extend(next..next + records.len() as i64);
                }
                records.len()
            }
            Stored::Marker(producer, commit) => {
                let ended = pending.remove(producer).unwrap_or_default();
                if read_committed && !commit {
                    visible.retain(|offset| !ended.contains(offset));
                }
                next += 1;
                0
            }
            Stored::Old(_, messages, _) => messages.len(),
        };
        visible.extend(next..next + records as i64);
        next += records as i64;
    }
    visible.into_iter().filter(|offset| *offset >= position).collect()
}

pub(super) fn read_as_records(chunk: &Chunk) -> Vec<Seen> {
    let mut rows = Vec::new();
    chunk.for_each(&mut Vec::new(), |fetched| rows.push(seen(&fetched))).unwrap();
    rows
}

fn seen(fetched: &FetchedRecord<'_>) -> Seen {
    let record = &fetched.record;
    let headers = Headers::new(record).map(|header| header.unwrap());
    let headers = headers.map(|(k, v)| (String::from_utf8_lossy(k).into_owned(), v.map(<[u8]>::to_vec)));
    let headers = (record.header_count > 0).then(|| headers.collect());
    let (key, value) = (record.key.map(<[u8]>::to_vec), record.value.map(<[u8]>::to_vec));
    (fetched.offset, fetched.timestamp_ms * 1000, key, value, headers)
}

/// Read in parts, with some records returned twice.
fn read_in_pieces(chunk: Chunk, most: usize) -> Vec<Seen> {
    let mut received = Received::read(chunk, &mut Vec::new()).0;
    let mut all = Vec::new();
    while received.left() > 0 {
        let first = received.next_offset();
        let some: Vec<Seen> = received.take(most).map(|fetched| seen(&fetched)).collect();
        assert_eq!(some.first().map(|row| row.0), first);
        received.put_back(some.len() / 2);
        all.extend_from_slice(&some[..some.len() - some.len() / 2]);
    }
    all
}

fn part(array: &ArrayRef, row: usize) -> Part {
    array.is_valid(row).then(|| array.as_binary::<i32>().value(row).to_vec())
}

pub(super) fn read_as_columns(columns: &RecordColumns) -> Vec<Seen> {
    columns.array.to_data().validate_full().unwrap();
    let column = |column: Column| Arc::clone(columns.array.column_by_name(column.name()).unwrap());
    let (keys, values, headers) = (column(Column::Key), column(Column::Value), column(Column::Headers));
    let (offsets, times) = (column(Column::Offset), column(Column::Timestamp));
    assert!(column(Column::Topic).as_string::<i32>().iter().all(|topic| topic == Some("t")));
    assert!(column(Column::Partition).as_primitive::<Int32Type>().iter().all(|index| index == Some(3)));
    let rows = (0..columns.array.len()).map(|row| {
        let offset = offsets.as_primitive::<Int64Type>().value(row);
        let time = times.as_primitive::<TimestampMicrosecondType>().value(row);
        let list = headers.is_valid(row).then(|| {
            let list = headers.as_list::<i32>().value(row);
            let (names, contents) = (list.as_struct().column(0).clone(), list.as_struct().column(1).clone());
            (0..list.len()).map(|i| (names.as_string::<i32>().value(i).to_owned(), part(&contents, i))).collect()
        });
        (offset, time, part(&keys, row), part(&values, row), list)
    });
    rows.collect()
}

pub(super) fn numbers(columns: &RecordColumns, column: Column) -> Vec<i64> {
    let array = columns.array.column_by_name(column.name()).unwrap();
    match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().values().iter().map(|n| i64::from(*n)).collect(),
        _ => array.as_primitive::<Int64Type>().values().to_vec(),
    }
}

fn stored() -> impl Strategy<Value = Stored> {
    let part = || prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
    let headers = prop::collection::vec((prop::collection::vec(any::<u8>(), 0..5), part()), 0..3);
    let record = (0_i64..1 << 40, part(), part(), headers);
    let codec = (0_i8..5).prop_map(|code| Compression::from_code(code).unwrap());
    let old_codec = (0_i8..4).prop_map(|code| Compression::from_code(code).unwrap());
    prop_oneof![
        6 => (prop::collection::vec(record, 1..12), codec, prop::option::of(0_i64..5), any::<bool>())
            .prop_map(|(records, codec, producer, append)| Stored::Batch(records, codec, producer, append)),
        2 => (0_i64..5, any::<bool>()).prop_map(|(producer, commit)| Stored::Marker(producer, commit)),
        2 => (0_i8..2, prop::collection::vec((part(), part()), 1..6), old_codec)
            .prop_map(|(magic, messages, codec)| Stored::Old(magic, messages, codec)),
        1 => (0_u8..9).prop_map(Stored::Gap),
    ]
}

/// Two to six transactions of one to three batches each, interleaved in any order, with ends in any order.
fn interleaved() -> impl Strategy<Value = Vec<Stored>> {
    let transactions = prop::collection::vec((1_usize..4, any::<bool>()), 2..7);
    let steps = transactions.prop_flat_map(|transactions| {
        let steps: Vec<usize> =
            transactions.iter().enumerate().flat_map(|(producer, (batches, _))| vec![producer; batches + 1]).collect();
        (Just(transactions), Just(steps).prop_shuffle())
    });
    steps.prop_map(|(mut transactions, steps)| {
        let step = |producer: usize| {
            let (batches, commit) = &mut transactions[producer];
            if *batches == 0 {
                return Stored::Marker(producer as i64, *commit);
            }
            *batches -= 1;
            Stored::Batch(records(&[b"one", b"two"]), Compression::None, Some(producer as i64), false)
        };
        steps.into_iter().map(step).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn records_of_aborted_transactions_are_left_out_of_every_interleaving(stored in interleaved(), skipped in 0_i64..20) {
        let (bytes, aborted) = log(&stored);
        let made = || chunk(bytes.clone(), 100 + skipped, aborted.clone(), true);
        let expected = visible(&stored, 100 + skipped, true);
        let as_records: Vec<i64> = read_as_records(&made()).iter().map(|row| row.0).collect();
        prop_assert_eq!(&as_records, &expected);
        let columns = Pieces::new(made(), Vec::new()).take(MOST).unwrap();
        prop_assert_eq!(numbers(&columns, Column::Offset), expected);
    }

    #[test]
    fn columns_hold_what_records_hold_in_pieces_of_any_size(
        stored in prop::collection::vec(stored(), 1..16),
        skipped in 0_i64..20,
        read_committed in any::<bool>(),
        max_rows in 1_usize..20,
        max_bytes in 1_usize..400,
        end in prop::option::of(95_i64..180),
    ) {
        let (bytes, aborted) = log(&stored);
        prop_assume!(!bytes.is_empty());
        let made = || chunk(bytes.clone(), 100 + skipped, aborted.clone(), read_committed);
        let expected = read_as_records(&made());
        let offsets: Vec<i64> = expected.iter().map(|row| row.0).collect();
        prop_assert_eq!(offsets, visible(&stored, 100 + skipped, read_committed));
        prop_assert_eq!(&read_in_pieces(made(), max_rows), &expected);
        let (mut pieces, mut rows) = (Pieces::new(made(), Vec::new()), Vec::new());
        let next_offset = made().next_offset.max(100 + skipped);
        let pick = Pick { max_rows, max_bytes, end, ..MOST };
        while !pieces.is_done() {
            let before = pieces.position();
            let piece = pieces.take(pick).unwrap();
            prop_assert!(piece.array.len() <= max_rows && piece.next_offset == pieces.position());
            if end.is_some_and(|end| before >= end) {
                prop_assert!(piece.array.is_empty() && piece.next_offset == before);
                break;
            }
            rows.extend(read_as_columns(&piece));
            prop_assert!(rows.last().is_none_or(|(offset, ..)| *offset < piece.next_offset));
        }
        let below: Vec<Seen> = expected.iter().filter(|(at, ..)| end.is_none_or(|end| *at < end)).cloned().collect();
        prop_assert_eq!(&below, &rows);
        while !pieces.is_done() {
            rows.extend(read_as_columns(&pieces.take(Pick { max_rows, ..MOST }).unwrap()));
        }
        prop_assert_eq!(expected, rows);
        prop_assert_eq!(next_offset, pieces.position());
    }
}

fn records(values: &[&[u8]]) -> Vec<(i64, Part, Part, OwnedHeaders)> {
    values.iter().map(|value| (7, None, Some(value.to_vec()), Vec::new())).collect()
}

#[test]
fn only_what_is_picked_is_built_and_in_that_order() {
    let (bytes, _) = log(&[Stored::Batch(records(&[b"one", b"two"]), Compression::None, None, false)]);
    let mut pieces = Pieces::new(chunk(bytes.clone(), 100, Vec::new(), false), Vec::new());
    let columns = pieces.take(Pick { columns: &[Column::Offset, Column::Value], ..MOST }).unwrap();
    assert_eq!(vec!["offset", "value"], columns.array.column_names());
    assert_eq!((6, 102, 2), (columns.bytes, columns.next_offset, columns.array.len()));
    let mut pieces = Pieces::new(chunk(bytes, 100, Vec::new(), false), Vec::new());
    let nothing = pieces.take(Pick { columns: &[], ..MOST }).unwrap();
    assert_eq!((0, 2, 6), (nothing.array.num_columns(), nothing.array.len(), nothing.bytes));
}

#[test]
fn each_row_tells_its_batchs_producer_and_whose_time_it_has() {
    let one = || records(&[b"v"]);
    let (bytes, _) = log(&[
        Stored::Batch(one(), Compression::None, None, true),
        Stored::Batch(one(), Compression::Zstd, Some(2), false),
        Stored::Old(0, vec![(None, None)], Compression::None),
        Stored::Old(1, vec![(None, None), (None, None)], Compression::Gzip),
    ]);
    let columns = Pieces::new(chunk(bytes, 100, Vec::new(), false), Vec::new()).take(MOST).unwrap();
    assert_eq!(vec![1, 0, -1, 0, 0], numbers(&columns, Column::TimestampType));
    assert_eq!(vec![-1, 2, -1, -1, -1], numbers(&columns, Column::ProducerId));
}

#[test]
fn a_batch_that_cannot_be_read_is_met_after_what_lies_before_it_and_every_time() {
    let one = |value: &[u8]| Stored::Batch(records(&[value]), Compression::None, None, false);
    let (mut bytes, _) = log(&[one(b"good"), one(b"bad"), one(b"behind")]);
    let damaged = bytes.windows(3).position(|w| w == b"bad").unwrap();
    bytes[damaged] = b'B';
    let mut pieces = Pieces::new(chunk(bytes, 100, Vec::new(), false), Vec::new());
    let columns = pieces.take(MOST).unwrap();
    assert_eq!((1, 101, false), (columns.array.len(), columns.next_offset, pieces.is_done()));
    for _ in 0..2 {
        let error = pieces.take(MOST).unwrap_err().to_string();
        assert!(error.starts_with("topic \"t\" partition 3 offset 101: the batch's CRC is"), "{error}");
    }
}

fn sent(columns: Vec<(&str, ArrayRef)>) -> Result<SentColumns, ClientError> {
    let fields: Fields = columns.iter().map(|(name, a)| Field::new(*name, a.data_type().clone(), true)).collect();
    SentColumns::of(&StructArray::new(fields, columns.into_iter().map(|(_, array)| array).collect(), None))
}

#[test]
fn rows_are_read_with_every_type_that_a_column_may_have() {
    let wide: ArrayRef = Arc::new(arrow_array::LargeStringArray::from(vec![Some("v0"), None]));
    let partitions: ArrayRef = Arc::new(arrow_array::Int32Array::from(vec![None, Some(4)]));
    let topics: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let times: ArrayRef = Arc::new(arrow_array::TimestampNanosecondArray::from(vec![Some(-1), Some(2_999_999)]));
    let columns =
        sent(vec![("value", wide), ("partition", partitions), ("topic", topics), ("timestamp", times)]).unwrap();
    let (first, second) = (columns.row(0).unwrap(), columns.row(1).unwrap());
    assert_eq!(
        (Some(&b"v0"[..]), None, Some(&b"a"[..]), Some(-1)),
        (first.value, first.partition, first.topic, first.timestamp_ms)
    );
    assert_eq!((None, Some(4), None, Some(2)), (second.value, second.partition, second.topic, second.timestamp_ms));
}

#[test]
fn columns_that_cannot_be_sent_are_named() {
    let values = || -> ArrayRef { Arc::new(BinaryArray::from(vec![&b"v"[..]])) };
    let floats = || -> ArrayRef { Arc::new(Float64Array::from(vec![1.0])) };
    let refused = |columns| sent(columns).unwrap_err().to_string();
    assert_eq!("column \"value\" is missing: must be binary or string", refused(vec![("key", values())]));
    assert_eq!("column \"value\" is Float64: must be binary or string", refused(vec![("value", floats())]));
    assert_eq!("column \"topic\" is Binary: must be string", refused(vec![("value", values()), ("topic", values())]));
    let partition = refused(vec![("value", values()), ("partition", floats())]);
    assert_eq!("column \"partition\" is Float64: must be int32 or int64", partition);
    let unknown = refused(vec![("value", values()), ("lag", Arc::new(Int64Array::from(vec![1])))]);
    assert_eq!("column \"lag\" is not known: must be value, key, topic, partition, headers or timestamp", unknown);
    assert_eq!(
        "column \"value\" is there twice: must be one column of each name",
        refused(vec![("value", values()), ("value", values())])
    );
}

#[test]
fn a_header_without_key_is_a_fault_of_its_row() {
    let mut lists = arrow_array::builder::ListBuilder::new(arrow_array::builder::StructBuilder::new(
        header_fields(),
        vec![Box::new(StringBuilder::new()), Box::new(BinaryBuilder::new())],
    ));
    for key in [Some("k"), None] {
        let header = lists.values();
        header.field_builder::<StringBuilder>(0).unwrap().append_option(key);
        header.field_builder::<BinaryBuilder>(1).unwrap().append_null();
        header.append(true);
        lists.append(true);
    }
    lists.append(false);
    let mut counts = Int32Builder::new();
    counts.append_slice(&[0, 0, 0]);
    let values: ArrayRef = Arc::new(BinaryArray::from(vec![&b""[..]; 3]));
    let columns =
        sent(vec![("value", values), ("headers", Arc::new(lists.finish())), ("partition", Arc::new(counts.finish()))]);
    let (columns, mut headers) = (columns.unwrap(), Vec::new());
    columns.headers(0, &mut headers).unwrap();
    assert_eq!(vec![(&b"k"[..], None)], headers);
    assert!(columns.headers(1, &mut headers).unwrap_err().starts_with("a header without key"));
    columns.headers(2, &mut headers).unwrap();
    assert!(headers.is_empty());
}

#[test]
fn texts_may_be_views_or_coded_by_a_dictionary() {
    let long = "a text of more than twelve bytes";
    let views: ArrayRef = Arc::new(arrow_array::StringViewArray::from(vec![Some("short"), Some(long), None]));
    let words: ArrayRef =
        Arc::new([Some("k"), None, Some("k")].into_iter().collect::<arrow_array::DictionaryArray<Int32Type>>());
    let topics = Arc::clone(&words);
    let binary: ArrayRef =
        Arc::new(arrow_array::BinaryViewArray::from(vec![Some(&b"x"[..]), Some(long.as_bytes()), None]));
    for values in [views.clone(), binary] {
        let columns =
            sent(vec![("value", values.slice(1, 2)), ("key", words.slice(1, 2)), ("topic", topics.slice(0, 2))]);
        let columns = columns.unwrap();
        let (first, second) = (columns.row(0).unwrap(), columns.row(1).unwrap());
        assert_eq!((Some(long.as_bytes()), None, Some(&b"k"[..])), (first.value, first.key, first.topic));
        assert_eq!((None, Some(&b"k"[..]), None), (second.value, second.key, second.topic));
    }
    let nulls: ArrayRef =
        arrow_array::new_null_array(&DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), 2);
    let columns = sent(vec![("value", views.slice(0, 2)), ("key", nulls)]).unwrap();
    assert_eq!((Some(&b"short"[..]), None), (columns.row(0).unwrap().value, columns.row(0).unwrap().key));
}
