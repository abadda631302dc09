//! System calls that `std` does not offer, each with a portable fallback, and the way all changes of files go.

mod change;
#[cfg(any(test, feature = "fault-injection"))]
pub mod faults;
pub mod file;
pub mod file_system;
pub mod scheduling;
