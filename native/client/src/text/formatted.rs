//! Many records as text, up to a limit or the first that cannot be decoded.

use super::format::{RecordFormat, Style, write_log};
use super::json;
use crate::fetcher::received::Received;

/// A record whose key, value or header is not what its decoder reads.
#[derive(Debug, Clone)]
pub struct Undecodable {
    pub offset: i64,
    /// Kafka's word for what is wrong.
    pub detail: String,
}

/// Records as text.
#[derive(Debug, Default)]
pub struct Formatted {
    pub text: Vec<u8>,
    /// Lines of a log, where there are to be any.
    pub log: Vec<u8>,
    /// How many records, the one that failed among them.
    pub records: usize,
    /// Leader epoch of the last one; -1 without one.
    pub leader_epoch: i32,
    /// The last record, where it could not be written whole.
    pub failure: Option<Undecodable>,
}

impl RecordFormat {
    /// Write the next records, at most `most` and no further one once the text has `max_bytes`; up to the first that
    /// cannot be decoded.
    pub fn write(&self, received: &mut Received, most: usize, max_bytes: usize) -> Formatted {
        let mut formatted = Formatted { leader_epoch: -1, ..Formatted::default() };
        let (topic, partition) = (received.topic().clone(), received.index());
        while formatted.records < most && formatted.failure.is_none() && formatted.text.len() < max_bytes {
            let Some(fetched) = received.take(1).next() else { break };
            formatted.records += 1;
            formatted.leader_epoch = fetched.leader_epoch.0;
            let written = match self.style {
                Style::Text => self.write_text(partition, &fetched, &mut formatted.text),
                Style::Json => json::write(self, &topic, partition, &fetched, &mut formatted.text),
                Style::Nothing => Ok(()),
            };
            if let Err(detail) = written {
                formatted.failure = Some(Undecodable { offset: fetched.offset, detail });
            } else if self.logs {
                write_log(&fetched, &mut formatted.log);
            }
        }
        formatted
    }
}
