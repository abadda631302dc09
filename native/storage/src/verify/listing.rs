//! The files of a log's directory, by kind.

use std::fs;
use std::path::Path;

use crate::LogError;
use crate::directory::log_dir::{
    LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, parse_segment_file_name,
};
use crate::recovery::set_aside::is_set_aside;

/// Base offsets and names, ascending.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) logs: Vec<i64>,
    pub(super) snapshots: Vec<i64>,
    /// Indexes without a segment.
    pub(super) orphans: Vec<String>,
    pub(super) set_aside: Vec<(String, u64)>,
}

impl Listing {
    pub(super) fn read(directory: &Path) -> Result<Self, LogError> {
        let (mut listing, mut indexes) = (Self::default(), Vec::new());
        for entry in fs::read_dir(directory).map_err(LogError::io(directory))? {
            let entry = entry.map_err(LogError::io(directory))?;
            let file_name = entry.file_name();
            let Some(name) = file_name.to_str() else { continue };
            let offset = |suffix| parse_segment_file_name(name, suffix);
            if let Some(base) = offset(LOG_SUFFIX) {
                listing.logs.push(base);
            } else if let Some(at) = offset(SNAPSHOT_SUFFIX) {
                listing.snapshots.push(at);
            } else if let Some(base) =
                [OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX].into_iter().find_map(offset)
            {
                indexes.push((base, name.to_owned()));
            } else if is_set_aside(name) {
                listing.set_aside.push((name.to_owned(), entry.metadata().map_or(0, |found| found.len())));
            }
        }
        listing.logs.sort_unstable();
        listing.snapshots.sort_unstable();
        listing.set_aside.sort_unstable();
        indexes.sort_unstable();
        let orphans = indexes.into_iter().filter(|(base, _)| listing.logs.binary_search(base).is_err());
        listing.orphans = orphans.map(|(_, name)| name).collect();
        Ok(listing)
    }
}
