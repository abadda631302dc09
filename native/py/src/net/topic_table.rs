//! `TopicTable` and its parts: the control plane's snapshot for the data plane.

use std::collections::HashMap;
use std::sync::Arc;

use pybroker_replica::{BrokerId, LeaderEpoch, PartitionSlot, Topic, TopicTable};
use pybroker_wire::BrokerEndpoint;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::storage::partition::{PyPartition, topic_id};

/// One partition of a topic; see `_native.pyi`.
#[pyclass(frozen, name = "PartitionEntry", module = "pybroker._native")]
pub struct PyPartitionEntry {
    index: usize,
    slot: PartitionSlot,
}

#[pymethods]
impl PyPartitionEntry {
    #[new]
    #[pyo3(signature = (*, index, partition, offline, leader, leader_epoch))]
    fn new(index: usize, partition: Option<&PyPartition>, offline: bool, leader: i32, leader_epoch: i32) -> Self {
        let partition = partition.map(|partition| Arc::clone(&partition.inner));
        let (leader, leader_epoch) = (BrokerId(leader), LeaderEpoch(leader_epoch));
        Self { index, slot: PartitionSlot { partition, offline, leader, leader_epoch } }
    }
}

/// One topic; see `_native.pyi`.
#[pyclass(frozen, name = "TopicEntry", module = "pybroker._native")]
pub struct PyTopicEntry {
    name: Arc<str>,
    id: [u8; 16],
    internal: bool,
    slots: Vec<Option<PartitionSlot>>,
}

/// More partitions than any topic has: a larger index is an error, and allocates no memory.
const MAX_PARTITIONS: usize = 10_000_000;

#[pymethods]
impl PyTopicEntry {
    #[new]
    #[pyo3(signature = (*, name, topic_id, internal, partitions))]
    fn new(
        name: &str,
        topic_id: &[u8],
        internal: bool,
        partitions: Vec<PyRef<'_, PyPartitionEntry>>,
    ) -> PyResult<Self> {
        let count = partitions.iter().map(|entry| entry.index + 1).max().unwrap_or(0);
        if count > MAX_PARTITIONS {
            return Err(PyValueError::new_err(format!("topic {name} has a partition index of {}", count - 1)));
        }
        let mut slots = vec![None; count];
        for entry in &partitions {
            slots[entry.index] = Some(entry.slot.clone());
        }
        Ok(Self { name: name.into(), id: self::topic_id(topic_id)?, internal, slots })
    }
}

/// Id, host, port and rack of a broker.
type Endpoint = (i32, String, u16, Option<String>);

/// The snapshot; see `_native.pyi`.
#[pyclass(frozen, name = "TopicTable", module = "pybroker._native")]
pub struct PyTopicTable {
    pub inner: Arc<TopicTable>,
}

#[pymethods]
impl PyTopicTable {
    #[new]
    #[pyo3(signature = (*, brokers))]
    fn new(brokers: HashMap<String, Vec<Endpoint>>) -> Self {
        let endpoint = |(id, host, port, rack)| BrokerEndpoint { id, host, port, rack };
        let of_listener =
            |(listener, brokers): (_, Vec<_>)| (listener, brokers.into_iter().map(endpoint).collect::<Vec<_>>());
        Self { inner: Arc::new(TopicTable::new(brokers.into_iter().map(of_listener).collect())) }
    }

    #[pyo3(signature = (*, upsert, remove))]
    fn replace(&self, upsert: Vec<PyRef<'_, PyTopicEntry>>, remove: Vec<String>) -> Self {
        let topic = |entry: &PyRef<'_, PyTopicEntry>| Topic {
            name: Arc::clone(&entry.name),
            id: entry.id,
            internal: entry.internal,
            partitions: entry.slots.clone(),
            counters: Arc::default(),
        };
        Self { inner: Arc::new(self.inner.replace(upsert.iter().map(topic), &remove)) }
    }

    fn with_eligible(&self, brokers: Vec<(i32, i64)>) -> Self {
        let brokers = brokers.into_iter().map(|(id, epoch)| (BrokerId(id), epoch));
        Self { inner: Arc::new(self.inner.with_eligible(brokers)) }
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }
}
