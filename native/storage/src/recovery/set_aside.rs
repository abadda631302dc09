//! Files that recovery has removed from a log but kept, under names that no opening loads. An administrator can
//! restore them.
//!
//! Owns the names and the renames. A complete segment is renamed to `<name>.aside-<n>`, which needs no space. The
//! bytes after the last valid batch of a damaged segment are copied to `<base offset>.log.tail-<n>` before they are
//! truncated. `n` distinguishes several recoveries; one that resumes after a crash uses its old number. Kafka ignores
//! these files, retention does not count them, and no background task deletes them. They are deleted with the
//! partition, or by hand.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::LogError;
use crate::directory::log_dir::{
    LOG_SUFFIX, OFFSET_INDEX_SUFFIX, SNAPSHOT_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, segment_file_name,
};
use pybroker_sys::file;

const ASIDE: &str = ".aside-";
const TAIL: &str = ".log.tail-";
const TEMPORARY: &str = ".tmp";
const CHUNK: usize = 1 << 20;
/// The log file is renamed first: after a crash, indexes without a segment are left, which the next opening removes.
const SUFFIXES: [&str; 5] = [LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX, SNAPSHOT_SUFFIX];

/// Returns whether a file of a log's directory was set aside by a recovery.
#[must_use]
pub fn is_set_aside(name: &str) -> bool {
    let Some((digits, rest)) = name.split_at_checked(20) else { return false };
    let numbered = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.bytes().all(|byte| byte.is_ascii_digit())
        && (rest.strip_prefix(TAIL).is_some_and(numbered)
            || SUFFIXES.iter().any(|suffix| {
                rest.strip_prefix(suffix).and_then(|rest| rest.strip_prefix(ASIDE)).is_some_and(numbered)
            }))
}

/// Returns whether a file is a copy that a crash has interrupted.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.strip_suffix(TEMPORARY).is_some_and(is_set_aside)
}

/// The bytes after the last valid batch of a segment.
#[derive(Clone, Copy)]
pub(crate) struct TailBytes<'a> {
    pub(crate) base_offset: i64,
    pub(crate) file: &'a File,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// Sets aside a segment's tail, if there is one, and complete segments, the last one first, so that a crash in
/// between leaves a shorter log. Returns the new names of the log files.
///
/// # Errors
/// `Io` with the path that failed. Files that were not renamed before are unchanged.
pub(crate) fn set_aside(
    directory: &Path,
    tail: Option<TailBytes<'_>>,
    segments: &[i64],
) -> Result<Vec<String>, LogError> {
    let number = free_number(directory, tail, segments)?;
    let mut names = Vec::with_capacity(segments.len() + 1);
    if let Some(tail) = tail {
        let name = tail_name(tail.base_offset, number);
        copy_tail(tail, &directory.join(&name))?;
        names.push(name);
    }
    for &base in segments.iter().rev() {
        for suffix in SUFFIXES {
            let from = directory.join(segment_file_name(base, suffix));
            match file::rename(&from, &directory.join(aside_name(base, suffix, number))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(LogError::io(&from)(error)),
                _ => {}
            }
        }
    }
    names.extend(segments.iter().map(|&base| aside_name(base, LOG_SUFFIX, number)));
    file::sync_directory(directory).map_err(LogError::io(directory))?;
    Ok(names)
}

fn aside_name(base_offset: i64, suffix: &str, number: u32) -> String {
    format!("{}{ASIDE}{number}", segment_file_name(base_offset, suffix))
}

fn tail_name(base_offset: i64, number: u32) -> String {
    format!("{base_offset:020}{TAIL}{number}")
}

/// Returns the smallest number that no other set-aside file uses.
fn free_number(directory: &Path, tail: Option<TailBytes<'_>>, segments: &[i64]) -> Result<u32, LogError> {
    let taken = |base: i64, number| {
        SUFFIXES.iter().any(|suffix| directory.join(aside_name(base, suffix, number)).symlink_metadata().is_ok())
    };
    let mut number = 1;
    loop {
        let other_tail = match tail {
            Some(tail) => {
                let path = directory.join(tail_name(tail.base_offset, number));
                path.exists() && !holds(&path, tail).map_err(LogError::io(&path))?
            }
            None => false,
        };
        // If a crash has left a segment's log file under its own name, its indexes were not renamed either.
        if !other_tail && !segments.iter().any(|&base| taken(base, number)) {
            return Ok(number);
        }
        number += 1;
    }
}

/// Returns whether the copy has the bytes of this tail: an interrupted recovery has made it.
fn holds(path: &Path, tail: TailBytes<'_>) -> io::Result<bool> {
    let copy = File::open(path)?;
    if copy.metadata()?.len() != tail.to - tail.from {
        return Ok(false);
    }
    let (mut there, mut here) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut at = tail.from;
    while at < tail.to {
        let len = (tail.to - at).min(CHUNK as u64) as usize;
        let read = file::read_full_at(tail.file, &mut here[..len], at)?;
        if file::read_full_at(&copy, &mut there[..len], at - tail.from)? != read || here[..read] != there[..read] {
            return Ok(false);
        }
        at += len as u64;
    }
    Ok(true)
}

/// Copies the tail. The copy is complete and on the device before it gets its name.
fn copy_tail(tail: TailBytes<'_>, path: &Path) -> Result<(), LogError> {
    if path.exists() {
        return Ok(());
    }
    let temporary = with_suffix(path, TEMPORARY);
    let copied = copy_to(tail, &temporary).and_then(|()| file::rename(&temporary, path));
    copied.map_err(|error| {
        let _ = file::remove(&temporary);
        LogError::io(path)(error)
    })
}

fn copy_to(tail: TailBytes<'_>, path: &Path) -> io::Result<()> {
    let copy = file::create(path)?;
    let mut chunk = vec![0; CHUNK.min((tail.to - tail.from) as usize)];
    let mut at = tail.from;
    while at < tail.to {
        let len = (tail.to - at).min(CHUNK as u64) as usize;
        let read = file::read_full_at(tail.file, &mut chunk[..len], at)?;
        file::write_all_at(&copy, &chunk[..read], at - tail.from)?;
        at += len as u64;
    }
    file::sync_data(&copy)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the names and sizes of all files in a log's directory that recoveries have set aside.
///
/// # Errors
/// `Io` when the directory cannot be read.
pub fn set_aside_files(directory: &Path) -> Result<Vec<(String, u64)>, LogError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(LogError::io(directory))? {
        let entry = entry.map_err(LogError::io(directory))?;
        if let Some(name) = entry.file_name().to_str().filter(|name| is_set_aside(name)) {
            found.push((name.to_owned(), entry.metadata().map_err(LogError::io(directory))?.len()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn names_that_were_set_aside_are_distinguished_from_all_others() {
        for name in ["00000000000000000042.log.aside-1", "00000000000000000042.snapshot.aside-12"] {
            assert!(is_set_aside(name), "{name}");
        }
        assert!(is_set_aside(&tail_name(42, 3)));
        assert!(is_unfinished(&format!("{}.tmp", tail_name(42, 3))));
        for name in ["42.log.aside-1", "00000000000000000042.log", "00000000000000000042.log.aside-", "notes.aside-1"] {
            assert!(!is_set_aside(name) && !is_unfinished(name), "{name}");
        }
    }

    #[test]
    fn what_is_set_aside_again_has_another_number_and_a_repetition_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000000000000000000.log");
        fs::write(&path, b"good bad").unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let tail = |from, to| Some(TailBytes { base_offset: 0, file: &file, from, to });
        let segment = |base| fs::write(dir.path().join(segment_file_name(base, LOG_SUFFIX)), b"x").unwrap();
        segment(7);
        segment(9);
        let first = ["00000000000000000000.log.tail-1", "00000000000000000007.log.aside-1"];
        assert_eq!(set_aside(dir.path(), tail(5, 8), &[7]).unwrap(), first);
        assert_eq!(fs::read(dir.path().join(first[0])).unwrap(), b"bad");
        // As after a crash: the tail is there, and a segment is left.
        let rest = ["00000000000000000000.log.tail-1", "00000000000000000009.log.aside-1"];
        assert_eq!(set_aside(dir.path(), tail(5, 8), &[9]).unwrap(), rest);
        file.write_all_at(b"BAD", 5).unwrap();
        segment(7);
        let second = ["00000000000000000000.log.tail-2", "00000000000000000007.log.aside-2"];
        assert_eq!(set_aside(dir.path(), tail(5, 8), &[7]).unwrap(), second);
        assert_eq!(set_aside_files(dir.path()).unwrap().len(), 5);
    }
}
