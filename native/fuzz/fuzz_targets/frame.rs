//! Arbitrary bytes into `decoders/frame.rs`.
#![no_main]

#[path = "../decoders/frame.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
