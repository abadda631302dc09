//! Arbitrary bytes into `decoders/raft_message.rs`.
#![no_main]

#[path = "../decoders/raft_message.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
