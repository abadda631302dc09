//! Arbitrary bytes into `decoders/batch.rs`.
#![no_main]

#[path = "../decoders/batch.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
