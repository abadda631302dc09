//! Index files of aborted transactions (`.txnindex`).

use pybroker_storage::txn_index;

/// Decodes the bytes as such a file; what is decoded says the same bytes again, but for versions: any up to ours is read.
pub fn decode(bytes: &[u8]) {
    let Ok(entries) = txn_index::decode(bytes) else { return };
    let (chunks, torn) = bytes.as_chunks::<{ txn_index::ENTRY_BYTES }>();
    assert!(torn.is_empty() && chunks.len() == entries.len());
    for (entry, chunk) in entries.iter().zip(chunks) {
        assert_eq!(entry.encode()[2..], chunk[2..]);
    }
}
