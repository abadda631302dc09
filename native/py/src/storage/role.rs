//! `Role`: this broker's role for a partition, and the change of many roles.

use std::sync::Arc;

use pybroker_replica::{BrokerId, FollowerInSync, Following, LeaderEpoch, Leadership, NotBecome, Partition, Waiter};
use pybroker_storage::RepairedEpochs;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;

use crate::error::not_become;
use crate::net::handle::PyDataPlane;
use crate::storage::partition::PyPartition;

/// A role with its parameters; see `_native.pyi`.
#[pyclass(frozen, name = "Role", module = "pybroker._native")]
pub struct PyRole {
    pub change: Change,
}

/// The change of a partition's role.
#[derive(Clone)]
pub enum Change {
    Lead(Leadership),
    Follow(Following),
    Leave(LeaderEpoch),
}

#[pymethods]
impl PyRole {
    #[staticmethod]
    #[pyo3(signature = (leader_epoch, *, partition_epoch, followers, min_insync_replicas))]
    fn leader(
        leader_epoch: i32,
        partition_epoch: i32,
        followers: Vec<(i32, bool)>,
        min_insync_replicas: usize,
    ) -> Self {
        let follower = |(id, in_sync)| FollowerInSync { id: BrokerId(id), in_sync };
        let followers = followers.into_iter().map(follower).collect();
        let leader_epoch = LeaderEpoch(leader_epoch);
        let min_in_sync = min_insync_replicas;
        Self { change: Change::Lead(Leadership { leader_epoch, partition_epoch, followers, min_in_sync }) }
    }

    #[staticmethod]
    #[pyo3(signature = (leader_epoch, *, leader))]
    fn follower(leader_epoch: i32, leader: i32) -> Self {
        Self { change: Change::Follow(Following { leader: BrokerId(leader), leader_epoch: LeaderEpoch(leader_epoch) }) }
    }

    #[staticmethod]
    #[pyo3(signature = (leader_epoch))]
    fn none(leader_epoch: i32) -> Self {
        Self { change: Change::Leave(LeaderEpoch(leader_epoch)) }
    }
}

impl Change {
    /// Changes the role of a partition; returns a repair of its leader epochs.
    pub fn make(
        self,
        partition: &Partition,
        now_ms: i64,
        wake: &mut dyn FnMut(Waiter),
    ) -> Result<Option<RepairedEpochs>, NotBecome> {
        match self {
            Self::Lead(leadership) => partition.become_leader(leadership, now_ms, wake),
            Self::Follow(following) => partition.become_follower(following, wake),
            Self::Leave(leader_epoch) => partition.become_none(leader_epoch, wake).map(|()| None),
        }
    }
}

/// Changes the roles of many partitions; see `_native.pyi`.
#[pyfunction]
#[pyo3(signature = (changes, data_plane))]
pub fn become_roles(
    py: Python<'_>,
    changes: Vec<(PyRef<'_, PyPartition>, PyRef<'_, PyRole>)>,
    data_plane: &PyDataPlane,
) -> Vec<Option<Py<PyBaseException>>> {
    let changes: Vec<_> = changes.iter().map(|(partition, role)| (&partition.inner, role.change.clone())).collect();
    let data_plane = &data_plane.inner;
    let become_one = |(partition, change): (&Arc<Partition>, Change)| {
        let made = change.make(partition, data_plane.wall_ms(), &mut |waiter| data_plane.wake(waiter));
        made.map(|repaired| repaired.into_iter().for_each(|repaired| data_plane.epochs_repaired(partition, &repaired)))
    };
    let failures: Vec<_> = py.detach(|| {
        let changed: Vec<_> = changes.iter().map(|(partition, _)| Arc::clone(partition)).collect();
        let failures = changes.into_iter().map(|change| become_one(change).err()).collect();
        data_plane.roles_changed(changed);
        failures
    });
    failures.into_iter().map(|failure| Some(not_become(failure?).into_value(py))).collect()
}
