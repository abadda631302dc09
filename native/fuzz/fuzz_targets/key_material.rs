//! Arbitrary bytes into `decoders/key_material.rs`.
#![no_main]

#[path = "../decoders/key_material.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
