//! The files of a log directory and of a partition directory without records: names, checkpoints, leader epochs,
//! `partition.metadata`.

pub mod checkpoint;
pub mod leader_epochs;
pub mod log_dir;
pub mod partition_metadata;
