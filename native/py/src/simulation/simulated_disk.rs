//! `SimulatedDisk`: a directory under the tests' file layer, for the simulation of whole clusters.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pybroker_sys::faults::{Crash, Done, FaultLayer};
use pybroker_sys::file;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The faults to inject.
#[derive(Default)]
struct Faults {
    /// Writes until one fails; `u64::MAX` for no failure.
    writes_left: AtomicU64,
    sync_fails: AtomicBool,
}

impl Faults {
    fn decision(&self, done: &Done) -> Option<io::Error> {
        match done {
            Done::Write(_) | Done::Create(_) => {
                let less = |left: u64| match left {
                    u64::MAX => Some(left),
                    0 => None,
                    _ => Some(left - 1),
                };
                let taken = self.writes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
                taken.is_err().then(|| io::Error::from_raw_os_error(ENOSPC))
            }
            Done::Sync(_) => self.sync_fails.load(Ordering::Relaxed).then(|| io::Error::from_raw_os_error(EIO)),
            _ => None,
        }
    }
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// A disk; see `_native.pyi`.
#[pyclass(frozen, name = "SimulatedDisk", module = "pybroker._native")]
pub struct PySimulatedDisk {
    root: PathBuf,
    layer: Arc<FaultLayer>,
    faults: Arc<Faults>,
}

#[pymethods]
impl PySimulatedDisk {
    #[new]
    #[pyo3(signature = (root))]
    fn new(root: PathBuf) -> Self {
        let layer = FaultLayer::over(&root);
        let faults = Arc::new(Faults { writes_left: AtomicU64::new(u64::MAX), sync_fails: AtomicBool::new(false) });
        let decisions = Arc::clone(&faults);
        layer.fail_when(move |done| decisions.decision(done));
        layer.record_named();
        Self { root, layer, faults }
    }

    #[getter]
    fn root(&self) -> PathBuf {
        self.root.clone()
    }

    #[pyo3(signature = (writes))]
    fn fill_up_after(&self, writes: Option<u64>) {
        self.faults.writes_left.store(writes.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    #[pyo3(signature = (fails))]
    fn fail_syncs(&self, fails: bool) {
        self.faults.sync_fails.store(fails, Ordering::Relaxed);
    }

    #[pyo3(signature = (path, content))]
    fn replace_file(&self, path: PathBuf, content: &[u8]) -> PyResult<()> {
        Ok(replace(&path, content)?)
    }

    #[pyo3(signature = (how, seed, root))]
    fn crash(&self, how: &str, seed: u64, root: PathBuf) -> PyResult<()> {
        let how = match how {
            "process" => Crash::OfTheProcess,
            "losing" => Crash::LosingAll,
            "torn" => Crash::Torn(seed),
            other => {
                let text = format!("a crash is {other:?}; it has to be 'process', 'losing' or 'torn'");
                return Err(PyValueError::new_err(text));
            }
        };
        for (path, bytes) in self.layer.crash_now(how) {
            let path = root.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, bytes)?;
        }
        Ok(())
    }
}

/// Replaces a small file atomically, as `pybroker/storage/log_dirs/atomic_file.py` does, under the layer.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let made = file::create(&temporary)?;
    file::write_all_at(&made, content, 0)?;
    file::sync_data(&made)?;
    file::rename(&temporary, path)?;
    path.parent().map_or(Ok(()), file::sync_directory)
}
