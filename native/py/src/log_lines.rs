//! Passes lines of the `log` crate to Python's `logging`.
//!
//! A thread may write a line while it has a lock that a Python thread waits for. So the writer never waits for the
//! interpreter: a thread of its own passes the lines on. The logger's name is that of the crate: `pybroker.storage`.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use pyo3::prelude::*;

/// The most lines that wait for the interpreter. Further ones are dropped, to limit the memory of the log.
const MOST_WAITING: usize = 1_000;

struct Line {
    level: u32,
    logger: String,
    text: String,
}

struct Lines(OnceLock<SyncSender<Line>>);

static LINES: Lines = Lines(OnceLock::new());

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("pybroker_") && metadata.level() <= log::Level::Info
    }

    fn log(&self, record: &log::Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            log::Level::Error => 40,
            log::Level::Warn => 30,
            log::Level::Info | log::Level::Debug | log::Level::Trace => 20,
        };
        let logger = record.target().split("::").next().unwrap_or_default().replacen('_', ".", 1);
        let line = Line { level, logger, text: record.args().to_string() };
        // A full queue, or one without its thread, drops the line.
        let _ = self.0.get_or_init(start).try_send(line);
    }

    fn flush(&self) {}
}

fn start() -> SyncSender<Line> {
    let (sender, lines) = sync_channel(MOST_WAITING);
    let _ = thread::Builder::new().name("pybroker-log".to_owned()).spawn(move || pass_on(&lines));
    sender
}

fn pass_on(lines: &Receiver<Line>) {
    while let Ok(line) = lines.recv() {
        if Python::try_attach(|py| pass(py, &line)).is_none() {
            return; // the interpreter has ended
        }
    }
}

fn pass(py: Python<'_>, line: &Line) {
    let passed = py
        .import("logging")
        .and_then(|logging| logging.call_method1("getLogger", (&line.logger,)))
        .and_then(|logger| logger.call_method1("log", (line.level, "%s", &line.text)));
    if let Err(error) = passed {
        error.write_unraisable(py, None);
    }
}

/// Passes the lines of this project's crates to Python's `logging`.
pub fn install() {
    if log::set_logger(&LINES).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
}
