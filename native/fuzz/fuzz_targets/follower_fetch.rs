//! Arbitrary bytes into `decoders/follower_fetch.rs`.
#![no_main]

#[path = "../decoders/follower_fetch.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
