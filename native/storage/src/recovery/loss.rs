//! The losses found when a log is opened, as a sentence for the log and as a report file.
//!
//! Owns the texts and the file `recovery-report` in a log's directory: one JSON object per line, the newest last. At
//! most [`MOST_KEPT`] are kept. The file stays until it is deleted by hand or with the partition. Kafka ignores it.
//! Must not decide what is damage.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use crate::LogError;
use crate::directory::checkpoint::replace_file;

/// Name of the file.
pub const REPORT_FILE: &str = "recovery-report";
const MOST_KEPT: usize = 64;

/// Why records are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// The last bytes are no complete batch, and no valid batch follows: a torn write.
    TornWrite,
    /// Bytes that are no valid batch where acknowledged records were, or with such records after them.
    Damage,
    /// A segment ends before the next one begins, and the log ends there.
    Gap,
    /// A closed segment ends before the next one begins, and the log continues with the next one.
    Hole,
    /// The log ends below an offset in a checkpoint.
    EndMissing,
    /// The log begins above the log start in the checkpoint.
    BeginningMissing,
    /// The log start in the checkpoint is above the log end.
    StartBeyondEnd,
}

impl LossCause {
    /// Returns the name used in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TornWrite => "torn-write",
            Self::Damage => "damage",
            Self::Gap => "gap",
            Self::Hole => "hole",
            Self::EndMissing => "end-missing",
            Self::BeginningMissing => "beginning-missing",
            Self::StartBeyondEnd => "start-beyond-end",
        }
    }
}

/// A log that ends below the log start in its checkpoint.
#[derive(Clone, Copy)]
pub(super) struct EndBeforeStart {
    pub(super) log_start_offset: i64,
    pub(super) end_offset: i64,
}

/// A loss; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Why the records are missing.
    pub cause: LossCause,
    /// The first missing offset.
    pub from_offset: i64,
    /// The offset after the last record that is known to have existed.
    pub known_end: Option<i64>,
    /// The base offset of the segment concerned, and the position where its valid batches end.
    pub place: Option<(i64, u64)>,
    /// Bytes removed from the log, including complete segments.
    pub bytes: u64,
    /// Names of the files with these bytes; empty if they were truncated.
    pub set_aside: Vec<String>,
}

impl Loss {
    /// Returns the sentence for the log, without the partition's name.
    #[must_use]
    pub fn text(&self) -> String {
        let from = self.from_offset;
        let mut text = match (self.cause, self.place) {
            (LossCause::TornWrite, place) => format!(
                "{} bytes behind offset {from}, at {}, are no whole batch and are cut: a write that did not end",
                self.bytes,
                place_text(place)
            ),
            (LossCause::Damage, place) => {
                format!(
                    "damaged at {}: there is no valid batch, and the log ends before offset {from}",
                    place_text(place)
                )
            }
            (LossCause::Gap, place) => format!(
                "the segment behind {} does not begin where that one ends, and the log ends before offset {from}",
                place_text(place)
            ),
            (LossCause::Hole, place) => format!(
                "the records from offset {from} to {} are missing: the segment ends at {}. Consumers continue at offset {}",
                self.known_end.unwrap_or(from),
                place_text(place),
                self.known_end.unwrap_or(from)
            ),
            (LossCause::EndMissing, _) => format!("the log ends before offset {from}"),
            (LossCause::BeginningMissing, _) => format!(
                "the records from offset {from} to {} are missing: their segments are not there",
                self.known_end.unwrap_or(from)
            ),
            (LossCause::StartBeyondEnd, _) => format!(
                "log-start-offset-checkpoint says {}, which lies beyond the log's end {from}",
                self.known_end.unwrap_or(from)
            ),
        };
        self.add_consequences(&mut text);
        text
    }

    fn add_consequences(&self, text: &mut String) {
        let from = self.from_offset;
        let end_moved = matches!(self.cause, LossCause::Damage | LossCause::Gap | LossCause::EndMissing);
        if let Some(known) = self.known_end.filter(|_| end_moved) {
            let _ = write!(text, "; records up to offset {known} are known to have been there");
        }
        if end_moved {
            let _ = write!(text, "; offsets from {from} on are given again");
        }
        if self.set_aside.is_empty() {
            return;
        }
        let _ = write!(text, "; {} bytes are set aside in {}", self.bytes, self.set_aside.join(", "));
        let whole: Vec<&str> =
            self.set_aside.iter().map(String::as_str).filter(|name| name.contains(".aside-")).collect();
        if let Some(first) = whole.first() {
            let _ = write!(
                text,
                ". To bring a whole segment back, stop the broker cleanly while the log ends at or before the segment's \
                 first offset, remove leader-epoch-checkpoint, rename {first} to {} and start",
                first.split(".aside-").next().unwrap_or(first)
            );
        }
    }

    /// Returns cause and offsets in the format of the file.
    fn offsets(&self) -> String {
        let known_end = self.known_end.map_or("null".to_owned(), |known_end| known_end.to_string());
        let (cause, from_offset) = (self.cause.name(), self.from_offset);
        format!("\"cause\":\"{cause}\",\"from_offset\":{from_offset},\"known_end\":{known_end}")
    }

    fn line(&self, now_ms: i64) -> String {
        let place = self.place.map_or("null".to_owned(), |(base, position)| {
            format!("{{\"segment\":\"{base:020}.log\",\"position\":{position}}}")
        });
        let names: Vec<String> = self.set_aside.iter().map(|name| format!("\"{name}\"")).collect();
        // The text needs no escaping: it consists of numbers and names from this module.
        format!(
            "{{\"time_ms\":{now_ms},{},\"place\":{place},\"bytes\":{},\"set_aside\":[{}],\"text\":\"{}\"}}",
            self.offsets(),
            self.bytes,
            names.join(","),
            self.text()
        )
    }
}

fn place_text(place: Option<(i64, u64)>) -> String {
    place.map_or_else(|| "its end".to_owned(), |(base, position)| format!("byte {position} of {base:020}.log"))
}

/// Returns whether the file has a loss with the same offsets. An unreadable file has none.
pub(crate) fn is_written_down(directory: &Path, loss: &Loss) -> bool {
    let written = fs::read(directory.join(REPORT_FILE)).unwrap_or_default();
    let same = format!("{},", loss.offsets());
    String::from_utf8_lossy(&written).lines().any(|line| line.contains(&same))
}

/// Appends a loss to the file, durably.
///
/// # Errors
/// `Io`. The file is then unchanged.
pub(crate) fn write_down(directory: &Path, loss: &Loss, now_ms: i64) -> Result<(), LogError> {
    let path = directory.join(REPORT_FILE);
    let before = match fs::read(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(LogError::io(&path)(error)),
    };
    let mut lines: Vec<&str> = before.lines().collect();
    lines.drain(..(lines.len() + 1).saturating_sub(MOST_KEPT));
    let mut text: String = lines.iter().flat_map(|line| [*line, "\n"]).collect();
    text.push_str(&loss.line(now_ms));
    text.push('\n');
    replace_file(&path, text.as_bytes(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss() -> Loss {
        Loss {
            cause: LossCause::Damage,
            from_offset: 28,
            known_end: Some(60),
            place: Some((20, 1000)),
            bytes: 5000,
            set_aside: vec!["00000000000000000020.log.tail-1".into(), "00000000000000000040.log.aside-1".into()],
        }
    }

    #[test]
    fn a_loss_says_where_how_much_why_and_how_to_bring_it_back() {
        let text = loss().text();
        for part in [
            "byte 1000 of 00000000000000000020.log",
            "before offset 28",
            "up to offset 60",
            "offsets from 28 on are given again",
            "5000 bytes are set aside",
            "rename 00000000000000000040.log.aside-1 to 00000000000000000040.log",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn the_file_keeps_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        for time in 0..100 {
            write_down(dir.path(), &loss(), time).unwrap();
        }
        let text = fs::read_to_string(dir.path().join(REPORT_FILE)).unwrap();
        assert_eq!(text.lines().count(), MOST_KEPT);
        assert!(
            text.lines().next_back().unwrap().starts_with("{\"time_ms\":99,\"cause\":\"damage\",\"from_offset\":28,")
        );
    }
}
