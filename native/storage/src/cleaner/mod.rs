//! Compaction: of the records with one key only the last one stays, at the offset that it always had.
//!
//! Owns Kafka's algorithm. A pass first walks the dirty part of the log and notes the latest offset of each key
//! ([`offset_map`]), then rewrites the segments from the first one on, several small ones into one ([`grouping`]): each batch
//! goes through the [`filter`], what is left of it into a `.cleaned` file ([`output`]), and a finished file takes the place
//! of its segments in one step ([`swap`]). Readers and appends go on meanwhile. It must not know which log is worth a pass
//! or when: that is `pybroker.storage`'s decision.

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
/// Suffix of a file that is whole and about to take the place of others.
pub(crate) const SWAP_SUFFIX: &str = ".swap";
/// Every file that a pass may write for a segment.
pub(crate) const OUTPUT_SUFFIXES: [&str; 4] = [LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX];
