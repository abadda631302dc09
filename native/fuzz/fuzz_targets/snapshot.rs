//! Arbitrary bytes into `decoders/snapshot.rs`.
#![no_main]

#[path = "../decoders/snapshot.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
