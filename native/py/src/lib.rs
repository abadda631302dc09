//! The extension module `pybroker._native`: registers what the other files convert.

#![allow(missing_docs, reason = "what Python sees is documented in pybroker/_native.pyi")]

mod checksum;
mod cleaner;
mod client_error;
mod codec;
mod columns;
mod columns_import;
mod connection;
mod connection_limits;
mod control_batch;
mod control_request;
mod counters;
mod counting;
mod data_plane;
mod data_plane_settings;
mod decompression;
mod delivery;
mod draft;
mod error;
mod events;
mod fetcher;
mod files;
mod forking;
mod interrupt;
mod kerberos;
mod key_material;
mod line_sender;
mod listener_tls;
mod listening;
#[cfg(feature = "load")]
mod load_generator;
mod log;
mod log_config;
mod log_lines;
mod log_opening;
mod log_walk;
mod measured_producer;
#[cfg(feature = "load")]
mod micro;
mod moves;
mod network_threads;
mod partition;
mod partition_log;
mod partition_metadata;
mod positions;
mod producer;
mod producer_settings;
mod producer_transactions;
mod quorum;
mod quorum_ready;
mod quotas;
mod received;
mod record;
mod record_format;
mod record_reading;
mod record_table;
mod recovery_progress;
mod replication;
mod retention;
mod role;
mod rows_delivery;
mod secure;
mod sending;
mod settlements;
#[cfg(feature = "simulation")]
mod simulated_answers;
#[cfg(feature = "simulation")]
mod simulated_disk;
#[cfg(feature = "simulation")]
mod simulation;
#[cfg(feature = "load")]
mod stamp;
mod topic_table;
mod transactions;
mod verify;
mod work_counters;

use pyo3::prelude::*;

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    log_lines::install();
    pybroker_client::interrupt_waits_when(interrupt::interrupted);
    decompression::add(m)?;
    m.add_class::<cleaner::PyCleanedLog>()?;
    m.add_class::<cleaner::PyLogCleaner>()?;
    m.add_function(wrap_pyfunction!(cleaner::earliest_dirty_timestamp, m)?)?;
    m.add_function(wrap_pyfunction!(cleaner::roll_when_older, m)?)?;
    m.add_function(wrap_pyfunction!(cleaner::survey_segments, m)?)?;
    m.add_class::<codec::Schema>()?;
    m.add_class::<columns::ColumnReader>()?;
    m.add_class::<columns::RecordColumns>()?;
    counters::add(m)?;
    m.add_class::<data_plane::PyDataPlane>()?;
    data_plane_settings::add(m)?;
    events::add(m)?;
    m.add_class::<control_request::PyControlRequest>()?;
    m.add_class::<files::PyFileSystem>()?;
    listener_tls::add(m)?;
    m.add_function(wrap_pyfunction!(files::close_idle_files, m)?)?;
    m.add_function(wrap_pyfunction!(forking::keep_forever, m)?)?;
    m.add_function(wrap_pyfunction!(files::close_logs, m)?)?;
    m.add_class::<received::Received>()?;
    m.add_class::<record::Record>()?;
    m.add_class::<log::Log>()?;
    m.add_class::<log_config::PyLogConfig>()?;
    m.add_class::<log_opening::PyLogOpening>()?;
    m.add_function(wrap_pyfunction!(log_opening::open_logs, m)?)?;
    m.add_class::<log_walk::FileBatch>()?;
    m.add_class::<log_walk::LogWalk>()?;
    m.add_class::<moves::PyLogMove>()?;
    m.add_class::<moves::PyLogMover>()?;
    m.add_function(wrap_pyfunction!(moves::move_count, m)?)?;
    m.add_function(wrap_pyfunction!(partition_metadata::read_topic_ids, m)?)?;
    m.add_function(wrap_pyfunction!(moves::prepare_move, m)?)?;
    m.add_class::<partition::PyPartition>()?;
    m.add_class::<partition_log::PartitionLog>()?;
    m.add_class::<delivery::Delivery>()?;
    m.add_class::<rows_delivery::RowsDelivery>()?;
    m.add_class::<measured_producer::MeasuredProducer>()?;
    add_clients(m)?;
    m.add_class::<quorum::Quorum>()?;
    m.add_class::<quorum_ready::QuorumReady>()?;
    m.add_function(wrap_pyfunction!(quorum_ready::build_record_batch, m)?)?;
    m.add_function(wrap_pyfunction!(quorum_ready::parse_metadata_batches, m)?)?;
    m.add_function(wrap_pyfunction!(quorum_ready::changes_voters, m)?)?;
    m.add_function(wrap_pyfunction!(control_batch::build_control_batch, m)?)?;
    m.add_function(wrap_pyfunction!(control_batch::parse_control_batch, m)?)?;
    network_threads::add(m)?;
    quotas::add(m)?;
    m.add_class::<record_table::RecordTable>()?;
    m.add_class::<recovery_progress::PyRecoveryProgress>()?;
    m.add_class::<replication::PyReplicaCaughtUp>()?;
    m.add_class::<replication::PyReplicaDeletedRecords>()?;
    m.add_class::<replication::PyReplicationSettings>()?;
    m.add_function(wrap_pyfunction!(replication::lagging_replicas, m)?)?;
    m.add_function(wrap_pyfunction!(replication::stop_joining, m)?)?;
    m.add_class::<retention::PyRemovedSegments>()?;
    m.add_function(wrap_pyfunction!(retention::advance_log_start, m)?)?;
    m.add_function(wrap_pyfunction!(retention::delete_old_segments, m)?)?;
    m.add_class::<role::PyRole>()?;
    m.add_function(wrap_pyfunction!(role::become_roles, m)?)?;
    m.add_class::<topic_table::PyPartitionEntry>()?;
    m.add_class::<topic_table::PyTopicEntry>()?;
    m.add_class::<topic_table::PyTopicTable>()?;
    transactions::add(m)?;
    work_counters::add(m)?;
    m.add_class::<verify::PyVerifiedLog>()?;
    m.add_function(wrap_pyfunction!(verify::set_aside_files, m)?)?;
    m.add_function(wrap_pyfunction!(verify::verify_log, m)?)?;
    #[cfg(feature = "load")]
    add_load(m)?;
    #[cfg(feature = "simulation")]
    add_simulation(m)?;
    Ok(())
}

/// What only tools that measure call.
#[cfg(feature = "load")]
fn add_load(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<load_generator::LoadGenerator>()?;
    m.add_class::<stamp::KeyedStamps>()?;
    m.add_class::<stamp::LatencyHistogram>()?;
    m.add_class::<stamp::Tally>()?;
    micro::add(m)?;
    Ok(())
}

/// What only the simulation of clusters calls.
#[cfg(feature = "simulation")]
fn add_simulation(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<simulated_disk::PySimulatedDisk>()?;
    m.add_class::<simulation::PySimulatedDataPlane>()?;
    Ok(())
}

/// Producers and fetchers, TLS and SASL of clients.
fn add_clients(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<fetcher::Fetcher>()?;
    m.add_class::<line_sender::LineSender>()?;
    m.add_class::<record_format::FormattedRecords>()?;
    m.add_class::<record_format::RecordFormat>()?;
    m.add_class::<producer::Outgoing>()?;
    m.add_class::<producer::Producer>()?;
    m.add_class::<producer_transactions::Transactions>()?;
    m.add_class::<settlements::Settlements>()?;
    m.add_class::<secure::PyClientTls>()?;
    m.add_class::<secure::PySaslCredentials>()?;
    m.add_class::<secure::PySaslExchange>()?;
    m.add_class::<secure::PyTlsSession>()?;
    Ok(())
}
