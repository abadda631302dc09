//! The incomplete batches, and whether another may be opened. Both are under one lock: after the gate was closed, `flush`
//! waits for every batch opened before.

use std::collections::BTreeSet;

use super::transaction::{Gate, Mark};
use crate::error::ClientError;

/// The ids of incomplete batches, and the gate.
#[derive(Debug, Default)]
pub struct Incomplete {
    pub next_id: u64,
    pub ids: BTreeSet<u64>,
    gate: Gate,
}

impl Incomplete {
    /// Open a batch; returns its id and its transaction.
    pub fn open(&mut self) -> Result<(u64, Option<Mark>), ClientError> {
        let mark = match &self.gate {
            Gate::Free => None,
            Gate::Open(mark) => Some(*mark),
            Gate::Shut(error) => return Err(error.clone()),
        };
        let id = self.next_id;
        self.next_id += 1;
        self.ids.insert(id);
        Ok((id, mark))
    }

    /// Set whether further batches may be opened.
    pub fn set_gate(&mut self, gate: Gate) {
        self.gate = gate;
    }
}
