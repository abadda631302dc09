//! Voters whose logs lose their ends while they are down: no committed entry is lost, because such voters vote as if
//! they had the lost entries.

use super::*;

impl Cluster {
    /// Truncates the log of a voter that is down.
    pub(super) fn lose_tail(&mut self, at: usize) {
        let length = self.nodes[at].disk.log.len();
        let kept = self.dice.below(length + 1);
        let node = &mut self.nodes[at];
        if node.quorum.is_none() && kept < length {
            node.disk.log.truncate(kept);
            self.losses = self.losses.map(|count| count + 1);
        }
    }

    fn losing(seed: u64, planted: Planted, changes: bool) -> Self {
        Self { losses: Some(0), ..Self::begin(seed, planted, changes) }
    }
}

/// Returns the numbers of commits and losses of a run.
fn run(mut cluster: Cluster) -> Result<(usize, usize), String> {
    (0..STEPS).try_for_each(|_| cluster.step())?;
    Ok((cluster.committed.len(), cluster.losses.unwrap_or_default()))
}

#[test]
fn nothing_committed_is_lost_with_the_ends_of_logs() {
    let mut seen = vec![];
    for seed in 0..600 {
        let cluster = Cluster::losing(seed, Planted::Nothing, seed % 3 == 0);
        seen.push(run(cluster).unwrap_or_else(|error| panic!("seed {seed}: {error}")));
    }
    let busy = seen.iter().filter(|(committed, losses)| *committed > 5 && *losses > 0).count();
    assert!(busy >= 60, "{busy} of {} runs commit entries and lose some", seen.len());
}

#[test]
fn a_voter_that_forgets_that_it_lost_entries_is_found() {
    let failure = (0..2000).find_map(|seed| {
        let run = std::panic::catch_unwind(|| run(Cluster::losing(seed, Planted::LossForgotten, false)));
        run.unwrap_or_else(|_| Err("the library gave up".to_owned())).err()
    });
    assert_eq!(failure, Some("voter 1 leads term 3 without entry 12".to_owned()));
}
