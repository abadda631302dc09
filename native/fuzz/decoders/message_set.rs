//! Sets of v0 and v1 messages: parsing, decompressing, and the ways to v2 and back. Whatever the bytes, each ends in a value or
//! an error.

use std::ops::ControlFlow;

use pybroker_record::{
    BatchHeader, Inner, Message, Messages, OlderFormat, SentRecords, TimestampType, ValidateRules, crc32,
    decompress_set, down_convert, first_offset, up_convert, visit_records,
};

/// Nothing decompresses to more than this.
const MOST: usize = 1 << 18;

const RULES: ValidateRules = ValidateRules {
    max_message_bytes: 1 << 20,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: i64::MAX,
    timestamp_after_max_ms: i64::MAX,
    now_ms: 1 << 40,
    require_keys: false,
    max_decompressed_bytes: MOST,
};

/// Decodes `bytes` as a set, and as one message whose length, format and checksum are right.
pub fn decode(bytes: &[u8]) {
    set(bytes);
    if bytes.len() >= 34 {
        for magic in 0..2 {
            let mut message = bytes.to_vec();
            let length = (message.len() - 12) as i32;
            message[8..12].copy_from_slice(&length.to_be_bytes());
            message[16] = magic;
            let crc = crc32(&message[16..]);
            message[12..16].copy_from_slice(&crc.to_be_bytes());
            set(&message);
        }
    }
}

fn set(bytes: &[u8]) {
    let mut scratch = Vec::new();
    for message in Messages::new(bytes).flatten() {
        let _ = message.check_crc();
        inner(&message);
        stored(message.bytes);
    }
    let mut batch = Vec::new();
    if let Ok(header) = up_convert(bytes, &RULES, None, &mut scratch, &mut batch) {
        // What was taken can be given back.
        let mut again = Vec::new();
        let converted =
            down_convert(&header, &batch, OlderFormat { magic: 0, from: 0 }, &mut scratch, MOST, &mut again);
        assert!(converted.is_ok() && Messages::new(&again).all(|message| message.is_ok()));
    }
    let _ = SentRecords::find(&mut bytes.to_vec());
}

fn inner(wrapper: &Message<'_>) {
    let mut scratch = Vec::new();
    let Ok(set) = decompress_set(wrapper, MOST, &mut scratch) else { return };
    assert!(set.len() <= MOST);
    if let Ok(inner) = Inner::new(wrapper, set) {
        assert!(inner.count() > 0);
    }
}

fn stored(bytes: &[u8]) {
    let mut scratch = Vec::new();
    let Ok(header) = BatchHeader::parse_stored(bytes) else { return };
    let _ = visit_records(&header, bytes, &mut scratch, MOST, |_| ControlFlow::Continue(()));
    let _ = first_offset(&header, bytes, &mut scratch, MOST);
    let _ = down_convert(&header, bytes, OlderFormat { magic: 0, from: 0 }, &mut scratch, MOST, &mut Vec::new());
}
