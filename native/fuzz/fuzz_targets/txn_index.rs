//! Arbitrary bytes into `decoders/txn_index.rs`.
#![no_main]

#[path = "../decoders/txn_index.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
