//! Record batches: parsing, decompressing, iterating, validating. Whatever the bytes, each ends in a value or an error.

use pybroker_record::{
    BatchHeader, Batches, Compression, HEADER_LEN, Headers, Records, TimestampType, ValidateRules, decompress,
    records_section, seal, validate_batch,
};

/// Nothing decompresses to more than this.
const MOST: usize = 1 << 18;

const RULES: ValidateRules = ValidateRules {
    max_message_bytes: 1 << 20,
    timestamp_type: TimestampType::CreateTime,
    timestamp_before_max_ms: 1 << 50,
    timestamp_after_max_ms: 1 << 50,
    now_ms: 1 << 40,
    require_keys: false,
    max_decompressed_bytes: MOST,
};

/// Decodes `bytes` as batches, as one batch whose length and checksum are right, as records, as compressed bytes.
pub fn decode(bytes: &[u8]) {
    for batch in Batches::new(bytes).flatten() {
        read(batch.1);
    }
    if bytes.len() >= HEADER_LEN {
        let mut batch = bytes.to_vec();
        let length = (batch.len() - 12) as i32;
        batch[8..12].copy_from_slice(&length.to_be_bytes());
        batch[16] = 2;
        // What else the header says decides early; the records should be reached.
        batch[0..8].fill(0);
        seal(&mut batch);
        read(&batch);
    }
    walk(bytes, i32::MAX);
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let mut out = Vec::new();
        if decompress(codec, bytes, MOST, &mut out).is_ok() {
            assert!(out.len() <= MOST);
        }
    }
}

/// What is valid can be read to its end.
fn read(batch: &[u8]) {
    let mut scratch = Vec::new();
    let valid = validate_batch(batch, &RULES, &mut scratch);
    let Ok(header) = BatchHeader::parse(batch) else { return };
    let Ok(section) = records_section(&header, batch, &mut scratch, MOST) else { return };
    let whole = walk(section, header.record_count);
    if let Ok(header) = valid {
        assert_eq!(whole, Some(header.record_count));
    }
}

/// The number of records, when all are sound.
fn walk(section: &[u8], count: i32) -> Option<i32> {
    let mut read = 0;
    for record in Records::new(section, count) {
        let record = record.ok()?;
        let mut headers = Headers::new(&record);
        if headers.by_ref().any(|header| header.is_err()) || !headers.rest().is_empty() {
            return None;
        }
        read += 1;
    }
    Some(read)
}
