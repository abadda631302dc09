//! Generated records for a producer: with or without stamps, with or without keys.

use pybroker_client::{ClientError, Destination, NewRecord, Producer, now_ms};

use super::keyed::KeyedStamps;
use super::payload::{MadeRecords, Payload};
use super::schedule::{Due, since};
use super::stamp::Stamp;

/// Sends generated values to a partition (-1: the sticky one): random letters, after stamps if `first` is given. Their
/// latency counts from their `due` time, if that is given.
///
/// # Errors
/// As [`Producer::send_many`].
pub fn send_made(
    producer: &Producer,
    destination: &Destination,
    partition: i32,
    payload: &mut Payload,
    records: MadeRecords,
    first: Option<Stamp>,
    due: Option<&Due>,
) -> Result<(), ClientError> {
    let MadeRecords { size, count } = records;
    let mut made = 0;
    while made < count {
        let together = (count - made).min(Payload::together(size));
        let due = due.map(|due| Due { first_us: due.at_us(made), ..*due });
        let values = match first {
            Some(stamp) => {
                let next = Stamp { sequence: stamp.sequence + made as u64, ..stamp };
                payload.stamped(size, together, next, due.as_ref())
            }
            None => payload.letters(size, together),
        };
        producer.send_many(destination, partition, values, size, since(due.as_ref()))?;
        made += together;
    }
    Ok(())
}

/// Sends stamped values with keys, which determine the partitions; `number` is the producer's number in the stamps.
///
/// # Errors
/// As [`Producer::send`].
pub fn send_keyed(
    producer: &Producer,
    destination: &Destination,
    number: u64,
    keyed: &mut KeyedStamps,
    records: MadeRecords,
    due: Option<&Due>,
) -> Result<(), ClientError> {
    let (partitions, timestamp_ms) = (destination.snapshot(), now_ms());
    keyed.make(
        records,
        number,
        due,
        |key| partitions.of_key(key),
        |record, sent| {
            let new = NewRecord { timestamp_ms, key: Some(record.key), value: Some(record.value), headers: &[] };
            producer.send_since(&partitions, record.partition, &new, sent)
        },
    )
}
