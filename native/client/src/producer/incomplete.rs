//! Which batches were opened and are not decided, and whether another may be opened. Looked at under one lock: after the
//! gate was shut, `flush` waits for every batch that passed.

use std::collections::BTreeSet;

use super::transaction::{Gate, Mark};
use crate::error::ClientError;

/// See the module.
#[derive(Debug, Default)]
pub struct Incomplete {
    pub next_id: u64,
    pub ids: BTreeSet<u64>,
    gate: Gate,
}

impl Incomplete {
    /// The number of a batch that is opened, and the transaction that it belongs to.
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

    /// From now on open batches as the gate says.
    pub fn set_gate(&mut self, gate: Gate) {
        self.gate = gate;
    }
}
