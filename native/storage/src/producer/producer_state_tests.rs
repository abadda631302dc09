//! Tests of sequence numbers and epochs.

use super::*;

/// Returns terms without verification of transactions.
fn terms(origin: Origin) -> Terms<'static> {
    let verifications = Box::leak(Box::default());
    Terms { origin, check: TransactionCheck::Unchecked, verifications, markers_bump_epoch: false }
}

fn batch(producer_id: i64, epoch: i16, sequence: i32, records: i32, offset: i64) -> BatchHeader {
    BatchHeader {
        base_offset: offset,
        batch_length: 49,
        partition_leader_epoch: 0,
        magic: 2,
        crc: 0,
        attributes: 0,
        last_offset_delta: records - 1,
        base_timestamp: 1000,
        max_timestamp: 1000 + offset,
        producer_id,
        producer_epoch: epoch,
        base_sequence: sequence,
        record_count: records,
    }
}

fn append(states: &mut ProducerStates, header: &BatchHeader) -> Result<(), AppendError> {
    let mut staged = Staged::default();
    states.stage(&mut staged, header, None, &terms(Origin::Client))?;
    states.commit(staged, header.next_offset());
    Ok(())
}

#[test]
fn sequences_continue_and_gaps_are_refused() {
    let mut states = ProducerStates::default();
    append(&mut states, &batch(1, 0, 0, 3, 0)).unwrap();
    append(&mut states, &batch(1, 0, 3, 2, 3)).unwrap();
    for sequence in [0, 4, 6, i32::MAX] {
        assert!(matches!(
            append(&mut states, &batch(1, 0, sequence, 1, 5)),
            Err(AppendError::OutOfOrderSequence { producer_id: 1, last: 4, .. })
        ));
    }
    assert_eq!(states.end_offset(), 5);
}

#[test]
fn an_unknown_producer_may_start_anywhere() {
    let mut states = ProducerStates::default();
    append(&mut states, &batch(1, 0, 77, 3, 0)).unwrap();
    append(&mut states, &batch(1, 0, 80, 1, 3)).unwrap();
}

#[test]
fn a_new_epoch_starts_at_zero_and_fences_the_old_one() {
    let mut states = ProducerStates::default();
    append(&mut states, &batch(1, 4, 0, 3, 0)).unwrap();
    assert!(matches!(
        append(&mut states, &batch(1, 5, 3, 1, 3)),
        Err(AppendError::OutOfOrderSequence { last: -1, .. })
    ));
    append(&mut states, &batch(1, 5, 0, 1, 3)).unwrap();
    assert!(matches!(
        append(&mut states, &batch(1, 4, 3, 1, 4)),
        Err(AppendError::InvalidProducerEpoch { current: 5, found: 4, .. })
    ));
    assert_eq!(states.find_duplicate(&batch(1, 5, 0, 1, 0)).unwrap().first_offset(), 3);
    assert_eq!(states.find_duplicate(&batch(1, 4, 0, 3, 0)), None);
}

#[test]
fn sequences_wrap_around_at_the_largest_number() {
    let mut states = ProducerStates::default();
    append(&mut states, &batch(1, 0, i32::MAX - 1, 4, 0)).unwrap();
    assert_eq!(states.get(1).unwrap().batches()[0].last_sequence, 1);
    assert_eq!(states.get(1).unwrap().batches()[0].first_sequence(), i32::MAX - 1);
    assert!(states.find_duplicate(&batch(1, 0, i32::MAX - 1, 4, 9)).is_some());
    append(&mut states, &batch(1, 0, 2, 1, 4)).unwrap();
    append(&mut states, &batch(2, 0, i32::MAX, 1, 5)).unwrap();
    append(&mut states, &batch(2, 0, 0, 1, 6)).unwrap();
}

#[test]
fn the_last_five_batches_are_known_again() {
    let mut states = ProducerStates::default();
    (0..7).for_each(|n| append(&mut states, &batch(1, 0, n, 1, i64::from(n) * 10)).unwrap());
    assert_eq!(states.find_duplicate(&batch(1, 0, 1, 1, 0)), None);
    for n in 2..7 {
        assert_eq!(states.find_duplicate(&batch(1, 0, n, 1, 0)).unwrap().first_offset(), i64::from(n) * 10);
    }
    assert_eq!(states.find_duplicate(&batch(1, 0, 5, 2, 0)), None, "other length, other batch");
}

#[test]
fn what_is_staged_leaves_no_trace_until_committed() {
    let states = ProducerStates::default();
    let mut staged = Staged::default();
    states.stage(&mut staged, &batch(1, 0, 0, 1, 0), None, &terms(Origin::Client)).unwrap();
    states.stage(&mut staged, &batch(1, 0, 1, 1, 1), None, &terms(Origin::Client)).unwrap();
    assert!(states.stage(&mut staged, &batch(1, 0, 5, 1, 2), None, &terms(Origin::Client)).is_err());
    assert!(states.get(1).is_none());
}

#[test]
fn idle_producers_expire_unless_a_transaction_is_open() {
    let mut states = ProducerStates::default();
    append(&mut states, &batch(1, 0, 0, 1, 0)).unwrap();
    let mut transactional = batch(2, 0, 0, 1, 1);
    transactional.attributes = 0x10;
    append(&mut states, &transactional).unwrap();
    states.expire(1000 + 500, 501);
    assert!(states.get(1).is_some());
    states.expire(1000 + 500, 500);
    assert!(states.get(1).is_none());
    assert_eq!(states.get(2).unwrap().current_txn_first_offset, 1);
}

#[test]
fn replaying_the_log_gives_the_state_of_the_appends() {
    let (mut live, mut replayed) = (ProducerStates::default(), ProducerStates::default());
    for n in 0..9 {
        let header = batch(i64::from(n % 2), 0, n / 2 * 3, 3, i64::from(n) * 3);
        append(&mut live, &header).unwrap();
        replayed.replay(&header, None);
    }
    assert_eq!(live.get(0), replayed.get(0));
    assert_eq!(live.get(1), replayed.get(1));
    assert_eq!(live.end_offset(), replayed.end_offset());
}

const COMMIT: Option<EndMarker> = Some(EndMarker { commit: true, coordinator_epoch: 3 });
const ABORT: Option<EndMarker> = Some(EndMarker { commit: false, coordinator_epoch: 3 });

fn transactional(producer_id: i64, epoch: i16, sequence: i32, records: i32, offset: i64) -> BatchHeader {
    BatchHeader { attributes: 0x10, ..batch(producer_id, epoch, sequence, records, offset) }
}

fn control(producer_id: i64, epoch: i16, offset: i64) -> BatchHeader {
    BatchHeader { attributes: 0x30, ..batch(producer_id, epoch, -1, 1, offset) }
}

fn end(
    states: &mut ProducerStates,
    header: &BatchHeader,
    marker: Option<EndMarker>,
) -> Result<Vec<AbortedTxn>, AppendError> {
    let mut staged = Staged::default();
    states.stage(&mut staged, header, marker, &terms(Origin::Coordinator))?;
    Ok(states.commit(staged, header.next_offset()))
}

#[test]
fn a_marker_ends_the_transaction_and_leaves_the_sequence() {
    let mut states = ProducerStates::default();
    append(&mut states, &transactional(1, 0, 0, 2, 5)).unwrap();
    append(&mut states, &transactional(1, 0, 2, 1, 7)).unwrap();
    assert_eq!(states.transactions().first_unstable(), Some(5));
    assert_eq!(end(&mut states, &control(1, 0, 8), COMMIT).unwrap(), []);
    let entry = states.get(1).unwrap();
    assert_eq!((entry.current_txn_first_offset, entry.coordinator_epoch), (-1, 3));
    states.complete(9);
    assert_eq!(states.transactions().first_unstable(), None);
    append(&mut states, &transactional(1, 0, 3, 1, 9)).unwrap();
    let aborted = end(&mut states, &control(1, 0, 10), ABORT).unwrap();
    let entry = AbortedTxn { producer_id: 1, first_offset: 9, last_offset: 10, last_stable_offset: 11 };
    assert_eq!(aborted, [entry]);
    assert_eq!(end(&mut states, &control(1, 0, 11), ABORT).unwrap(), [], "a transaction without records");
}

#[test]
fn a_marker_of_a_newer_epoch_fences_the_producer() {
    let mut states = ProducerStates::default();
    append(&mut states, &transactional(1, 0, 0, 2, 0)).unwrap();
    end(&mut states, &control(1, 1, 2), ABORT).unwrap();
    let refused = append(&mut states, &transactional(1, 0, 2, 1, 3));
    assert!(matches!(refused, Err(AppendError::InvalidProducerEpoch { current: 1, found: 0, .. })));
    let refused = end(&mut states, &control(1, 0, 3), ABORT);
    assert!(matches!(refused, Err(AppendError::InvalidProducerEpoch { .. })));
    append(&mut states, &transactional(1, 1, 0, 1, 3)).unwrap();
}

#[test]
fn a_zombie_coordinator_is_fenced() {
    let mut states = ProducerStates::default();
    append(&mut states, &transactional(1, 0, 0, 2, 0)).unwrap();
    end(&mut states, &control(1, 0, 2), COMMIT).unwrap();
    let zombie = Some(EndMarker { commit: false, coordinator_epoch: 2 });
    let refused = end(&mut states, &control(1, 0, 3), zombie);
    assert!(matches!(refused, Err(AppendError::CoordinatorFenced { current: 3, found: 2, .. })));
}

#[test]
fn a_plain_batch_inside_a_transaction_is_refused() {
    let mut states = ProducerStates::default();
    append(&mut states, &transactional(1, 0, 0, 2, 0)).unwrap();
    let refused = append(&mut states, &batch(1, 0, 2, 1, 2));
    assert!(matches!(refused, Err(AppendError::InvalidTxnState { producer_id: 1, first_offset: 0 })));
}

#[test]
fn what_compaction_left_of_a_marker_says_nothing() {
    let mut states = ProducerStates::default();
    append(&mut states, &batch(1, 0, 0, 2, 0)).unwrap();
    let emptied = BatchHeader { record_count: 0, producer_epoch: 5, ..control(1, 0, 2) };
    assert_eq!(states.replay(&emptied, None), None);
    assert_eq!((states.get(1).unwrap().epoch, states.end_offset()), (0, 3));
}

#[test]
fn a_snapshot_brings_open_transactions_back() {
    let mut states = ProducerStates::default();
    append(&mut states, &transactional(1, 0, 0, 2, 5)).unwrap();
    append(&mut states, &batch(2, 0, 0, 2, 7)).unwrap();
    let again = ProducerStates::restored(states.iter().map(|(id, entry)| (id, *entry)), 9);
    assert_eq!(again.transactions().first_unstable(), Some(5));
}

/// The behaviour of `ProducerStateManager` of Kafka 4.3.1 for producer 1 in a sequence of steps, from an empty log
/// on. `send` (in a transaction) and `plain` have epoch, first sequence and number of records. `commit` and `abort`
/// are markers with producer epoch and coordinator epoch. After each step: `ok`, the error, or for an aborted
/// transaction the first offset and the last stable one.
const KAFKAS_STEPS: [&str; 4] = [
    "plain 0 0 2: ok; plain 0 2 2: ok; plain 0 4 4: ok; plain 0 8 2: ok; plain 0 10 1: ok; plain 0 11 3: ok; \
     plain 0 14 4: ok; plain 0 18 2: ok; plain 0 20 4: ok; plain 0 24 1: ok; plain 0 25 1: ok; \
     plain 0 10 1: sequence; plain 0 26 2: ok; plain 0 28 2: ok; plain 0 30 3: ok; plain 0 34 4: sequence; \
     plain 0 33 2: ok; plain 0 38 2: sequence; plain 0 36 3: sequence; plain 0 35 1: ok; plain 0 36 1: ok; \
     plain 0 37 1: ok; plain 0 38 3: ok; plain 0 41 1: ok; plain 1 0 1: ok; plain 0 0 4: epoch",
    "send 0 0 2: ok; send 0 2 2: ok; send 0 4 3: ok; send 0 7 4: ok; send 0 11 1: ok; send 0 12 4: ok; \
     commit 0 3: ok; send 0 16 4: ok; send 0 20 1: ok; send 0 21 3: ok; send 0 24 3: ok; send 0 27 4: ok; \
     send 0 31 4: ok; send 0 35 4: ok; commit 0 3: ok; commit 0 2: coordinator; commit 0 3: ok; abort 0 4: ok; \
     send 0 39 4: ok; send 1 0 3: ok; send 1 3 3: ok; send 1 7 4: sequence; send 1 6 4: ok; send 1 10 2: ok; \
     abort 1 4: aborted 43 60; send 1 12 1: ok",
    "send 0 0 4: ok; send 0 0 4: duplicate; send 0 0 4: duplicate; send 0 4 1: ok; commit 1 4: ok; plain 1 0 1: ok; \
     plain 1 1 2: ok; abort 1 5: ok; commit 0 5: epoch; send 1 3 4: ok; send 2 0 2: ok; commit 3 6: ok; \
     abort 3 6: ok; send 3 0 2: ok; plain 3 2 3: state; send 3 0 2: duplicate; send 3 2 2: ok; \
     abort 3 6: aborted 18 23; send 3 4 4: ok; commit 4 7: ok; send 4 0 1: ok; send 4 1 4: ok; send 4 5 3: ok; \
     plain 4 8 1: state; send 5 3 4: sequence; send 4 8 4: ok",
    "plain 0 2147483645 1: ok; plain 0 2147483646 2: ok; abort 1 3: ok; plain 0 0 2: epoch; abort 0 3: epoch; \
     abort 1 3: ok; commit 1 3: ok; plain 0 0 1: epoch; plain 1 0 1: ok; plain 1 1 2: ok; plain 1 3 4: ok; \
     plain 1 7 1: ok; commit 1 1: coordinator; plain 1 8 1: ok; plain 1 9 4: ok; plain 1 13 3: ok; plain 1 16 4: ok; \
     plain 2 3 1: sequence; plain 1 20 3: ok; abort 1 3: ok; abort 2 3: ok; plain 3 0 4: ok; plain 3 4 3: ok; \
     plain 3 10 2: sequence; plain 3 7 2: ok; plain 3 9 3: ok",
];

fn kind(refused: &AppendError) -> &'static str {
    match refused {
        AppendError::OutOfOrderSequence { .. } => "sequence",
        AppendError::InvalidProducerEpoch { .. } => "epoch",
        AppendError::InvalidTxnState { .. } => "state",
        AppendError::CoordinatorFenced { .. } => "coordinator",
        other => panic!("{other}"),
    }
}

#[test]
fn batches_and_markers_are_accepted_as_by_kafka() {
    for steps in KAFKAS_STEPS {
        let (mut states, mut offset) = (ProducerStates::default(), 0);
        for (at, step) in steps.split("; ").enumerate() {
            let (done, expected) = step.split_once(": ").unwrap();
            let words: Vec<&str> = done.split(' ').collect();
            let number = |at: usize| words[at].parse::<i32>().unwrap();
            let epoch = number(1) as i16;
            let result = if matches!(words[0], "send" | "plain") {
                let header = match words[0] {
                    "send" => transactional(1, epoch, number(2), number(3), offset),
                    _ => batch(1, epoch, number(2), number(3), offset),
                };
                match states.find_duplicate(&header) {
                    Some(_) => "duplicate".to_owned(),
                    None => match append(&mut states, &header) {
                        Ok(()) => "ok".to_owned(),
                        Err(refused) => kind(&refused).to_owned(),
                    },
                }
            } else {
                let marker = EndMarker { commit: words[0] == "commit", coordinator_epoch: number(2) };
                match end(&mut states, &control(1, epoch, offset), Some(marker)).as_deref() {
                    Ok([]) => "ok".to_owned(),
                    Ok([aborted]) => format!("aborted {} {}", aborted.first_offset, aborted.last_stable_offset),
                    Ok(more) => panic!("{more:?}"),
                    Err(refused) => kind(refused).to_owned(),
                }
            };
            assert_eq!(result, expected, "{step}, step {at}");
            offset = states.end_offset();
        }
    }
}
