//! Opening a log: builds a [`Log`] from the state that recovery has loaded.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::directory::log_dir::LogHome;
use crate::log::Log;
use crate::log::state::EpochFile;
use crate::recovery;
use crate::{LogConfig, LogError, OpenLog, Recovered, RecoveryProgress};

impl Log {
    /// Opens the log in `dir`. Creates the directory and the first segment when they are absent.
    ///
    /// After an unclean shutdown, recovery checks every segment from the recovery point on, truncates a torn tail,
    /// and rebuilds indexes and producer state.
    ///
    /// # Errors
    /// `Io` with the path that failed.
    pub fn open(dir: &Path, config: LogConfig, how: OpenLog) -> Result<(Self, Recovered), LogError> {
        Self::open_with_progress(dir, config, how, &RecoveryProgress::default())
    }

    /// Like [`Self::open`], and reports the progress of recovery.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with_progress(
        dir: &Path,
        config: LogConfig,
        how: OpenLog,
        progress: &RecoveryProgress,
    ) -> Result<(Self, Recovered), LogError> {
        let home = LogHome::new(dir);
        let (loaded, recovered) = recovery::load(&home, &config, how, progress)?;
        let transactions = loaded.writer.producers.transactions();
        let log = Self {
            is_missing_records: recovered.is_missing_records(),
            hole: AtomicI64::new(recovered.hole.unwrap_or(i64::MAX)),
            first_unstable: AtomicI64::new(transactions.first_unstable().unwrap_or(i64::MAX)),
            next_to_complete: AtomicI64::new(transactions.next_to_complete().unwrap_or(i64::MAX)),
            home,
            config: ArcSwap::from_pointee(config),
            view: ArcSwap::from_pointee(loaded.view),
            writer: Mutex::new(loaded.writer),
            epochs: Mutex::new(EpochFile { epochs: loaded.epochs, dirty: false, verified: false }),
            cleaning: Mutex::new(()),
            cleaning_ends: AtomicU32::new(0),
            flushing: Mutex::new(()),
            recovery_point: AtomicI64::new(loaded.recovery_point),
            flushed_ms: AtomicI64::new(how.now_ms),
            directory_dirty: AtomicBool::new(loaded.directory_dirty),
            parent_dirty: AtomicBool::new(loaded.parent_dirty),
            failure: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        };
        Ok((log, recovered))
    }
}
