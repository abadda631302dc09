//! Arbitrary bytes into `decoders/message.rs`.
#![no_main]

#[path = "../decoders/message.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
