//! Index files of aborted transactions (`.txnindex`).

use pybroker_core::storage::txn_index;

/// Decodes the bytes as such a file; what is decoded says the same bytes again.
pub fn decode(bytes: &[u8]) {
    let Ok(entries) = txn_index::decode(bytes) else { return };
    let again: Vec<u8> = entries.iter().flat_map(txn_index::AbortedTxn::encode).collect();
    assert_eq!(again, bytes);
}
