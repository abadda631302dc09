//! A bounded list of the findings of a verification.

use std::io;

use crate::LogError;

/// Most findings to keep of one log.
pub(super) const MOST_FINDINGS: usize = 100;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something is lost or wrong.
    Damage,
    /// A file could not be read.
    Unreadable,
    /// A leftover of a crash, which the next opening repairs.
    Note,
}

/// The subject of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// Batches of records.
    Records,
    /// An index of offsets, times or aborted transactions.
    Index,
    /// A snapshot of the producers' state.
    Snapshot,
    /// `leader-epoch-checkpoint`.
    LeaderEpochs,
    PartitionMetadata,
}

impl FindingKind {
    /// Returns the name that tools print.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Index => "index",
            Self::Snapshot => "snapshot",
            Self::LeaderEpochs => "leader-epochs",
            Self::PartitionMetadata => "partition-metadata",
        }
    }
}

/// One problem or note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the file in the log's directory.
    pub file: String,
    /// Damage, an unreadable file, or a note.
    pub severity: Severity,
    /// Its subject.
    pub kind: FindingKind,
    /// The problem, as text.
    pub text: String,
}

/// The findings so far.
#[derive(Default)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    left_out: u64,
}

impl Findings {
    pub(super) fn damage(&mut self, file: &str, kind: FindingKind, text: String) {
        self.add(file, Severity::Damage, kind, text);
    }

    pub(super) fn note(&mut self, file: &str, kind: FindingKind, text: String) {
        self.add(file, Severity::Note, kind, text);
    }

    /// Adds a finding: a note if the next opening repairs it without a loss, otherwise damage.
    pub(super) fn add_unless_repaired(&mut self, file: &str, kind: FindingKind, text: String, repaired: bool) {
        let severity = if repaired { Severity::Note } else { Severity::Damage };
        self.add(file, severity, kind, text);
    }

    /// Adds a finding about a file that is damaged or cannot be read.
    pub(super) fn add_error(&mut self, file: &str, kind: FindingKind, error: &LogError) {
        match error {
            LogError::Corrupt { reason, .. } => self.damage(file, kind, reason.clone()),
            LogError::Io { source, .. } | LogError::Exhausted { source, .. } => self.unreadable(file, kind, source),
            LogError::Offline { .. } => self.damage(file, kind, error.to_string()),
        }
    }

    pub(super) fn unreadable(&mut self, file: &str, kind: FindingKind, error: &io::Error) {
        self.add(file, Severity::Unreadable, kind, format!("cannot be read: {error}"));
    }

    /// Returns whether a file could not be read.
    pub(super) fn is_incomplete(&self) -> bool {
        self.kept.iter().any(|finding| finding.severity == Severity::Unreadable)
    }

    fn add(&mut self, file: &str, severity: Severity, kind: FindingKind, text: String) {
        if self.kept.len() < MOST_FINDINGS {
            self.kept.push(Finding { file: file.to_owned(), severity, kind, text });
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn into_parts(self) -> (Vec<Finding>, u64) {
        (self.kept, self.left_out)
    }
}
