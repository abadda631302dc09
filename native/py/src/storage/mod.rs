//! Logs and replicas of partitions: opening, cleaning, moving, verifying and closing them.

pub(crate) mod checksum;
pub(crate) mod cleaner;
pub(crate) mod files;
pub(crate) mod log_config;
pub(crate) mod log_opening;
pub(crate) mod log_walk;
pub(crate) mod moves;
pub(crate) mod partition;
pub(crate) mod partition_metadata;
pub(crate) mod recovery_progress;
pub(crate) mod retention;
pub(crate) mod role;
pub(crate) mod verify;
