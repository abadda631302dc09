//! The invariants at every step of a simulation: one leader per term, matching logs, and no committed entry that a
//! later leader lacks.

use super::*;

impl Cluster {
    pub(super) fn check_committed(&mut self, id: i64, entry: Entry) -> Result<(), String> {
        let place = entry.index as usize - 1;
        match self.committed.get(place) {
            Some(known) if *known != entry => Err(format!("voter {id} committed another entry {}", entry.index)),
            Some(_) => Ok(()),
            None if place == self.committed.len() => {
                self.committed.push(entry);
                Ok(())
            }
            None => Err(format!("voter {id} committed entry {} after {}", entry.index, self.committed.len())),
        }
    }

    pub(super) fn check_leader(&mut self, at: usize) -> Result<(), String> {
        let id = self.ids[at];
        let Some(quorum) = &self.nodes[at].quorum else { return Ok(()) };
        if !quorum.is_leader() {
            return Ok(());
        }
        let term = quorum.term();
        if let Some(known) = self.leaders.get(&term) {
            return if *known == id { Ok(()) } else { Err(format!("voters {known} and {id} lead term {term}")) };
        }
        self.leaders.insert(term, id);
        let newest = self.leaders.keys().next_back() == Some(&term);
        if newest && quorum.last_index() < self.committed.len() as u64 {
            return Err(format!("voter {id} leads term {term} without entry {}", self.committed.len()));
        }
        Ok(())
    }
}
