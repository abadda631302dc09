//! Names inside a log directory: partition directories, segment files, directories that wait for deletion.
//!
//! Owns the mapping between Kafka's names and their meaning. Opens no file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::LogError;
use pybroker_sys::file;

use parking_lot::RwLock;

/// Suffix of a segment's records.
pub const LOG_SUFFIX: &str = ".log";
/// Suffix of a segment's offset index.
pub const OFFSET_INDEX_SUFFIX: &str = ".index";
/// Suffix of a segment's time index.
pub const TIME_INDEX_SUFFIX: &str = ".timeindex";
/// Suffix of a segment's index of aborted transactions.
pub const TXN_INDEX_SUFFIX: &str = ".txnindex";
/// Suffix of a producer snapshot.
pub const SNAPSHOT_SUFFIX: &str = ".snapshot";
/// Suffix of a file that waits for deletion.
pub const DELETED_SUFFIX: &str = ".deleted";
/// Suffix of a partition directory that waits for deletion.
pub const DELETE_DIRECTORY_SUFFIX: &str = "-delete";
/// Name of the leader epoch file.
pub const LEADER_EPOCH_FILE: &str = "leader-epoch-checkpoint";
/// Name of the file with the topic id of a partition directory.
pub const PARTITION_METADATA_FILE: &str = "partition.metadata";

const LONGEST_NAME: usize = 255;

/// Returns `<topic>-<partition>.<unique id>-delete`. Shortens the topic if the name would exceed the file system's
/// limit.
#[must_use]
pub fn deleted_directory_name(directory_name: &str, unique_id: &str) -> String {
    let (topic, partition) = directory_name.rsplit_once('-').unwrap_or((directory_name, "0"));
    let suffix = format!("-{partition}.{unique_id}{DELETE_DIRECTORY_SUFFIX}");
    let kept = topic.len().min(LONGEST_NAME.saturating_sub(suffix.len()));
    format!("{}{suffix}", &topic[..kept])
}

/// Returns `<20 digits><suffix>`.
#[must_use]
pub fn segment_file_name(offset: i64, suffix: &str) -> String {
    format!("{offset:020}{suffix}")
}

/// Returns the offset in the name of a segment file with this suffix; `None` for any other file.
#[must_use]
pub fn parse_segment_file_name(name: &str, suffix: &str) -> Option<i64> {
    let digits = name.strip_suffix(suffix)?;
    if digits.len() != 20 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// The current directory of a log. Its segments share it, so that they find their files after the directory is
/// renamed.
#[derive(Debug)]
pub(crate) struct LogHome(RwLock<Arc<Path>>);

impl LogHome {
    pub(crate) fn new(path: &Path) -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::from(path))))
    }

    pub(crate) fn path(&self) -> Arc<Path> {
        Arc::clone(&self.0.read())
    }

    pub(crate) fn segment_file(&self, base_offset: i64, suffix: &str) -> PathBuf {
        self.path().join(segment_file_name(base_offset, suffix))
    }

    pub(crate) fn moved_to(&self, path: &Path) {
        *self.0.write() = Arc::from(path);
    }
}

/// Removes a file that may be absent.
pub(crate) fn remove_if_present(path: &PathBuf) -> Result<(), LogError> {
    match file::remove(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(LogError::io(path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_topic_is_shortened_to_fit_the_deleted_name() {
        let id = "0123456789abcdef0123456789abcdef";
        assert_eq!(deleted_directory_name("t-3", id), format!("t-3.{id}-delete"));
        let long = format!("{}-12", "x".repeat(249));
        let name = deleted_directory_name(&long, id);
        assert_eq!(name.len(), 255);
        assert!(name.ends_with(&format!("x-12.{id}-delete")));
    }

    #[test]
    fn segment_file_names_are_twenty_digits() {
        assert_eq!(segment_file_name(42, LOG_SUFFIX), "00000000000000000042.log");
        assert_eq!(parse_segment_file_name("00000000000000000042.log", LOG_SUFFIX), Some(42));
        assert_eq!(parse_segment_file_name("42.log", LOG_SUFFIX), None);
        assert_eq!(parse_segment_file_name("00000000000000000042.index", LOG_SUFFIX), None);
        assert_eq!(parse_segment_file_name("99999999999999999999.log", LOG_SUFFIX), None);
    }
}
