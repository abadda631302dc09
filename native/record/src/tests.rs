//! Building, validating and reading together: a built batch is valid and reads back equal, and a damaged one is
//! rejected.

use proptest::prelude::*;

use super::*;

const RULES: ValidateRules = ValidateRules {
    max_message_bytes: 1 << 20,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: i64::MAX,
    now_ms: 0,
    require_keys: false,
    max_decompressed_bytes: 1 << 24,
};

type Owned = (i64, Option<Vec<u8>>, Option<Vec<u8>>, Vec<(Vec<u8>, Option<Vec<u8>>)>);

fn records() -> impl Strategy<Value = Vec<Owned>> {
    let part = || prop::option::of(prop::collection::vec(any::<u8>(), 0..300));
    let headers = prop::collection::vec((prop::collection::vec(any::<u8>(), 0..9), part()), 0..3);
    prop::collection::vec((0_i64..1 << 50, part(), part(), headers), 1..30)
}

fn codec() -> impl Strategy<Value = Compression> {
    (0_i8..5).prop_map(|code| Compression::from_code(code).unwrap())
}

fn build(records: &[Owned], codec: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new(codec, None, 1 << 20);
    for (timestamp, key, value, headers) in records {
        let headers: Vec<RecordHeader<'_>> = headers.iter().map(|(k, v)| (&k[..], v.as_deref())).collect();
        assert!(builder.try_append(*timestamp, key.as_deref(), value.as_deref(), &headers).is_some());
    }
    let mut out = Vec::new();
    builder.finish(7, 1, 3, &mut out).unwrap();
    out
}

#[test]
fn a_full_builder_takes_no_more_and_is_empty_after_it_is_finished() {
    let mut builder = BatchBuilder::new(Compression::None, None, 200);
    let taken = (0..100).take_while(|_| builder.try_append(5, None, Some(&[0; 20]), &[]).is_some()).count();
    assert!((4..6).contains(&taken), "{taken}");
    let mut out = Vec::new();
    builder.finish(-1, -1, -1, &mut out).unwrap();
    assert!(out.len() <= 200 && builder.is_empty());
    assert!(builder.try_append(5, None, Some(&[0; 900]), &[]).is_some(), "a first record of any size is taken");
}

#[test]
fn a_builder_that_exchanges_buffers_gives_the_same_bytes_as_one_that_appends() {
    let mut builder = BatchBuilder::new(Compression::None, None, 5000);
    let (mut apart, mut together) = (Vec::new(), Vec::new());
    for round in 0..4 {
        for out in [&mut apart, &mut together] {
            let value = vec![round; 100 + 1000 * usize::from(round % 2)];
            while builder.try_append(i64::from(round), Some(b"k"), Some(&value), &[]).is_some() {}
            builder.finish(1, 2, 3, out).unwrap();
        }
        assert!(together.ends_with(&apart));
        apart.clear();
    }
    assert_eq!(Batches::new(&together).filter(|batch| batch.is_ok()).count(), 4);
}

proptest! {
    #[test]
    fn a_batch_in_a_used_buffer_is_the_one_in_a_new_buffer(
        sizes in prop::collection::vec(prop_oneof![0..300_usize, 0..20_000_usize], 0..60),
        spare in prop::collection::vec(any::<u8>(), 0..40_000),
        codec in codec(),
    ) {
        let mut used = BatchBuilder::new(codec, None, 1 << 20);
        used.try_append(9, None, Some(b"of the batch before"), &[]);
        used.finish_with(0, 0, 0, spare.clone()).unwrap();
        let mut new = BatchBuilder::new(codec, None, 1 << 20);
        for (number, size) in sizes.iter().enumerate() {
            let value = vec![number as u8; *size];
            for builder in [&mut used, &mut new] {
                builder.try_append(number as i64, Some(b"key"), Some(&value), &[]);
            }
        }
        let mut out = vec![0];
        new.finish(7, 1, 3, &mut out).unwrap();
        let batch = used.finish_with(7, 1, 3, spare).unwrap();
        prop_assert_eq!(&batch, &out[1..]);
        prop_assert_eq!(&batch[17..21], &batch_crc(&batch).to_be_bytes()[..]);
    }
}

#[test]
fn what_a_client_may_not_send_is_refused_by_meaning() {
    let record: Owned = (1000, None, Some(b"v".to_vec()), Vec::new());
    let mut scratch = Vec::new();
    let batch = build(std::slice::from_ref(&record), Compression::None);
    let keyed = ValidateRules { require_keys: true, ..RULES };
    let refused = validate_batch(&batch, &keyed, &mut scratch).unwrap_err();
    assert_eq!(refused.record_errors().len(), 1);
    let late = ValidateRules { now_ms: 10_000, timestamp_before_max_ms: 5_000, ..RULES };
    assert!(matches!(validate_batch(&batch, &late, &mut scratch), Err(InvalidBatch::InvalidTimestamp { .. })));
    let small = ValidateRules { max_message_bytes: 60, ..RULES };
    assert!(matches!(validate_batch(&batch, &small, &mut scratch), Err(InvalidBatch::TooLarge { limit: 60, .. })));
    let mut control = batch.clone();
    control[22] |= 0x20;
    seal(&mut control);
    assert!(matches!(validate_batch(&control, &RULES, &mut scratch), Err(InvalidBatch::InvalidRecord { .. })));
    let mut placed = batch.clone();
    set_base_offset(&mut placed, 5);
    assert!(matches!(validate_batch(&placed, &RULES, &mut scratch), Err(InvalidBatch::InvalidRecord { .. })));
    let mut stamped = batch.clone();
    BatchHeader::parse(&stamped).unwrap().set_log_append_time(&mut stamped, 1000);
    assert!(matches!(validate_batch(&stamped, &RULES, &mut scratch), Err(InvalidBatch::InvalidTimestamp { .. })));
    let decompressing = build(&[(1000, None, Some(vec![0; 5000]), Vec::new())], Compression::Zstd);
    let tight = ValidateRules { max_decompressed_bytes: 4096, ..RULES };
    let refused = validate_batch(&decompressing, &tight, &mut scratch);
    assert_eq!(refused, Err(InvalidBatch::DecompressedTooLarge { limit: 4096 }));
    let mut codec = batch.clone();
    codec[22] |= 7;
    seal(&mut codec);
    assert_eq!(validate_batch(&codec, &RULES, &mut scratch), Err(InvalidBatch::UnsupportedCompression(7)));
    let mut old = batch;
    old[16] = 1;
    assert_eq!(validate_batch(&old, &RULES, &mut scratch), Err(InvalidBatch::UnsupportedFormat(1)));
}

#[test]
fn every_record_that_breaks_a_rule_is_named() {
    let records: Vec<Owned> =
        [(5_000, None), (9_000, Some(vec![1])), (1, None)].map(|(time, key)| (time, key, None, Vec::new())).into();
    let batch = build(&records, Compression::Lz4);
    let named = |rules: ValidateRules| {
        let refused = validate_batch(&batch, &rules, &mut Vec::new()).unwrap_err();
        let indexes: Vec<i32> = refused.record_errors().iter().map(|(index, _)| *index).collect();
        (matches!(refused, InvalidBatch::InvalidTimestamp { .. }), indexes)
    };
    let late = ValidateRules { now_ms: 9_000, timestamp_before_max_ms: 10, timestamp_after_max_ms: 10, ..RULES };
    assert_eq!(named(late), (true, vec![0, 2]));
    assert_eq!(named(ValidateRules { require_keys: true, ..RULES }), (false, vec![0, 2]));
    assert_eq!(named(ValidateRules { require_keys: true, ..late }), (false, vec![0, 2]), "not time alone");
}

#[test]
fn a_stated_largest_timestamp_is_put_right_and_no_timestamp_breaks_no_rule() {
    let mut batch = build(&[(7, None, None, Vec::new()), (9, None, None, Vec::new())], Compression::None);
    BatchHeader::parse(&batch).unwrap().set_max_timestamp(&mut batch, i64::MAX);
    assert_eq!(validate_batch(&batch, &RULES, &mut Vec::new()).unwrap().max_timestamp, 9);
    let timeless = build(&[(-1, None, None, Vec::new())], Compression::None);
    let strict = ValidateRules { now_ms: 9_000, timestamp_before_max_ms: 10, timestamp_after_max_ms: 10, ..RULES };
    assert_eq!(validate_batch(&timeless, &strict, &mut Vec::new()).unwrap().max_timestamp, -1);
}

#[test]
fn the_append_time_is_stamped_with_a_valid_checksum() {
    let mut batch = build(&[(5, None, None, Vec::new())], Compression::None);
    let mut stamped = BatchHeader::parse(&batch).unwrap();
    stamped.set_log_append_time(&mut batch, 99);
    assert_eq!(BatchHeader::parse(&batch), Ok(stamped), "the header is what the bytes say");
    set_base_offset(&mut batch, 42);
    set_partition_leader_epoch(&mut batch, 3);
    let header = BatchHeader::parse(&batch).unwrap();
    assert_eq!((header.timestamp_type(), header.max_timestamp), (TimestampType::LogAppendTime, 99));
    assert_eq!((header.base_offset, header.partition_leader_epoch), (42, 3));
    assert_eq!(header.crc, batch_crc(&batch));
}

proptest! {
    #[test]
    fn what_is_built_is_valid_and_comes_back(records in records(), codec in codec()) {
        let batch = build(&records, codec);
        let mut scratch = Vec::new();
        let header = validate_batch(&batch, &RULES, &mut scratch).unwrap();
        prop_assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (7, 1, 3));
        prop_assert_eq!(header.max_timestamp, records.iter().map(|record| record.0).max().unwrap());
        let section = records_section(&header, &batch, &mut scratch, 1 << 24).unwrap();
        let mut read = Records::new(section, header.record_count);
        for (timestamp, key, value, headers) in &records {
            let record = read.next().unwrap().unwrap();
            prop_assert_eq!(header.base_timestamp + record.timestamp_delta, *timestamp);
            prop_assert_eq!((record.key, record.value), (key.as_deref(), value.as_deref()));
            let found: Vec<_> = Headers::new(&record).map(|header| header.unwrap()).collect();
            let wanted: Vec<_> = headers.iter().map(|(k, v)| (&k[..], v.as_deref())).collect();
            prop_assert_eq!(found, wanted);
        }
        prop_assert!(read.next().is_none());
    }

    #[test]
    fn a_changed_byte_under_the_checksum_is_refused(
        records in records(), codec in codec(), at: prop::sample::Index, bit in 0_u8..8,
    ) {
        let mut batch = build(&records, codec);
        let at = 17 + at.index(batch.len() - 17);
        batch[at] ^= 1 << bit;
        prop_assert!(validate_batch(&batch, &RULES, &mut Vec::new()).is_err());
    }

    #[test]
    fn damage_that_is_sealed_again_never_panics(
        records in records(), codec in codec(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut batch = build(&records, codec);
        for (at, byte) in damage {
            let at = 21 + at.index(batch.len() - 21);
            batch[at] = byte;
        }
        seal(&mut batch);
        let mut scratch = Vec::new();
        let _ = validate_batch(&batch, &RULES, &mut scratch);
        let header = BatchHeader::parse(&batch).unwrap();
        if let Ok(section) = records_section(&header, &batch, &mut scratch, 1 << 16) {
            for record in Records::new(section, header.record_count).flatten() {
                let _ = Headers::new(&record).count();
            }
        }
    }

    #[test]
    fn the_light_walk_and_the_careful_one_agree(
        records in records(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        require_keys: bool, now_ms in 0_i64..1 << 50, spread in 0_i64..1 << 49,
    ) {
        let mut batch = build(&records, Compression::None);
        for (at, byte) in damage {
            let at = 61 + at.index(batch.len() - 61);
            batch[at] = byte;
        }
        seal(&mut batch);
        let (timestamp_before_max_ms, timestamp_after_max_ms) = (spread, spread);
        let rules = ValidateRules { require_keys, now_ms, timestamp_before_max_ms, timestamp_after_max_ms, ..RULES };
        let (earliest, latest) = (now_ms - spread, now_ms + spread);
        let header = BatchHeader::parse(&batch).unwrap();
        let mut careful = Records::new(&batch[61..], header.record_count);
        let mut largest = -1;
        let fine = careful.by_ref().enumerate().all(|(index, record)| {
            let Ok(record) = record else { return false };
            let mut headers = Headers::new(&record);
            let timestamp = header.base_timestamp.wrapping_add(record.timestamp_delta);
            largest = largest.max(timestamp);
            headers.by_ref().all(|header| header.is_ok())
                && headers.rest().is_empty()
                && record.offset_delta == index as i32
                && (record.key.is_some() || !require_keys)
                && (timestamp == -1 || (earliest..=latest).contains(&timestamp))
        }) && careful.left() == 0;
        match validate_batch(&batch, &rules, &mut Vec::new()) {
            Ok(header) => prop_assert!(fine && header.max_timestamp == largest),
            Err(refused) => prop_assert!(!fine, "{}", refused),
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = BatchHeader::parse(&bytes);
        let _ = Batches::new(&bytes).count();
        let _ = Records::new(&bytes, 5).count();
        let _ = validate_batch(&bytes, &RULES, &mut Vec::new());
    }
}
