//! Many records as text, up to a limit or the first that cannot be decoded.

use super::format::{RecordFormat, Style, write_log};
use super::json;
use crate::fetcher::received::Received;

/// A record whose key, value or header its decoder rejects.
#[derive(Debug, Clone)]
pub struct Undecodable {
    pub offset: i64,
    /// Kafka's error text.
    pub detail: String,
}

/// Records as text.
#[derive(Debug, Default)]
pub struct Formatted {
    pub text: Vec<u8>,
    /// Log lines, if enabled.
    pub log: Vec<u8>,
    /// The number of records, the failed one included.
    pub records: usize,
    /// Leader epoch of the last record; -1 without one.
    pub leader_epoch: i32,
    /// The last record, if it could not be written completely.
    pub failure: Option<Undecodable>,
}

impl RecordFormat {
    /// Write the next records, at most `most`, until the text has `max_bytes` or a record cannot be decoded.
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
