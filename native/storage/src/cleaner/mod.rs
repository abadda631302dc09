//! Log compaction: keeps only the last record of each key, at its original offset.
//!
//! Owns Kafka's algorithm. A pass collects the latest offset of each key in the dirty part of the log
//! ([`offset_map`]). Then it rewrites the segments from the first one on, several small ones into one ([`grouping`]).
//! The [`filter`] writes the retained part of each batch to a `.cleaned` file ([`output`]). A complete file replaces
//! its source segments in one step ([`swap`]). Reads and appends continue meanwhile. Which log to clean and when is
//! decided in `pybroker.storage`.

#[cfg(test)]
mod crash_tests;
mod filter;
mod grouping;
pub(crate) mod half_done;
mod map_fill;
mod offset_map;
#[cfg(test)]
mod old_message_tests;
mod old_messages;
mod output;
mod pass;
mod reader;
mod selection;
mod steps;
mod survey;
mod swap;
#[cfg(test)]
mod tests;
mod throttle;
mod transactions;

use crate::directory::log_dir::{LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX};

pub use pass::{CleanError, CleanLimits, CleanRange, Cleaned};
pub use survey::SegmentSurvey;
pub use throttle::Throttle;

/// Suffix of a file that a pass is writing.
pub(crate) const CLEANED_SUFFIX: &str = ".cleaned";
/// Suffix of a complete file that is about to replace others.
pub(crate) const SWAP_SUFFIX: &str = ".swap";
/// The suffixes of all files that a pass may write for a segment.
pub(crate) const OUTPUT_SUFFIXES: [&str; 4] = [LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX];
