//! Integration tests of the log, in one binary: each further one would be linked anew.

mod log_append;
mod log_compaction;
mod log_damaged_files;
mod log_fixture;
mod log_formats;
mod log_lookup;
mod log_model;
mod log_of_kafka;
mod log_recovery;
mod log_retention;
mod log_transactions;
mod log_verification;
