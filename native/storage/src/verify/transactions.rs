//! Compares the index of aborted transactions with those that the walk replays.

use std::io;

use super::Walk;
use super::entries::Entries;
use super::findings::FindingKind;
use crate::directory::log_dir::{TXN_INDEX_SUFFIX, segment_file_name};
use crate::index::txn_index::{AbortedTxn, ENTRY_BYTES};

/// The comparison; see the module.
pub(super) struct AbortedCheck {
    name: String,
    entries: Option<Entries<ENTRY_BYTES>>,
    /// Whether there is no file. The first aborted transaction is then a fault.
    absent: bool,
    repaired: bool,
}

impl AbortedCheck {
    pub(super) fn open(walk: &mut Walk<'_>, base: i64, repaired: bool) -> Self {
        let name = segment_file_name(base, TXN_INDEX_SUFFIX);
        let mut check = Self { name, entries: None, absent: false, repaired };
        match Entries::open(&walk.log.directory.join(&check.name)) {
            Ok(entries) if entries.torn > 0 => {
                let text = format!("{} bytes follow the last whole entry", entries.torn);
                check.fault(walk, text);
            }
            Ok(entries) => check.entries = Some(entries),
            Err(error) if error.kind() == io::ErrorKind::NotFound => check.absent = true,
            Err(error) => walk.findings.unreadable(&check.name, FindingKind::Index, &error),
        }
        check
    }

    fn fault(&mut self, walk: &mut Walk<'_>, mut text: String) {
        if self.repaired {
            text.push_str("; the next start makes it anew");
        }
        (self.entries, self.absent) = (None, false);
        walk.findings.add_unless_repaired(&self.name, FindingKind::Index, text, self.repaired);
    }

    /// Returns the next entry. An invalid entry is a fault.
    fn next(&mut self, walk: &mut Walk<'_>) -> Option<AbortedTxn> {
        let entry = match self.entries.as_mut()?.peek() {
            Ok(entry) => entry?,
            Err(error) => {
                self.entries = None;
                walk.findings.unreadable(&self.name, FindingKind::Index, &error);
                return None;
            }
        };
        match AbortedTxn::decode(&entry) {
            Ok(entry) => Some(entry),
            Err(version) => {
                self.fault(walk, format!("has an entry of version {version}"));
                None
            }
        }
    }

    fn advance(&mut self) {
        if let Some(entries) = &mut self.entries {
            entries.advance();
        }
    }

    /// Compares the next entry with a transaction that the batches abort.
    pub(super) fn check(&mut self, walk: &mut Walk<'_>, aborted: Option<&AbortedTxn>) {
        let Some(aborted) = aborted else { return };
        if self.absent {
            return self.fault(walk, "is missing, and the segment has aborted transactions".to_owned());
        }
        while let Some(entry) = self.next(walk) {
            if entry.last_offset < aborted.last_offset && entry.first_offset < walk.from {
                // The transaction began before the first batch of the walk.
                self.advance();
                continue;
            }
            let same = (entry.producer_id, entry.last_offset, entry.first_offset)
                == (aborted.producer_id, aborted.last_offset, aborted.first_offset);
            if same {
                self.advance();
            } else {
                let (last, producer) = (aborted.last_offset, aborted.producer_id);
                self.fault(walk, format!("does not have the abortion of producer {producer} at offset {last}"));
            }
            return;
        }
        if self.entries.is_some() {
            let (last, producer) = (aborted.last_offset, aborted.producer_id);
            self.fault(walk, format!("does not have the abortion of producer {producer} at offset {last}"));
        }
    }

    /// Reports the remaining entries, which have no marker in the batches.
    pub(super) fn finish(mut self, walk: &mut Walk<'_>, broken: bool) {
        while let Some(entry) = self.next(walk) {
            if entry.first_offset >= walk.from && !broken {
                let text = format!("has an abortion at offset {}, which no batch is", entry.last_offset);
                return self.fault(walk, text);
            }
            self.advance();
        }
    }
}
