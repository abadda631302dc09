//! Snapshots of the producers' state (`.snapshot`).

use pybroker_record::crc32c;
use pybroker_storage::producer_snapshot;
use pybroker_storage::producer_state::ProducerStates;

/// Where the checksum and what it covers lie, behind the version.
const CRC: std::ops::Range<usize> = 2..6;

/// Decodes the bytes as such a file, as they are and with a right version and checksum. What is decoded is encoded again,
/// and these bytes mean the same.
pub fn decode(bytes: &[u8]) {
    let _ = producer_snapshot::decode(bytes);
    let Some(covered) = bytes.get(CRC.end..) else { return };
    let sealed = [&[0, 1], &crc32c(covered).to_be_bytes()[..], covered].concat();
    let Ok(entries) = producer_snapshot::decode(&sealed) else { return };
    let states = ProducerStates::restored(entries, 7);
    let again = producer_snapshot::decode(&producer_snapshot::encode(&states)).expect("our own bytes");
    assert_eq!(again.len(), states.iter().len());
    for (id, entry) in again {
        assert_eq!(Some(&entry), states.get(id));
    }
}
