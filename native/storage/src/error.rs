//! The errors of a log, by their meaning.
//!
//! [`AppendError`] and [`ReadError`] are results of a request; [`LogError`] is about the log itself. An `Io` variant
//! contains the path, and the state of the log directory is then unknown. An `Exhausted` variant is a lack of file
//! descriptors, memory or mappings. The disk is fine, the log is unchanged, and the same operation may succeed later.

use std::io;
use std::path::{Path, PathBuf};

use pybroker_record::{InvalidBatch, RecordError};
use pybroker_sys::file::is_exhaustion;

/// An operation on the log as a whole failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file system returned an error. The state of the log directory is unknown.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory concerned.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The process or the system lacks file descriptors, memory or mappings. The log is unchanged.
    #[error("{path}: {source}", path = path.display())]
    Exhausted {
        /// The file concerned.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The content of a file is not valid for its kind.
    #[error("{path}: {reason}", path = path.display())]
    Corrupt {
        /// The file concerned.
        path: PathBuf,
        /// Description of the damage.
        reason: String,
    },
    /// The log accepts no changes, because an earlier write or sync failed or the log is closed.
    #[error("{path}: the log is offline after an earlier failure or close", path = path.display())]
    Offline {
        /// The directory of the log.
        path: PathBuf,
    },
}

impl LogError {
    /// Returns a function for `map_err` that wraps a system error with its path, by its meaning.
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.as_ref().to_path_buf();
            if is_exhaustion(&source) { Self::Exhausted { path, source } } else { Self::Io { path, source } }
        }
    }

    /// Returns the error of an operation that is half done: an `Exhausted` error becomes `Io`.
    pub(crate) fn half_done(self) -> Self {
        match self {
            Self::Exhausted { path, source } => {
                log::error!("{}: a change was left half done: {source}", path.display());
                Self::Io { path, source: io::Error::from_raw_os_error(libc::EIO) }
            }
            other @ (Self::Io { .. } | Self::Corrupt { .. } | Self::Offline { .. }) => other,
        }
    }

    /// Returns whether the operation may succeed later, because the disk is fine.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        matches!(self, Self::Exhausted { .. })
    }
}

/// Why an append failed. After every variant the log is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// A batch breaks a rule of its format or of the topic (CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP ...).
    #[error("{0}")]
    Invalid(InvalidBatch),
    /// The batches of one append together exceed `segment.bytes` (RECORD_LIST_TOO_LARGE).
    #[error("{bytes} bytes of batches exceed segment.bytes = {limit}")]
    TooLarge {
        /// Size of the append.
        bytes: usize,
        /// The configured limit.
        limit: u64,
    },
    /// A sequence number does not continue the producer's last one (OUT_OF_ORDER_SEQUENCE_NUMBER).
    #[error("producer {producer_id}: sequence {found} does not follow {last}")]
    OutOfOrderSequence {
        producer_id: i64,
        /// Last sequence number in the log; -1 when a new epoch has to start at 0.
        last: i32,
        /// First sequence number of the batch.
        found: i32,
    },
    /// The producer was fenced by a newer epoch (INVALID_PRODUCER_EPOCH).
    #[error("producer {producer_id}: epoch {found} is older than {current}")]
    InvalidProducerEpoch {
        producer_id: i64,
        /// Epoch in the log.
        current: i16,
        /// Epoch of the batch.
        found: i16,
    },
    /// A marker of a fenced transaction coordinator (TRANSACTION_COORDINATOR_FENCED).
    #[error("producer {producer_id}: coordinator epoch {found} is older than {current}")]
    CoordinatorFenced {
        producer_id: i64,
        /// Coordinator epoch of the last marker in the log.
        current: i32,
        /// Coordinator epoch of the marker.
        found: i32,
    },
    /// A batch outside a transaction, while its producer has an open one (INVALID_TXN_STATE).
    #[error(
        "producer {producer_id}: its transaction since offset {first_offset} is open and the batch is not part of it"
    )]
    InvalidTxnState {
        producer_id: i64,
        /// First offset of the transaction.
        first_offset: i64,
    },
    /// A batch that would begin a transaction without a valid verification (INVALID_TXN_STATE).
    #[error(
        "producer {producer_id}: the batch is part of no transaction that its coordinator is known to have begun here"
    )]
    NotVerified { producer_id: i64 },
    /// The leader epoch is over: there is a later one, or this broker is not the leader any more
    /// (NOT_LEADER_OR_FOLLOWER).
    #[error("leader epoch {epoch} is over: the log takes appends from epoch {oldest} on")]
    LeaderFenced {
        /// Epoch of the append.
        epoch: i32,
        /// The oldest epoch that may append.
        oldest: i32,
    },
    /// A follower's batch does not continue the log.
    #[error("batch at offset {found} does not continue the log, which ends at {expected}")]
    UnexpectedOffset {
        /// Log end offset.
        expected: i64,
        /// Base offset of the batch.
        found: i64,
    },
    /// The log directory failed (KAFKA_STORAGE_ERROR).
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The process or the system lacks file descriptors, memory or mappings (KAFKA_STORAGE_ERROR, which clients
    /// retry). The log is unchanged.
    #[error("{path}: {source}", path = path.display())]
    Exhausted {
        /// The file concerned.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The log rejects appends after an earlier failure, or because it is closed (KAFKA_STORAGE_ERROR).
    #[error("{path}: the log is offline after an earlier failure or close", path = path.display())]
    Offline {
        /// The directory of the log.
        path: PathBuf,
    },
}

impl AppendError {
    /// Returns the error for bytes that contain no batch.
    #[must_use]
    pub fn malformed(error: RecordError) -> Self {
        Self::Invalid(match error {
            RecordError::Magic(magic) => InvalidBatch::UnsupportedFormat(magic),
            other => InvalidBatch::Corrupt(other.to_string()),
        })
    }
}

impl From<LogError> for AppendError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Io { path, source } => Self::Io { path, source },
            LogError::Exhausted { path, source } => Self::Exhausted { path, source },
            LogError::Corrupt { path, reason } => {
                Self::Io { path, source: io::Error::new(io::ErrorKind::InvalidData, reason) }
            }
            LogError::Offline { path } => Self::Offline { path },
        }
    }
}

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The offset is below the log start or beyond the log end (OFFSET_OUT_OF_RANGE).
    #[error("offset {offset} is outside [{start}, {end}]")]
    OffsetOutOfRange {
        /// The requested offset.
        offset: i64,
        /// Log start offset.
        start: i64,
        /// Log end offset.
        end: i64,
    },
    /// A file is damaged at the position of the read (CORRUPT_MESSAGE).
    #[error("{path}: {reason}", path = path.display())]
    Corrupt {
        /// The file concerned.
        path: PathBuf,
        /// Description of the damage.
        reason: String,
    },
    /// The log directory failed (KAFKA_STORAGE_ERROR).
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The process or the system lacks file descriptors, memory or mappings (KAFKA_STORAGE_ERROR, which clients
    /// retry). The log is unchanged.
    #[error("{path}: {source}", path = path.display())]
    Exhausted {
        /// The file concerned.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl From<LogError> for ReadError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Io { path, source } => Self::Io { path, source },
            LogError::Exhausted { path, source } => Self::Exhausted { path, source },
            LogError::Corrupt { path, reason } => Self::Corrupt { path, reason },
            LogError::Offline { path } => Self::Io { path, source: io::Error::other("the log is offline") },
        }
    }
}
