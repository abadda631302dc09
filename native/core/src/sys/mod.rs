//! System calls that `std` does not offer, each with a portable fallback.

pub mod file;
