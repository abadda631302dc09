//! Arbitrary bytes into `decoders/message_set.rs`.
#![no_main]

#[path = "../decoders/message_set.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
