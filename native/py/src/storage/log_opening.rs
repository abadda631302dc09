//! `LogOpening`: the facts known about a partition's log before it is opened; and opening many logs.

use std::path::PathBuf;
use std::sync::Arc;

use pybroker_replica::Partition;
use pybroker_storage::{Log, LogConfig, LogError, OpenLog, RecoveryProgress, partition_metadata};
use pybroker_wire::TopicId;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;

use crate::error::log_error;
use crate::storage::log_config::PyLogConfig;
use crate::storage::partition::{PyPartition, topic_id};
use crate::storage::recovery_progress::PyRecoveryProgress;

/// The facts that the owner of a log knows before it is opened; see `_native.pyi`.
#[pyclass(frozen, name = "LogOpening", module = "pybroker._native")]
pub struct PyLogOpening {
    directory: PathBuf,
    topic: Arc<str>,
    index: i32,
    topic_id: TopicId,
    /// Whether the directory's `partition.metadata` has been read and has this topic id.
    claimed: bool,
    config: LogConfig,
    clean_shutdown: bool,
    recovery_point: i64,
    log_start_offset: i64,
    high_watermark: i64,
    progress: Arc<RecoveryProgress>,
}

#[pymethods]
impl PyLogOpening {
    #[new]
    #[pyo3(signature = (*, directory, topic, index, topic_id, claimed, config, clean_shutdown, recovery_point, log_start_offset, high_watermark, progress))]
    #[allow(clippy::too_many_arguments, reason = "keyword-only: one argument a field")]
    fn new(
        directory: PathBuf,
        topic: &str,
        index: i32,
        topic_id: &[u8],
        claimed: bool,
        config: &PyLogConfig,
        clean_shutdown: bool,
        recovery_point: i64,
        log_start_offset: i64,
        high_watermark: i64,
        progress: &PyRecoveryProgress,
    ) -> PyResult<Self> {
        Ok(Self {
            directory,
            topic: topic.into(),
            index,
            topic_id: self::topic_id(topic_id)?,
            claimed,
            config: config.config.clone(),
            clean_shutdown,
            recovery_point,
            log_start_offset,
            high_watermark,
            progress: Arc::clone(&progress.inner),
        })
    }
}

impl PyLogOpening {
    fn open(&self, now_ms: i64) -> Result<Partition, LogError> {
        let path = self.directory.join(format!("{}-{}", self.topic, self.index));
        let how = OpenLog {
            clean_shutdown: self.clean_shutdown,
            recovery_point: self.recovery_point,
            log_start_offset: self.log_start_offset,
            high_watermark: self.high_watermark,
            now_ms,
        };
        let (log, recovered) = Log::open_with_progress(&path, self.config.clone(), how, &self.progress)?;
        self.progress.note(format!("{}-{}", self.topic, self.index), recovered);
        if !self.claimed {
            partition_metadata::claim(&path, &self.topic_id)?;
        }
        let (topic, directory) = (Arc::clone(&self.topic), self.directory.clone());
        Ok(Partition::new(topic, self.index, self.topic_id, directory, log, self.high_watermark))
    }
}

/// A partition, or the error of its opening.
#[derive(IntoPyObject)]
pub enum Opened {
    Partition(Py<PyPartition>),
    Failed(Py<PyBaseException>),
}

/// Opens logs one after the other without the interpreter lock; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (openings, *, now_ms))]
pub fn open_logs(py: Python<'_>, openings: Vec<PyRef<'_, PyLogOpening>>, now_ms: i64) -> PyResult<Vec<Opened>> {
    let openings: Vec<&PyLogOpening> = openings.iter().map(|opening| &**opening).collect();
    let opened: Vec<_> = py.detach(|| openings.into_iter().map(|opening| opening.open(now_ms)).collect());
    let shown = opened.into_iter().map(|opened| match opened {
        Ok(partition) => Ok(Opened::Partition(Py::new(py, PyPartition { inner: Arc::new(partition) })?)),
        Err(error) => Ok(Opened::Failed(log_error(error).into_value(py))),
    });
    shown.collect()
}
