//! A log written by Kafka, with batches of librdkafka and Kafka's own producer, read as records and as columns.
//!
//! The bytes and their origin are in `native/storage/tests/kafka/partition.hex`. The rows are the records sent, with the
//! offsets and producer ids that Kafka's dump tool prints.

use super::pieces::Pieces;
use super::tests::{MOST, Seen, chunk, numbers, read_as_columns, read_as_records};
use super::*;
use pybroker_wire::fetch::AbortedTransaction;

const FILES: &str = include_str!("../../../storage/tests/kafka/partition.hex");
const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
/// Offset, value, producer id and milliseconds after 1700000000000 of the records in transactions: A, B, C and D.
const TRANSACTIONAL: [(i64, &str, i64, i64); 6] = [
    (20, "A0", 5, 100),
    (21, "B0", 6, 100),
    (22, "C0", 7, 100),
    (23, "A1", 5, 200),
    (26, "B1", 6, 300),
    (29, "D0", 8, 400),
];
/// The offset of the open transaction.
const STABLE_END: i64 = 29;

fn log() -> Vec<u8> {
    let digits: String = FILES.lines().filter_map(|line| line.strip_prefix("log:")).collect();
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The aborted transactions in Kafka's Fetch response to a `read_committed` reader at offset 0.
fn aborted() -> Vec<AbortedTransaction> {
    let aborted = |producer_id, first_offset| AbortedTransaction { producer_id, first_offset };
    vec![aborted(6, 21), aborted(5, 20)]
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    Some(text.as_bytes().to_vec())
}

/// The rows of the batches without transactions.
fn plain() -> Vec<Seen> {
    let made = ["by librdkafka", "by Java"].iter().flat_map(|by| CODECS.map(|codec| format!("{codec}{:40}{by}", "")));
    let two = |(number, value): (usize, String)| {
        let headers = vec![("h".to_owned(), bytes("x")), ("none".to_owned(), None)];
        let first = (2 * number as i64, 1_700_000_000_000_000, bytes("key"), bytes(&value), Some(headers));
        [first, (2 * number as i64 + 1, 1_699_999_999_990_000, None, None, None)]
    };
    made.enumerate().flat_map(two).collect()
}

fn transactional(visible: &[i64]) -> Vec<Seen> {
    let row = |(offset, value, _, after): (i64, &str, i64, i64)| {
        (offset, (1_700_000_000_000 + after) * 1000, None, bytes(value), None)
    };
    TRANSACTIONAL.into_iter().filter(|record| visible.contains(&record.0)).map(row).collect()
}

#[test]
fn batches_of_librdkafka_and_of_kafkas_producer_are_read_in_every_codec() {
    let expected = [plain(), transactional(&[20, 21, 22, 23, 26, 29])].concat();
    let made = || chunk(log(), 0, Vec::new(), false);
    assert_eq!(read_as_records(&made()), expected);
    let columns = Pieces::new(made(), Vec::new()).take(MOST).unwrap();
    assert_eq!((read_as_columns(&columns), columns.next_offset), (expected, 30));
    let producers: Vec<i64> = std::iter::repeat_n(-1, 10)
        .chain((0..5).flat_map(|producer| [producer, producer]))
        .chain(TRANSACTIONAL.map(|record| record.2))
        .collect();
    assert_eq!(numbers(&columns, Column::ProducerId), producers);
    assert_eq!(numbers(&columns, Column::TimestampType), [0; 26]);
}

#[test]
fn a_reader_of_committed_records_sees_what_kafkas_markers_commit() {
    // The batch of D0 is the last and has 70 bytes.
    let stable = log()[..log().len() - 70].to_vec();
    let expected = [plain(), transactional(&[22, 26])].concat();
    for position in 0..STABLE_END {
        let below: Vec<Seen> = expected.iter().filter(|row| row.0 >= position).cloned().collect();
        // Kafka does not list a transaction whose marker is before the position.
        let listed = aborted().split_off(usize::from(position > 24) + usize::from(position > 27));
        let made = || chunk(stable.clone(), position, listed.clone(), true);
        assert_eq!(read_as_records(&made()), below, "from {position}");
        let columns = Pieces::new(made(), Vec::new()).take(MOST).unwrap();
        assert_eq!((read_as_columns(&columns), columns.next_offset), (below, STABLE_END), "from {position}");
    }
}
