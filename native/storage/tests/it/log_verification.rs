//! Verification (KIP-890): what begins a transaction in a log, and that nothing begins one behind its end.

use proptest::prelude::*;
use pybroker_record::{BatchHeader, Compression, EndMarker, Offset, ProducerId, SentRecords, set_transactional};
use pybroker_storage::{
    AppendError, Appended, BeginningTransaction, ConfirmedTransaction, Log, OpenLog, TransactionCheck,
    TransactionalIdHash, VerificationGuard,
};

use crate::log_fixture::{NOW, build, config};

/// Appends a batch of a transaction as a leader does once the coordinator has said that it is part of it.
pub fn append_verified(log: &Log, bytes: &mut [u8]) -> Result<Appended, AppendError> {
    let header = BatchHeader::parse(bytes).unwrap();
    let guard = log.begin_verification(beginning(&header, false), NOW)?;
    append(log, bytes, guard)
}

fn beginning(header: &BatchHeader, bumps_epoch: bool) -> BeginningTransaction {
    let &BatchHeader { producer_id, producer_epoch, base_sequence: sequence, .. } = header;
    let transactional_id = Some(TransactionalIdHash::of("t"));
    BeginningTransaction { producer_id, producer_epoch, sequence, bumps_epoch, transactional_id }
}

fn append(log: &Log, bytes: &mut [u8], guard: Option<VerificationGuard>) -> Result<Appended, AppendError> {
    let sent = SentRecords::find(bytes).map_err(AppendError::Invalid)?;
    log.append_as_leader(sent, 0, NOW, TransactionCheck::Guarded(guard))
}

fn confirm(log: &Log, producer_epoch: i16, coordinator_epoch: i32) {
    let transactional_id = TransactionalIdHash::of("t");
    let confirmed = ConfirmedTransaction { transactional_id, producer_id: 1, producer_epoch, coordinator_epoch };
    log.confirm_transaction(confirmed, NOW);
}

fn batch(epoch: i16, sequence: i32) -> Vec<u8> {
    let (mut bytes, _) = build(&[10], 0, (1, epoch, sequence), Compression::None);
    set_transactional(&mut bytes);
    bytes
}

fn guard_of(log: &Log, bytes: &[u8], bumps_epoch: bool) -> Option<VerificationGuard> {
    log.begin_verification(beginning(&BatchHeader::parse(bytes).unwrap(), bumps_epoch), NOW).unwrap()
}

fn end(log: &Log, epoch: i16, markers_bump_epoch: bool) -> Result<Appended, AppendError> {
    let mut marker = EndMarker { commit: false, coordinator_epoch: 0 }.build(ProducerId(1), epoch, NOW).unwrap();
    log.append_as_coordinator_unsynced(&mut marker, 0, NOW, TransactionCheck::Unchecked, markers_bump_epoch)
}

fn with_log(test: impl FnOnce(&Log)) {
    let directory = tempfile::tempdir().unwrap();
    test(&open(&directory.path().join("t-0")));
}

fn open(directory: &std::path::Path) -> Log {
    let how = OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    Log::open(directory, config(), how).unwrap().0
}

#[test]
fn a_transaction_begins_with_a_guard_and_goes_on_without() {
    with_log(|log| {
        let mut first = batch(0, 0);
        let refused = append(log, &mut first, None);
        assert!(matches!(refused, Err(AppendError::NotVerified { producer_id: 1 })), "{refused:?}");
        let guard = guard_of(log, &first, false);
        assert_eq!(guard_of(log, &first, false), guard, "it is asked for again while it holds");
        assert_eq!(append(log, &mut first, guard).unwrap().first_offset, 0);
        assert_eq!(log.first_unstable_offset(), Some(0));
        let mut second = batch(0, 1);
        assert_eq!(guard_of(log, &second, false), None, "the transaction is open");
        assert_eq!(append(log, &mut second, None).unwrap().first_offset, 1);
        assert!(append(log, &mut batch(0, 1), None).unwrap().duplicate);
    });
}

#[test]
fn a_batch_behind_the_end_of_its_transaction_begins_none() {
    with_log(|log| {
        let guard = guard_of(log, &batch(0, 0), false);
        // It was aborted while its coordinator was asked: nothing of it was in the log.
        end(log, 0, false).unwrap();
        let refused = append(log, &mut batch(0, 0), guard);
        assert!(matches!(refused, Err(AppendError::NotVerified { .. })), "{refused:?}");
        assert_eq!(log.first_unstable_offset(), None);
        // Another verification does not help the first.
        let other = guard_of(log, &batch(0, 0), false);
        assert_ne!(other, guard);
        assert!(append(log, &mut batch(0, 0), guard).is_err());
        assert!(append(log, &mut batch(0, 0), other).is_ok());
    });
}

#[test]
fn what_the_coordinator_has_confirmed_asks_nobody() {
    with_log(|log| {
        confirm(log, 0, 5);
        assert_eq!(guard_of(log, &batch(0, 0), false), None);
        append(log, &mut batch(0, 0), None).unwrap();
        end(log, 0, false).unwrap();
        // Once for each transaction.
        assert!(guard_of(log, &batch(0, 1), false).is_some());
        assert!(matches!(append(log, &mut batch(0, 1), None), Err(AppendError::NotVerified { .. })));
        confirm(log, 0, 5);
        assert_eq!(append(log, &mut batch(0, 1), None).unwrap().first_offset, 2);
    });
}

#[test]
fn a_confirmed_transaction_that_has_ended_before_its_first_batch_begins_no_more() {
    with_log(|log| {
        confirm(log, 0, 5);
        end(log, 0, false).unwrap();
        assert!(matches!(append(log, &mut batch(0, 0), None), Err(AppendError::NotVerified { .. })));
        assert_eq!(log.first_unstable_offset(), None);
    });
}

#[test]
fn a_confirmation_is_for_one_epoch_of_the_producer() {
    with_log(|log| {
        confirm(log, 0, 5);
        assert!(matches!(append(log, &mut batch(1, 0), None), Err(AppendError::NotVerified { .. })));
        assert!(guard_of(log, &batch(1, 0), false).is_some(), "a newer epoch asks for itself");
        assert!(matches!(append(log, &mut batch(1, 0), None), Err(AppendError::NotVerified { .. })));
        assert!(matches!(append(log, &mut batch(0, 0), None), Err(AppendError::NotVerified { .. })));
        // The word about the newer epoch may come while it asks; that about the older one is late.
        confirm(log, 1, 5);
        confirm(log, 0, 5);
        append(log, &mut batch(1, 0), None).unwrap();
    });
}

#[test]
fn a_coordinator_that_another_has_followed_confirms_nothing() {
    with_log(|log| {
        let mut marker = EndMarker { commit: false, coordinator_epoch: 6 }.build(ProducerId(1), 0, NOW).unwrap();
        log.append_as_coordinator_unsynced(&mut marker, 0, NOW, TransactionCheck::Unchecked, false).unwrap();
        confirm(log, 0, 5);
        assert!(guard_of(log, &batch(0, 0), false).is_some());
        assert!(matches!(append(log, &mut batch(0, 0), None), Err(AppendError::NotVerified { .. })));
        confirm(log, 0, 6);
        append(log, &mut batch(0, 0), None).unwrap();
    });
}

#[test]
fn what_comes_under_another_transactional_id_asks_whatever_is_confirmed() {
    with_log(|log| {
        confirm(log, 0, 5);
        let own = beginning(&BatchHeader::parse(&batch(0, 0)).unwrap(), false);
        for transactional_id in [Some(TransactionalIdHash::of("u")), None] {
            let other = BeginningTransaction { transactional_id, ..own };
            assert!(log.begin_verification(other, NOW).unwrap().is_some());
        }
        assert_eq!(log.begin_verification(own, NOW).unwrap(), None);
        append(log, &mut batch(0, 0), None).unwrap();
    });
}

#[test]
fn clients_whose_batches_add_partitions_ask_whatever_is_confirmed() {
    with_log(|log| {
        confirm(log, 0, 5);
        assert!(guard_of(log, &batch(0, 0), true).is_some());
    });
}

#[test]
fn a_confirmed_transaction_begins_with_the_lowest_sequence_that_was_sent() {
    with_log(|log| {
        confirm(log, 0, 5);
        assert_eq!(guard_of(log, &batch(0, 0), false), None);
        // The first batch was refused for another reason, and the second came before it was sent again.
        assert_eq!(guard_of(log, &batch(0, 1), false), None);
        assert!(matches!(append(log, &mut batch(0, 1), None), Err(AppendError::OutOfOrderSequence { .. })));
        append(log, &mut batch(0, 0), None).unwrap();
        append(log, &mut batch(0, 1), None).unwrap();
    });
}

#[test]
fn the_end_of_one_transaction_ends_no_verification_of_the_next() {
    with_log(|log| {
        append_verified(log, &mut batch(0, 0)).unwrap();
        // The client has had its answer to EndTxn, and the next epoch, before the marker is written.
        let mut next = batch(1, 0);
        let guard = guard_of(log, &next, true);
        end(log, 1, true).unwrap();
        append(log, &mut next, guard).unwrap();
        // Without epochs of their own, what was verified may be what has ended.
        end(log, 2, true).unwrap();
        let guard = guard_of(log, &batch(2, 0), true);
        end(log, 2, false).unwrap();
        assert!(matches!(append(log, &mut batch(2, 0), guard), Err(AppendError::NotVerified { .. })));
        // The end of the transaction that was verified.
        let guard = guard_of(log, &batch(2, 0), true);
        end(log, 3, true).unwrap();
        assert!(append(log, &mut batch(2, 0), guard).is_err());
        let guard = guard_of(log, &batch(3, 0), true);
        assert!(append(log, &mut batch(3, 0), guard).is_ok());
    });
}

#[test]
fn an_epoch_that_has_gone_by_is_said_before_a_missing_verification() {
    with_log(|log| {
        append_verified(log, &mut batch(3, 0)).unwrap();
        end(log, 4, true).unwrap();
        let mut late = batch(3, 1);
        let refused = append(log, &mut late, None);
        assert!(matches!(refused, Err(AppendError::InvalidProducerEpoch { current: 4, found: 3, .. })), "{refused:?}");
        let refused = log.begin_verification(beginning(&BatchHeader::parse(&late).unwrap(), true), NOW);
        assert!(matches!(refused, Err(AppendError::InvalidProducerEpoch { .. })), "{refused:?}");
        append_verified(log, &mut batch(4, 0)).unwrap();
    });
}

#[test]
fn a_marker_by_version_2_ends_no_transaction_of_its_own_epoch() {
    with_log(|log| {
        append_verified(log, &mut batch(0, 0)).unwrap();
        end(log, 1, true).unwrap();
        assert!(end(log, 1, true).is_ok(), "sent again");
        append_verified(log, &mut batch(1, 0)).unwrap();
        let late = end(log, 1, true);
        assert!(matches!(late, Err(AppendError::InvalidProducerEpoch { current: 1, found: 1, .. })), "{late:?}");
        assert_eq!(log.first_unstable_offset(), Some(0), "until the high watermark passes the first marker");
        log.complete_transactions(log.log_end_offset());
        assert_eq!(log.first_unstable_offset(), Some(3), "the transaction is open still");
        assert!(end(log, 1, false).is_ok(), "markers of before have the epoch of the batches");
    });
}

#[test]
fn the_lowest_sequence_that_was_verified_comes_first() {
    with_log(|log| {
        let (mut first, mut second) = (batch(0, 0), batch(0, 1));
        let guard = guard_of(log, &second, false);
        assert_eq!(guard_of(log, &first, false), guard);
        let refused = append(log, &mut second, guard);
        assert!(matches!(refused, Err(AppendError::OutOfOrderSequence { found: 1, .. })), "{refused:?}");
        append(log, &mut first, guard).unwrap();
        append(log, &mut second, None).unwrap();
    });
}

#[test]
fn a_producer_that_bumps_epochs_begins_at_0_where_nothing_is_known_of_it() {
    with_log(|log| {
        let mut later = batch(0, 5);
        let guard = guard_of(log, &later, true);
        let refused = append(log, &mut later, guard);
        assert!(matches!(refused, Err(AppendError::OutOfOrderSequence { found: 5, .. })), "{refused:?}");
    });
    with_log(|log| {
        let mut later = batch(0, 5);
        let guard = guard_of(log, &later, false);
        append(log, &mut later, guard).unwrap();
    });
}

#[test]
fn nobody_verifies_where_that_is_off() {
    with_log(|log| {
        let mut first = batch(0, 0);
        let sent = SentRecords::find(&mut first).unwrap();
        log.append_as_leader(sent, 0, NOW, TransactionCheck::Unchecked).unwrap();
    });
}

#[test]
fn a_verification_ends_with_what_the_log_was_opened_for_and_with_a_truncation() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("t-0");
    let mut first = batch(0, 0);
    let guard = guard_of(&open(&directory), &first, false);
    let log = open(&directory);
    assert!(append(&log, &mut first, guard).is_err());
    append_verified(&log, &mut first).unwrap();
    let (mut second, before) = (batch(0, 1), log.log_end_offset());
    end(&log, 0, false).unwrap();
    let guard = guard_of(&log, &second, false);
    log.truncate_to(Offset(before), NOW).unwrap();
    assert_eq!(log.first_unstable_offset(), Some(0), "the transaction is open again");
    log.truncate_to(Offset(0), NOW).unwrap();
    assert!(append(&log, &mut second, guard).is_err());
}

#[test]
fn verifications_expire_with_idle_producers() {
    let directory = tempfile::tempdir().unwrap();
    let how = OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: NOW };
    let config = pybroker_storage::LogConfig { producer_id_expiration_ms: 100, ..config() };
    let (log, _) = Log::open(&directory.path().join("t-0"), config, how).unwrap();
    let mut first = batch(0, 0);
    let guard = guard_of(&log, &first, false);
    log.forget_old(NOW + 99);
    assert_eq!(guard_of(&log, &first, false), guard);
    log.forget_old(NOW + 100);
    assert!(append(&log, &mut first, guard).is_err());
}

#[test]
fn verifications_that_nobody_uses_are_bounded() {
    with_log(|log| {
        let header = BatchHeader::parse(&batch(0, 0)).unwrap();
        let verify = |producer_id| {
            let beginning = BeginningTransaction { producer_id, ..beginning(&header, false) };
            log.begin_verification(beginning, NOW).unwrap()
        };
        let first = verify(1);
        assert_eq!(verify(1), first);
        (2..40_000).for_each(|producer| _ = verify(producer));
        assert_ne!(verify(1), first, "it made room");
        let mut batch = batch(0, 0);
        assert!(append(log, &mut batch, first).is_err());
    });
}

/// What may happen to one producer's transactions in a log.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A batch is to be appended: its coordinator is asked.
    Query,
    /// The coordinator's answer to the question that has waited longest comes, and the batch is appended.
    Response,
    /// The transaction ends, if there is one.
    End { commit: bool },
}

proptest! {
    /// However late an answer is: a batch is appended when its transaction is open, or when no marker has come and no other
    /// batch has begun the transaction since the coordinator was asked.
    #[test]
    fn no_answer_that_is_older_than_the_last_end_begins_a_transaction(
        steps in prop::collection::vec(
            prop_oneof![
                3 => Just(Step::Query),
                3 => Just(Step::Response),
                2 => any::<bool>().prop_map(|commit| Step::End { commit }),
            ],
            1..40,
        ),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let log = open(&directory.path().join("t-0"));
        let (mut sequence, mut is_open, mut round) = (0, false, 0);
        let mut requested = std::collections::VecDeque::new();
        for step in steps {
            match step {
                Step::Query => {
                    let guard = guard_of(&log, &batch(0, sequence), false);
                    prop_assert_eq!(guard.is_none(), is_open);
                    requested.push_back((guard, round));
                }
                Step::Response => {
                    let Some((guard, requested_in)) = requested.pop_front() else { continue };
                    let appended = append(&log, &mut batch(0, sequence), guard);
                    prop_assert_eq!(appended.is_ok(), is_open || (guard.is_some() && requested_in == round));
                    if appended.is_ok() {
                        round += i32::from(!is_open);
                        (is_open, sequence) = (true, sequence + 1);
                    }
                }
                Step::End { commit } => {
                    let marker = EndMarker { commit, coordinator_epoch: 0 };
                    let mut bytes = marker.build(ProducerId(1), 0, NOW).unwrap();
                    log.append_as_coordinator_unsynced(&mut bytes, 0, NOW, TransactionCheck::Unchecked, false).unwrap();
                    (is_open, round) = (false, round + 1);
                }
            }
            log.complete_transactions(log.log_end_offset());
            prop_assert_eq!(log.first_unstable_offset().is_some(), is_open);
        }
    }
}

#[test]
fn an_epoch_that_somebody_makes_up_does_not_hold_up_the_producer() {
    with_log(|log| {
        // It is refused by the coordinator, and nothing of it is written.
        guard_of(log, &batch(i16::MAX, 0), true).unwrap();
        for (epoch, sequence) in [(0, 0), (1, 0), (3, 0)] {
            let guard = guard_of(log, &batch(epoch, sequence), true);
            append(log, &mut batch(epoch, sequence), guard).unwrap();
            append(log, &mut batch(epoch, sequence + 1), None).unwrap();
            end(log, epoch + 1, true).unwrap();
            guard_of(log, &batch(i16::MAX, 0), true).unwrap();
        }
        // Nor while its transaction is open.
        let guard = guard_of(log, &batch(5, 0), true);
        append(log, &mut batch(5, 0), guard).unwrap();
        let _ = log.begin_verification(beginning(&BatchHeader::parse(&batch(i16::MAX, 0)).unwrap(), true), NOW);
        append(log, &mut batch(5, 1), None).unwrap();
    });
}
