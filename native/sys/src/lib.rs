//! System calls that `std` lacks, each with a portable fallback, and the single path of all file changes.

mod change;
#[cfg(any(test, feature = "fault-injection"))]
pub mod faults;
pub mod file;
pub mod file_system;
pub mod scheduling;
