//! Arbitrary bytes into `decoders/tls_session.rs`.
#![no_main]

#[path = "../decoders/tls_session.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| decoder::decode(bytes));
