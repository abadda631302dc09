//! What can go wrong in a log, by meaning.
//!
//! [`AppendError`] and [`ReadError`] are answers to a request; [`LogError`] is about the log itself. An `Io` variant
//! always names the path and means that the log directory is in doubt. An `Exhausted` variant means that the process or the
//! system has no descriptor, no memory or no mapping to give: nothing is wrong with the disk, the log is what it was, and the
//! same operation may succeed later.

use std::io;
use std::path::{Path, PathBuf};

use pybroker_record::{InvalidBatch, RecordError};
use pybroker_sys::file::is_exhaustion;

/// An operation on the log as a whole failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file system refused; the log directory is in doubt.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory concerned.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The process or the system has no descriptor, memory or mapping to give; nothing was changed.
    #[error("{path}: {source}", path = path.display())]
    Exhausted {
        /// The file concerned.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what its name says.
    #[error("{path}: {reason}", path = path.display())]
    Corrupt {
        /// The file concerned.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An earlier write or sync of this log failed, or it is closed: it takes no more changes.
    #[error("{path}: the log is offline after an earlier failure or close", path = path.display())]
    Offline {
        /// The directory of the log.
        path: PathBuf,
    },
}

impl LogError {
    /// Wraps a system error with the path it concerns, by its meaning; shaped for `map_err`.
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.as_ref().to_path_buf();
            if is_exhaustion(&source) { Self::Exhausted { path, source } } else { Self::Io { path, source } }
        }
    }

    /// The error of an operation that was left half done: the log is in doubt, whatever kept it from its end.
    pub(crate) fn half_done(self) -> Self {
        match self {
            Self::Exhausted { path, source } => {
                log::error!("{}: a change was left half done: {source}", path.display());
                Self::Io { path, source: io::Error::from_raw_os_error(libc::EIO) }
            }
            other @ (Self::Io { .. } | Self::Corrupt { .. } | Self::Offline { .. }) => other,
        }
    }

    /// Whether the operation may succeed later, and nothing is wrong with the disk.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        matches!(self, Self::Exhausted { .. })
    }
}

/// Why nothing was appended. After every variant the log holds exactly what it held before.
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
        /// The setting.
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
    /// A marker of a transaction coordinator that another one has succeeded (TRANSACTION_COORDINATOR_FENCED).
    #[error("producer {producer_id}: coordinator epoch {found} is older than {current}")]
    CoordinatorFenced {
        producer_id: i64,
        /// Coordinator epoch of the last marker in the log.
        current: i32,
        /// Coordinator epoch of the marker.
        found: i32,
    },
    /// A batch outside transactions, while one of its producer is open (INVALID_TXN_STATE).
    #[error(
        "producer {producer_id}: its transaction since offset {first_offset} is open and the batch is not part of it"
    )]
    InvalidTxnState {
        producer_id: i64,
        /// First offset of the transaction.
        first_offset: i64,
    },
    /// A batch that would begin a transaction without a verification that holds (INVALID_TXN_STATE).
    #[error(
        "producer {producer_id}: the batch is part of no transaction that its coordinator is known to have begun here"
    )]
    NotVerified { producer_id: i64 },
    /// The leader's epoch is over: another one has begun, or this broker leads no more (NOT_LEADER_OR_FOLLOWER).
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
        /// What the system said.
        source: io::Error,
    },
    /// The process or the system has no descriptor, memory or mapping to give (KAFKA_STORAGE_ERROR, which clients retry); nothing was changed.
    #[error("{path}: {source}", path = path.display())]
    Exhausted {
        /// The file concerned.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The log takes no appends any more: an earlier failure, or it is closed (KAFKA_STORAGE_ERROR).
    #[error("{path}: the log is offline after an earlier failure or close", path = path.display())]
    Offline {
        /// The directory of the log.
        path: PathBuf,
    },
}

impl AppendError {
    /// The error of bytes in which no batch is found.
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

/// Why nothing can be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The offset is below the log start or beyond the log end (OFFSET_OUT_OF_RANGE).
    #[error("offset {offset} is outside [{start}, {end}]")]
    OffsetOutOfRange {
        /// The offset asked for.
        offset: i64,
        /// Log start offset.
        start: i64,
        /// Log end offset.
        end: i64,
    },
    /// A file is damaged where it would be read (CORRUPT_MESSAGE).
    #[error("{path}: {reason}", path = path.display())]
    Corrupt {
        /// The file concerned.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The log directory failed (KAFKA_STORAGE_ERROR).
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file concerned.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The process or the system has no descriptor, memory or mapping to give (KAFKA_STORAGE_ERROR, which clients retry); nothing was changed.
    #[error("{path}: {source}", path = path.display())]
    Exhausted {
        /// The file concerned.
        path: PathBuf,
        /// What the system said.
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
