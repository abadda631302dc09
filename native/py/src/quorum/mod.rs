//! The Raft voter and the batches of the metadata log, for `pybroker.controller.quorum`.
//!
//! Owns the conversion alone: entries are `(index, term, payload)`, messages `(replica, bytes)`, snapshots
//! `(index, term, id)`.

pub(crate) mod control_batch;
pub(crate) mod log;
pub(crate) mod quorum_ready;

use parking_lot::Mutex;
use pybroker_quorum::{HardState, Position, QuorumSettings, ReplicaKey, Restored, TermRun};
use pyo3::prelude::*;

use crate::error::quorum_error;
use crate::quorum::quorum_ready::{Parts, QuorumReady, entry, mark, parts};

/// A voter of the metadata quorum; no method does I/O.
#[pyclass(frozen, module = "pybroker._native")]
pub struct Quorum(Mutex<pybroker_quorum::Quorum>);

#[pymethods]
impl Quorum {
    #[new]
    #[pyo3(signature = (
        *, key, voters, is_open, election_ticks, heartbeat_ticks, message_bytes, messages_in_flight, kept_bytes,
        hard_state, before, snapshot, terms, last, replayed, tail, awaited
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        key: ReplicaKey,
        voters: Vec<ReplicaKey>,
        is_open: bool,
        election_ticks: usize,
        heartbeat_ticks: usize,
        message_bytes: u64,
        messages_in_flight: usize,
        kept_bytes: usize,
        hard_state: Option<(u64, Option<ReplicaKey>)>,
        before: (u64, u64),
        snapshot: Option<Parts>,
        terms: Vec<(u64, u64)>,
        last: u64,
        replayed: u64,
        tail: Vec<Parts>,
        awaited: (u64, u64),
    ) -> PyResult<Self> {
        let settings = QuorumSettings {
            key,
            voters,
            is_open,
            election_ticks,
            heartbeat_ticks,
            message_bytes,
            messages_in_flight,
            kept_bytes,
        };
        let restored = Restored {
            hard_state: hard_state.map(|(term, vote)| HardState { term, vote }),
            before: Position { index: before.0, term: before.1 },
            snapshot: snapshot.map(mark),
            runs: terms.into_iter().map(|(first, term)| TermRun { first, term }).collect(),
            last,
            replayed,
            tail: tail.into_iter().map(entry).collect(),
            awaited: Position { index: awaited.0, term: awaited.1 },
        };
        pybroker_quorum::Quorum::new(&settings, restored).map(|quorum| Self(Mutex::new(quorum))).map_err(quorum_error)
    }

    #[getter]
    fn is_leader(&self) -> bool {
        self.0.lock().is_leader()
    }

    #[getter]
    fn leader(&self) -> Option<ReplicaKey> {
        self.0.lock().leader()
    }

    #[getter]
    fn term(&self) -> u64 {
        self.0.lock().term()
    }

    #[getter]
    fn last_index(&self) -> u64 {
        self.0.lock().last_index()
    }

    #[pyo3(signature = ())]
    fn take_losses(&self) -> (Option<u64>, Vec<(ReplicaKey, u64, u64)>) {
        let mut quorum = self.0.lock();
        (quorum.awaited(), quorum.take_lost())
    }

    #[getter]
    fn wanted(&self) -> Option<u64> {
        self.0.lock().wanted()
    }

    #[pyo3(signature = ())]
    fn progress(&self) -> Vec<(ReplicaKey, u64)> {
        self.0.lock().progress().into_iter().map(|replica| (replica.key, replica.matched)).collect()
    }

    #[pyo3(signature = (now_ms))]
    fn tick(&self, now_ms: i64) -> bool {
        self.0.lock().tick(now_ms)
    }

    #[pyo3(signature = (now_ms))]
    fn campaign(&self, now_ms: i64) -> PyResult<()> {
        self.0.lock().campaign(now_ms).map_err(quorum_error)
    }

    #[pyo3(signature = (replica, message, now_ms))]
    fn step(&self, replica: ReplicaKey, message: &[u8], now_ms: i64) -> PyResult<Option<Parts>> {
        Ok(self.0.lock().step(replica, message, now_ms).map_err(quorum_error)?.map(parts))
    }

    #[pyo3(signature = (snapshot, voters))]
    fn install(&self, snapshot: Parts, voters: Vec<ReplicaKey>) -> PyResult<()> {
        self.0.lock().install(&mark(snapshot), &voters).map_err(quorum_error)
    }

    #[pyo3(signature = ())]
    fn decline(&self) {
        self.0.lock().decline();
    }

    #[pyo3(signature = (payload))]
    fn propose(&self, payload: &[u8]) -> PyResult<u64> {
        self.0.lock().propose(payload.to_vec()).map_err(quorum_error)
    }

    #[pyo3(signature = (voters, renamed))]
    fn change_voters(&self, voters: Vec<ReplicaKey>, renamed: Vec<(ReplicaKey, ReplicaKey)>) -> PyResult<()> {
        let mut quorum = self.0.lock();
        quorum.rename(&renamed);
        quorum.change_voters(&voters).map_err(quorum_error)
    }

    #[pyo3(signature = (key, follows))]
    fn set_learner(&self, key: ReplicaKey, follows: bool) -> PyResult<()> {
        let mut quorum = self.0.lock();
        if follows { quorum.add_learner(key) } else { quorum.remove_learner(key) }.map_err(quorum_error)
    }

    #[pyo3(signature = ())]
    fn resign(&self) {
        self.0.lock().resign();
    }

    #[getter]
    fn votes(&self) -> bool {
        self.0.lock().votes()
    }

    #[pyo3(signature = ())]
    fn forget_leader(&self) {
        self.0.lock().forget_leader();
    }

    #[pyo3(signature = (voter))]
    fn transfer_leader(&self, voter: ReplicaKey) {
        self.0.lock().transfer_leader(voter);
    }

    #[pyo3(signature = (voter))]
    fn unreachable(&self, voter: ReplicaKey) {
        self.0.lock().unreachable(voter);
    }

    #[pyo3(signature = ())]
    fn ready(&self) -> Option<QuorumReady> {
        self.0.lock().ready().map(QuorumReady)
    }

    #[pyo3(signature = (number))]
    fn persisted(&self, number: u64) {
        self.0.lock().persisted(number);
    }

    #[pyo3(signature = (low, entries))]
    fn provide(&self, low: u64, entries: Vec<Parts>) {
        self.0.lock().provide(low, entries.into_iter().map(entry).collect());
    }

    #[pyo3(signature = (snapshot))]
    fn set_snapshot(&self, snapshot: Parts) {
        self.0.lock().set_snapshot(mark(snapshot));
    }

    #[pyo3(signature = (index))]
    fn forget_before(&self, index: u64) {
        self.0.lock().forget_before(index);
    }
}
