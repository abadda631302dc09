//! `partition.metadata`: the file with the topic id of a partition directory (KIP-516).

use std::io;
use std::path::Path;

use crate::LogError;
use crate::directory::checkpoint::replace_file;
use crate::directory::log_dir::PARTITION_METADATA_FILE;
use pybroker_sys::file;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns the topic id of a partition directory; `None` when it has no such file.
///
/// # Errors
/// `Corrupt` when the file is malformed, `Io` when it cannot be read.
pub fn read(directory: &Path) -> Result<Option<[u8; 16]>, LogError> {
    let path = directory.join(PARTITION_METADATA_FILE);
    let text = match file::read(&path)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)))
    {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(LogError::Corrupt { path, reason: "not a topic id: it is no text".to_owned() });
        }
        Err(error) => return Err(LogError::io(&path)(error)),
    };
    let mut lines = text.lines();
    let topic_id = match (lines.next(), lines.next(), lines.next()) {
        (Some("version: 0"), Some(line), None) => line.strip_prefix("topic_id: ").and_then(decode_id),
        _ => None,
    };
    topic_id.map(Some).ok_or_else(|| LogError::Corrupt { path, reason: format!("not a topic id: {text:?}") })
}

/// Writes the file, durably.
///
/// # Errors
/// `Io`. No partial file is left.
pub fn write(directory: &Path, topic_id: &[u8; 16]) -> Result<(), LogError> {
    let text = format!("version: 0\ntopic_id: {}", encode_id(topic_id));
    replace_file(&directory.join(PARTITION_METADATA_FILE), text.as_bytes(), true)
}

/// Writes the topic id to a partition's directory, unless it is there already.
///
/// # Errors
/// `Corrupt` when the directory belongs to another topic of the same name, and the errors of [`read`] and [`write`].
pub fn claim(directory: &Path, topic_id: &[u8; 16]) -> Result<(), LogError> {
    match read(directory)? {
        None => write(directory, topic_id),
        Some(found) if found == *topic_id => Ok(()),
        Some(_) => Err(LogError::Corrupt {
            path: directory.to_owned(),
            reason: "partition.metadata names another topic id: the directory belongs to a topic deleted since".into(),
        }),
    }
}

/// Kafka's text form of an id: URL-safe base64 of the 16 bytes, unpadded (22 characters).
#[must_use]
pub fn encode_id(id: &[u8; 16]) -> String {
    let value = u128::from_be_bytes(*id);
    let digit = |shift: u32| ALPHABET[(value >> shift) as usize & 63] as char;
    let last = ALPHABET[(value << 4) as usize & 63] as char;
    (0..21).map(|n| digit(122 - 6 * n)).chain([last]).collect()
}

fn decode_id(text: &str) -> Option<[u8; 16]> {
    if text.len() != 22 {
        return None;
    }
    let mut value: u128 = 0;
    for (index, byte) in text.bytes().enumerate() {
        let digit = ALPHABET.iter().position(|&letter| letter == byte)? as u128;
        value = if index < 21 { value << 6 | digit } else { value << 2 | digit >> 4 };
    }
    Some(value.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn ids_have_kafkas_text_form() {
        // java: new Uuid(0x0123456789abcdefL, 0xfedcba9876543210L).toString()
        let id = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210u128.to_be_bytes();
        assert_eq!(encode_id(&id), "ASNFZ4mrze_-3LqYdlQyEA");
        assert_eq!(decode_id("ASNFZ4mrze_-3LqYdlQyEA"), Some(id));
        assert_eq!(encode_id(&[0; 16]), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(decode_id(&encode_id(&[255; 16])), Some([255; 16]));
        assert_eq!(decode_id("short"), None);
    }

    #[test]
    fn the_file_round_trips_and_damage_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), None);
        write(dir.path(), &[7; 16]).unwrap();
        assert_eq!(read(dir.path()).unwrap(), Some([7; 16]));
        fs::write(dir.path().join(PARTITION_METADATA_FILE), "version: 1\n").unwrap();
        assert!(matches!(read(dir.path()), Err(LogError::Corrupt { .. })));
    }
}
