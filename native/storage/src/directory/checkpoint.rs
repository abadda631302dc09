//! Checkpoint files: Kafka's text format of a version, a count and that many lines.
//!
//! Owns the format and the atomic replacement of the file. [`OffsetCheckpoint`] has one offset per partition and lies
//! in the log directory (`recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`,
//! `replication-offset-checkpoint`, `cleaner-offset-checkpoint`). The caller decides when to write it.

use std::io;
use std::path::{Path, PathBuf};

use crate::LogError;
use pybroker_sys::file;

const VERSION: &str = "0";

/// Offsets by topic and partition, in a checkpoint file of the log directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetCheckpoint {
    /// `(topic, partition, offset)`.
    pub offsets: Vec<(String, i32, i64)>,
}

impl OffsetCheckpoint {
    /// Reads the file. An absent file is an empty checkpoint.
    ///
    /// # Errors
    /// `Corrupt` with the malformed line, `Io` when the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, LogError> {
        let parse = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let entry = (words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            words.next().is_none().then_some(entry)
        };
        Ok(Self { offsets: read_lines(path, parse)?.unwrap_or_default() })
    }

    /// Replaces the file and waits until it is on the device.
    ///
    /// # Errors
    /// `Io`. The old file is then unchanged.
    pub fn write(&self, path: &Path) -> Result<(), LogError> {
        let lines = self.offsets.iter().map(|(topic, partition, offset)| format!("{topic} {partition} {offset}"));
        write_lines(path, lines, true)
    }
}

/// Reads the entries of a checkpoint file; `None` when the file is absent.
pub(crate) fn read_lines<T>(path: &Path, parse: impl Fn(&str) -> Option<T>) -> Result<Option<Vec<T>>, LogError> {
    let corrupt = |reason: String| LogError::Corrupt { path: path.to_path_buf(), reason };
    let text = match file::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| corrupt("not text".to_owned()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LogError::io(path)(error)),
    };
    // A file that was renamed before its bytes were on the device may be cut in the middle of a number.
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(corrupt("the last line has no end".to_owned()));
    }
    let mut lines = text.lines();
    if lines.next().map(str::trim) != Some(VERSION) {
        return Err(corrupt(format!("the first line is not version {VERSION}")));
    }
    let count: usize = lines
        .next()
        .and_then(|line| line.trim().parse().ok())
        .ok_or_else(|| corrupt("the second line is not a count".to_owned()))?;
    let entries = lines
        .map(|line| parse(line).ok_or_else(|| corrupt(format!("malformed line: {line:?}"))))
        .collect::<Result<Vec<_>, _>>()?;
    if entries.len() != count {
        return Err(corrupt(format!("{count} entries announced, {} found", entries.len())));
    }
    Ok(Some(entries))
}

/// Replaces a checkpoint file atomically.
pub(crate) fn write_lines(
    path: &Path,
    lines: impl ExactSizeIterator<Item = String>,
    durable: bool,
) -> Result<(), LogError> {
    let mut text = format!("{VERSION}\n{}\n", lines.len());
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    replace_file(path, text.as_bytes(), durable)
}

/// Writes `bytes` to a temporary file and renames it to `path`: readers see the old file or the new one.
pub(crate) fn replace_file(path: &Path, bytes: &[u8], durable: bool) -> Result<(), LogError> {
    let temporary = temporary_path(path);
    let written = file::create(&temporary).and_then(|made| {
        file::write_all_at(&made, bytes, 0)?;
        if durable { file::sync_data(&made) } else { Ok(()) }
    });
    let replaced = written.and_then(|()| file::rename(&temporary, path));
    if let Err(error) = replaced {
        let _ = file::remove(&temporary);
        return Err(LogError::io(path)(error));
    }
    match path.parent().filter(|_| durable) {
        Some(directory) => file::sync_directory(directory).map_err(LogError::io(directory)),
        None => Ok(()),
    }
}

fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn offsets_are_written_in_kafkas_text_format_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("recovery-point-offset-checkpoint");
        assert_eq!(OffsetCheckpoint::read(&path).unwrap(), OffsetCheckpoint::default());
        let checkpoint = OffsetCheckpoint { offsets: vec![("a".into(), 0, 5), ("b-c".into(), 12, i64::MAX)] };
        checkpoint.write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "0\n2\na 0 5\nb-c 12 9223372036854775807\n");
        assert_eq!(OffsetCheckpoint::read(&path).unwrap(), checkpoint);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_file_is_reported_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c");
        for text in [
            "",
            "1\n0\n",
            "0\n1\na 0 12",
            "0\nx\n",
            "0\n1\n",
            "0\n1\na 0\n",
            "0\n1\na 0 1 2\n",
            "0\n1\na x 1\n",
            "0\n0\na 0 1\n",
        ] {
            fs::write(&path, text).unwrap();
            assert!(matches!(OffsetCheckpoint::read(&path), Err(LogError::Corrupt { .. })), "{text:?}");
        }
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(OffsetCheckpoint::read(&path), Err(LogError::Corrupt { .. })));
    }
}
