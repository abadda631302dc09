//! The files that an opening finds in a log's directory.
//!
//! Owns the single listing of the directory: removes incomplete files during the listing, and files that are not in
//! the list are not opened. Reads no file.

use std::path::Path;

use crate::LogError;
use crate::cleaner::half_done;
use crate::directory::log_dir::{
    DELETED_SUFFIX, LEADER_EPOCH_FILE, LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX, parse_segment_file_name, remove_if_present,
};
use crate::recovery::set_aside;
use pybroker_sys::file;

/// The relevant files of a log's directory, ascending.
#[derive(Default)]
pub(super) struct Files {
    pub(super) logs: Vec<i64>,
    pub(super) snapshots: Vec<i64>,
    pub(super) txn_indexes: Vec<i64>,
    pub(super) offset_indexes: Vec<i64>,
    /// Whether `leader-epoch-checkpoint` exists.
    pub(super) has_epochs: bool,
    /// Names of indexes that had no segment and were removed.
    pub(super) orphans: Vec<String>,
}

impl Files {
    /// Lists the directory. Removes files marked as deleted and indexes without a segment. Undoes or completes
    /// interrupted cleaner passes.
    pub(super) fn list(directory: &Path) -> Result<Self, LogError> {
        let mut files = Self::default();
        let mut indexes = Vec::new();
        for file_name in file::names(directory).map_err(LogError::io(directory))? {
            let Some(name) = file_name.to_str() else { continue };
            let offset = |suffix| parse_segment_file_name(name, suffix);
            let index = [OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX].into_iter().find_map(offset);
            if let Some(base) = offset(LOG_SUFFIX) {
                files.logs.push(base);
            } else if let Some(at) = offset(SNAPSHOT_SUFFIX) {
                files.snapshots.push(at);
            } else if let Some(base) = index {
                files.txn_indexes.extend(offset(TXN_INDEX_SUFFIX));
                files.offset_indexes.extend(offset(OFFSET_INDEX_SUFFIX));
                indexes.push((base, name.to_owned()));
            } else if name.ends_with(DELETED_SUFFIX) || set_aside::is_unfinished(name) {
                remove_if_present(&directory.join(name))?;
            } else if half_done::is_left_over(name) {
                half_done::finish(directory)?;
                return Self::list(directory);
            } else {
                files.has_epochs |= name == LEADER_EPOCH_FILE;
            }
        }
        for list in [&mut files.logs, &mut files.snapshots, &mut files.txn_indexes, &mut files.offset_indexes] {
            list.sort_unstable();
        }
        for (base, name) in indexes {
            if files.logs.binary_search(&base).is_err() {
                remove_if_present(&directory.join(&name))?;
                files.orphans.push(name);
            }
        }
        files.orphans.sort_unstable();
        Ok(files)
    }
}
