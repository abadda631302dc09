//! Completes or undoes a swap that a crash has interrupted, when the log is opened (Kafka's `LogLoader`).
//!
//! `.cleaned` files are from an unfinished pass and are removed. `.swap` files at or above the smallest `.cleaned`
//! base offset are removed too: their segment was not completely renamed. Any other `.swap` file is complete and on
//! the device. The segments in its range of offsets are removed, and it gets its final name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{CLEANED_SUFFIX, OUTPUT_SUFFIXES, SWAP_SUFFIX};
use crate::LogError;
use crate::directory::log_dir::remove_if_present;
use crate::directory::log_dir::{LOG_SUFFIX, SNAPSHOT_SUFFIX, parse_segment_file_name, segment_file_name};
use crate::segment::batch_scan::HeaderScan;
use pybroker_sys::file;

/// Returns whether a file name is one that an interrupted swap leaves.
pub(crate) fn is_left_over(name: &str) -> bool {
    [CLEANED_SUFFIX, SWAP_SUFFIX].iter().any(|suffix| name.strip_suffix(suffix).and_then(base_of).is_some())
}

/// Completes or undoes the swaps found in `directory`.
pub(crate) fn finish(directory: &Path) -> Result<(), LogError> {
    let files = Files::list(directory)?;
    let smallest_cleaned = files.cleaned.first().map(|(base, _)| *base);
    let (undone, whole): (Vec<_>, Vec<_>) =
        files.swapped.iter().partition(|(base, _)| smallest_cleaned.is_some_and(|cleaned| **base >= cleaned));
    for path in undone.iter().flat_map(|(_, paths)| paths.iter()).chain(files.cleaned.iter().map(|(_, path)| path)) {
        remove_if_present(path)?;
    }
    for (base, paths) in whole {
        complete(directory, *base, paths, &files.segments)?;
    }
    file::sync_directory(directory).map_err(LogError::io(directory))
}

fn complete(directory: &Path, base: i64, paths: &[PathBuf], segments: &[(i64, PathBuf)]) -> Result<(), LogError> {
    let log_file = directory.join(segment_file_name(base, &format!("{LOG_SUFFIX}{SWAP_SUFFIX}")));
    // If the log file has its final name already, the old segments are removed already.
    if log_file.exists() {
        let next_offset = next_offset(&log_file, base)?;
        log::info!("{}: the swap that was cut short is completed", log_file.display());
        let is_snapshot_of_base = |path: &Path| *path == *directory.join(segment_file_name(base, SNAPSHOT_SUFFIX));
        for (_, path) in segments
            .iter()
            .filter(|(at, path)| (base..next_offset.max(base + 1)).contains(at) && !is_snapshot_of_base(path))
        {
            remove_if_present(path)?;
        }
    }
    for from in paths {
        file::rename(from, &from.with_extension("")).map_err(LogError::io(from))?;
    }
    Ok(())
}

/// Returns the offset after the last batch.
fn next_offset(path: &Path, base: i64) -> Result<i64, LogError> {
    let read = |error| LogError::io(path)(error);
    let opened = file::open(path).map_err(read)?;
    let mut scan = HeaderScan::new(&opened, opened.metadata().map_err(read)?.len());
    let (mut position, mut next) = (0, base);
    while let Some(header) = scan.header_at(position).map_err(read)? {
        next = header.next_offset();
        position += header.size() as u64;
    }
    Ok(next)
}

/// The files of segments, by the suffix that a crash has left.
#[derive(Default)]
struct Files {
    /// In ascending order of base offset.
    cleaned: Vec<(i64, PathBuf)>,
    swapped: BTreeMap<i64, Vec<PathBuf>>,
    segments: Vec<(i64, PathBuf)>,
}

impl Files {
    fn list(directory: &Path) -> Result<Self, LogError> {
        let mut files = Self::default();
        for entry in file::list(directory).map_err(LogError::io(directory))? {
            let path = entry.map_err(LogError::io(directory))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if let Some(base) = name.strip_suffix(CLEANED_SUFFIX).and_then(base_of) {
                files.cleaned.push((base, path));
            } else if let Some(base) = name.strip_suffix(SWAP_SUFFIX).and_then(base_of) {
                files.swapped.entry(base).or_default().push(path);
            } else if let Some(base) = base_of(name) {
                files.segments.push((base, path));
            }
        }
        files.cleaned.sort_unstable();
        Ok(files)
    }
}

/// Returns the base offset in the name of any segment file.
fn base_of(name: &str) -> Option<i64> {
    OUTPUT_SUFFIXES.iter().chain([&SNAPSHOT_SUFFIX]).find_map(|suffix| parse_segment_file_name(name, suffix))
}
