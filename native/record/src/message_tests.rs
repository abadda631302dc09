//! Formats v0 and v1: built messages read back equal, conversion keeps the records, and invalid bytes are rejected
//! with the right error.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;

const MOST: usize = 1 << 24;
const RULES: ValidateRules = ValidateRules {
    max_message_bytes: 1 << 20,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: i64::MAX,
    now_ms: 0,
    require_keys: false,
    max_decompressed_bytes: MOST,
};
/// The codecs of formats v0 and v1.
const OLD_CODECS: [Compression; 4] = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4];

/// Offset, timestamp, key and value.
type Owned = (i64, i64, Option<Vec<u8>>, Option<Vec<u8>>);

fn records() -> impl Strategy<Value = Vec<Owned>> {
    let part = || prop::option::of(prop::collection::vec(any::<u8>(), 0..300));
    let record = (1_i64..5, 0_i64..1 << 50, part(), part());
    (0_i64..1 << 40, prop::collection::vec(record, 1..30)).prop_map(|(first, records)| {
        let mut next = first;
        let placed = |(gap, timestamp, key, value)| {
            let record = (next, timestamp, key, value);
            next += gap;
            record
        };
        records.into_iter().map(placed).collect()
    })
}

fn set_of(magic: i8, codec: Compression, records: &[Owned]) -> Vec<u8> {
    let mut builder = MessageSetBuilder::new(magic, codec, TimestampType::CreateTime);
    for (offset, timestamp, key, value) in records {
        let (offset, timestamp) = (*offset, *timestamp);
        builder.append(&NewMessage { offset, timestamp, key: key.as_deref(), value: value.as_deref() });
    }
    let mut out = Vec::new();
    builder.finish(&mut out).unwrap();
    out
}

/// Builds a v2 batch of the records, with consecutive offsets from that of the first one.
fn batch_of(codec: Compression, records: &[Owned]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(codec, None, 1 << 24);
    for (_, timestamp, key, value) in records {
        let headers: &[RecordHeader<'_>] = &[(b"old formats have none", None)];
        builder.try_append(*timestamp, key.as_deref(), value.as_deref(), headers).unwrap();
    }
    let mut out = Vec::new();
    builder.finish(7, 1, 3, &mut out).unwrap();
    set_base_offset(&mut out, records[0].0);
    out
}

/// Returns every record of stored batches of any format.
fn read(mut stored: &[u8]) -> Vec<Owned> {
    let (mut found, mut scratch) = (Vec::new(), Vec::new());
    while !stored.is_empty() {
        let header = BatchHeader::parse_stored(stored).unwrap();
        let (batch, rest) = stored.split_at(header.size());
        assert_eq!(header.crc, batch_crc(batch));
        let before = found.len();
        let visit = |record: StoredRecord<'_>| {
            let StoredRecord { offset, timestamp, key, value, .. } = record;
            found.push((offset, timestamp, key.map(<[u8]>::to_vec), value.map(<[u8]>::to_vec)));
            ControlFlow::Continue(())
        };
        visit_records(&header, batch, &mut scratch, MOST, visit).unwrap();
        assert_eq!(found.last().unwrap().0, header.last_offset(), "a wrapper has its last message's offset");
        let first = first_offset(&header, batch, &mut scratch, MOST).unwrap();
        assert_eq!(first, found[before].0, "and knows that of its first");
        stored = rest;
    }
    found
}

/// Returns the records as read from a format: v0 has no timestamps.
fn as_read(magic: i8, records: &[Owned]) -> Vec<Owned> {
    let left = |(offset, timestamp, key, value): &Owned| {
        (*offset, if magic == 0 { -1 } else { *timestamp }, key.clone(), value.clone())
    };
    records.iter().map(left).collect()
}

/// Returns the records with consecutive offsets from `first`.
fn counted(first: i64, records: &[Owned]) -> Vec<Owned> {
    let place = |(offset, (_, timestamp, key, value)): (i64, &Owned)| (offset, *timestamp, key.clone(), value.clone());
    (first..).zip(records).map(place).collect()
}

/// Bytes printed by DumpLogSegments of Kafka 0.10: timestamp, key, value, checksum, and the size in the log.
#[test]
fn nine_messages_of_a_log_of_kafka_0_10() {
    const CONNECT: &str = r#"{"schema":null,"payload":null}"#;
    let connect = |payload: &str| format!(r#"{{"schema":{{"type":"string","optional":false}},"payload":"{payload}"}}"#);
    let rows: [(i64, Option<&str>, String, u32, usize); 9] = [
        (1_490_746_340_519, None, "4".into(), 442_199_113, 35),
        (1_490_746_347_162, None, "10".into(), 4_005_880_382, 36),
        (1_490_848_047_199, Some(CONNECT), connect("kafka-connect"), 2_697_874_837, 135),
        (1_490_962_508_781, Some(CONNECT), connect("restful test"), 2_046_084_259, 134),
        (1_491_039_692_562, None, "connect-distributed".into(), 1_188_385_350, 53),
        (1_487_165_556_824, None, "c".into(), 1_269_164_006, 35),
        (1_487_165_689_780, None, "f".into(), 3_541_136_778, 35),
        (1_487_163_989_090, Some("a"), "a".into(), 2_783_563_669, 36),
        (1_487_163_998_112, Some("b"), "b".into(), 740_192_312, 36),
    ];
    for (offset, (timestamp, key, value, crc, size)) in (0_i64..).zip(rows) {
        let (key, value) = (key.map(|key| key.as_bytes().to_vec()), Some(value.into_bytes()));
        let record = (offset, timestamp, key.clone(), value.clone());
        let set = set_of(1, Compression::None, std::slice::from_ref(&record));
        assert_eq!(set.len(), size);
        let message = Messages::new(&set).next().unwrap().unwrap();
        assert_eq!((message.crc, message.check_crc()), (crc, Ok(())));
        assert_eq!((message.timestamp, message.key, message.value), (timestamp, key.as_deref(), value.as_deref()));
        let mut batch = Vec::new();
        up_convert(&set, &RULES, None, &mut Vec::new(), &mut batch).unwrap();
        set_base_offset(&mut batch, offset);
        let header = BatchHeader::parse(&batch).unwrap();
        assert_eq!(read(&batch), [record], "as a batch it says the same");
        let mut again = Vec::new();
        down_convert(&header, &batch, OlderFormat { magic: 1, from: 0 }, &mut Vec::new(), MOST, &mut again).unwrap();
        assert_eq!(again, set, "and gives the same bytes back");
    }
}

#[test]
fn what_no_old_producer_sends_is_refused_by_meaning() {
    let record = |offset, timestamp, key: Option<&[u8]>| (offset, timestamp, key.map(<[u8]>::to_vec), Some(vec![7]));
    let (one, keyed) = (record(0, 1000, None), record(1, 2000, Some(b"k")));
    let both = [one.clone(), keyed];
    let convert = |set: &[u8], rules| up_convert(set, &rules, None, &mut Vec::new(), &mut Vec::new());
    let is_invalid = |set: &[u8]| matches!(convert(set, RULES), Err(InvalidBatch::InvalidRecord { .. }));
    let plain = set_of(1, Compression::None, &both);
    let wrapped = set_of(1, Compression::Gzip, &both);
    assert!(is_invalid(&[&wrapped[..], &plain[..]].concat()), "a wrapper beside others");
    assert!(is_invalid(&[set_of(0, Compression::None, &both), plain.clone()].concat()), "two formats");
    let wrap = |magic, inner: &[u8]| {
        let mut packed = Vec::new();
        compress(Compression::Gzip, None, inner, &mut packed).unwrap();
        // An uncompressed message that is marked as a wrapper.
        let mut set = set_of(magic, Compression::None, &[(5, 1000, None, Some(packed))]);
        set[17] |= Compression::Gzip as u8;
        let crc = crc32(&set[16..]);
        set[12..16].copy_from_slice(&crc.to_be_bytes());
        set
    };
    assert!(is_invalid(&wrap(1, &wrapped)), "a wrapper in a wrapper");
    assert!(is_invalid(&wrap(0, &plain)), "v1 in v0");
    assert!(is_invalid(&wrap(1, &[])), "nothing in it");
    assert!(is_invalid(&wrap(1, &set_of(1, Compression::None, &[record(9, 0, None)]))), "more offsets than it has");
    let mut broken = plain.clone();
    broken[20] ^= 1;
    assert!(matches!(convert(&broken, RULES), Err(InvalidBatch::Corrupt(_))));
    assert!(matches!(convert(&wrap(1, &broken), RULES), Err(InvalidBatch::Corrupt(_))), "inner checksums count too");
    assert!(matches!(convert(&plain[..plain.len() - 1], RULES), Err(InvalidBatch::Corrupt(_))), "cut");
    let mut zstd = wrapped.clone();
    zstd[17] = Compression::Zstd as u8;
    let crc = crc32(&zstd[16..]);
    zstd[12..16].copy_from_slice(&crc.to_be_bytes());
    assert_eq!(convert(&zstd, RULES), Err(InvalidBatch::UnsupportedCompression(4)));
    let large = ValidateRules { max_message_bytes: 30, ..RULES };
    assert!(matches!(convert(&plain, large), Err(InvalidBatch::TooLarge { limit: 30, .. })));
    let tight = ValidateRules { max_decompressed_bytes: 30, ..RULES };
    assert_eq!(convert(&wrapped, tight), Err(InvalidBatch::DecompressedTooLarge { limit: 30 }));
    let blamed = |set: &[u8], rules| {
        let refused = convert(set, rules).unwrap_err();
        let records: Vec<i32> = refused.record_errors().iter().map(|(index, _)| *index).collect();
        (matches!(refused, InvalidBatch::InvalidTimestamp { .. }), records)
    };
    let keys = ValidateRules { require_keys: true, ..RULES };
    assert_eq!(blamed(&plain, keys), (false, vec![0]));
    assert_eq!(blamed(&wrapped, keys), (false, vec![0]));
    let late = ValidateRules { now_ms: 2000, timestamp_before_max_ms: 10, ..RULES };
    assert_eq!(blamed(&wrapped, late), (true, vec![0]));
    let mut stamped = MessageSetBuilder::new(1, Compression::Lz4, TimestampType::LogAppendTime);
    stamped.append(&NewMessage { offset: 0, timestamp: 5, key: None, value: None });
    let mut set = Vec::new();
    stamped.finish(&mut set).unwrap();
    assert_eq!(blamed(&set, RULES), (true, vec![0]), "the type of a timestamp is the broker's to set");
}

#[test]
fn a_wrapper_under_log_append_time_has_one_time_for_all() {
    let mut set = set_of(1, Compression::Snappy, &counted(4, &vec![(0, 1000, None, None); 3]));
    set[17] |= 8;
    set[18..26].copy_from_slice(&77_i64.to_be_bytes());
    let crc = crc32(&set[16..]);
    set[12..16].copy_from_slice(&crc.to_be_bytes());
    let places: Vec<(i64, i64)> = read(&set).iter().map(|(offset, timestamp, ..)| (*offset, *timestamp)).collect();
    assert_eq!(places, [(4, 77), (5, 77), (6, 77)]);
}

#[test]
fn a_wrapper_whose_offset_was_left_at_zero_counts_from_zero() {
    let mut set = set_of(1, Compression::Gzip, &counted(0, &vec![(0, 1000, None, None); 3]));
    set[0..8].fill(0);
    let wrapper = Message::parse(&set).unwrap();
    let mut scratch = Vec::new();
    let inner = Inner::new(&wrapper, decompress_set(&wrapper, MOST, &mut scratch).unwrap()).unwrap();
    assert_eq!(inner.map(|message| message.offset).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn what_older_formats_cannot_say_is_left_out() {
    let records = counted(10, &vec![(0, 1000, None, Some(vec![1])); 4]);
    let mut batch = batch_of(Compression::None, &records);
    let (mut scratch, mut out) = (Vec::new(), Vec::new());
    let header = BatchHeader::parse(&batch).unwrap();
    down_convert(&header, &batch, OlderFormat { magic: 1, from: 12 }, &mut scratch, MOST, &mut out).unwrap();
    assert_eq!(read(&out), records[2..], "records before the offset asked for");
    batch[22] |= 0x20;
    out.clear();
    let header = BatchHeader::parse(&batch).unwrap();
    down_convert(&header, &batch, OlderFormat { magic: 1, from: 0 }, &mut scratch, MOST, &mut out).unwrap();
    assert!(out.is_empty(), "control batches");
    let packed = batch_of(Compression::Zstd, &records);
    let header = BatchHeader::parse(&packed).unwrap();
    let refused = down_convert(&header, &packed, OlderFormat { magic: 1, from: 0 }, &mut scratch, MOST, &mut out);
    assert_eq!(refused, Err(RecordError::Codec(4)));
}

proptest! {
    #[test]
    fn sets_come_back_in_every_codec(records in records(), magic in 0_i8..2, codec in 0..OLD_CODECS.len()) {
        let set = set_of(magic, OLD_CODECS[codec], &records);
        prop_assert_eq!(read(&set), as_read(magic, &records));
    }

    #[test]
    fn a_set_becomes_a_batch_and_a_set_again(
        records in records(), magic in 0_i8..2, codec in 0..OLD_CODECS.len(), target in prop::option::of(0_i8..4),
    ) {
        let set = set_of(magic, OLD_CODECS[codec], &records);
        let target = target.map(|code| Compression::from_code(code).unwrap());
        let (mut batch, mut scratch) = (b"before".to_vec(), Vec::new());
        up_convert(&set, &RULES, target.map(|compression| Codec { compression, level: None }), &mut scratch, &mut batch).unwrap();
        let batch = &mut batch[6..];
        prop_assert!(validate_batch(batch, &RULES, &mut scratch).is_ok());
        set_base_offset(batch, 1 << 33);
        let header = BatchHeader::parse(batch).unwrap();
        prop_assert_eq!(header.compression(), Ok(target.unwrap_or(OLD_CODECS[codec])));
        prop_assert_eq!(header.max_timestamp, if magic == 0 { -1 } else { records.iter().map(|r| r.1).max().unwrap() });
        let expected = as_read(magic, &counted(1 << 33, &records));
        prop_assert_eq!(&read(batch), &expected);
        let mut again = Vec::new();
        down_convert(&header, batch, OlderFormat { magic, from: 0 }, &mut scratch, MOST, &mut again).unwrap();
        prop_assert_eq!(read(&again), expected);
    }

    #[test]
    fn a_batch_becomes_a_set(records in records(), magic in 0_i8..2, codec in 0..OLD_CODECS.len()) {
        let batch = batch_of(OLD_CODECS[codec], &records);
        let header = BatchHeader::parse(&batch).unwrap();
        let mut out = Vec::new();
        down_convert(&header, &batch, OlderFormat { magic, from: 0 }, &mut Vec::new(), MOST, &mut out).unwrap();
        prop_assert_eq!(read(&out), as_read(magic, &counted(records[0].0, &records)));
        prop_assert!(Messages::new(&out).all(|message| message.unwrap().compression() == Ok(OLD_CODECS[codec])));
    }

    #[test]
    fn v1_becomes_v0(records in records(), codec in 0..OLD_CODECS.len()) {
        let set = set_of(1, OLD_CODECS[codec], &records);
        let (mut out, mut rest) = (Vec::new(), &set[..]);
        while let Ok(header) = BatchHeader::parse_stored(rest) {
            let (message, after) = rest.split_at(header.size());
            down_convert(&header, message, OlderFormat { magic: 0, from: 0 }, &mut Vec::new(), MOST, &mut out).unwrap();
            rest = after;
        }
        prop_assert_eq!(read(&out), as_read(0, &records));
    }

    #[test]
    fn a_batch_keeps_its_records_in_another_codec(records in records(), from in 0_i8..5, to in 0_i8..5) {
        let [from, to] = [from, to].map(|code| Compression::from_code(code).unwrap());
        let batch = batch_of(from, &records);
        let mut scratch = Vec::new();
        let header = BatchHeader::parse(&batch).unwrap();
        let section = records_section(&header, &batch, &mut scratch, MOST).unwrap();
        let mut out = Vec::new();
        let made = recompress(&header, section, Codec { compression: to, level: None }, &mut out).unwrap();
        prop_assert_eq!(BatchHeader::parse(&out), Ok(made));
        prop_assert_eq!(made.compression(), Ok(to));
        prop_assert_eq!((made.producer_id, made.producer_epoch, made.base_sequence), (7, 1, 3));
        prop_assert_eq!(read(&out), read(&batch));
    }

    #[test]
    fn a_changed_byte_of_a_message_is_refused(
        records in records(), magic in 0_i8..2, codec in 0..OLD_CODECS.len(), at: prop::sample::Index, bit in 0_u8..8,
    ) {
        let mut set = set_of(magic, OLD_CODECS[codec], &records[..1]);
        let at = 8 + at.index(set.len() - 8);
        set[at] ^= 1 << bit;
        prop_assert!(up_convert(&set, &RULES, None, &mut Vec::new(), &mut Vec::new()).is_err());
    }
}
