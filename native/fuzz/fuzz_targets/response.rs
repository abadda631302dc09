//! Arbitrary bytes into `decoders/response.rs`.
#![no_main]

#[path = "../decoders/response.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
