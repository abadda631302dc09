//! The extension module `pybroker._native`: registers the classes and functions of the other files.

#![allow(missing_docs, reason = "what Python sees is documented in pybroker/_native.pyi")]

mod client;
mod codec;
mod coordinator;
mod decompression;
mod error;
mod forking;
mod log_lines;
#[cfg(feature = "load")]
mod micro;
mod net;
mod quorum;
#[cfg(feature = "simulation")]
mod simulation;
mod storage;

use pyo3::prelude::*;

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    log_lines::install();
    pybroker_client::interrupt_waits_when(client::interrupt::interrupted);
    decompression::add(m)?;
    m.add_class::<storage::cleaner::PyCleanedLog>()?;
    m.add_class::<storage::cleaner::PyLogCleaner>()?;
    m.add_function(wrap_pyfunction!(storage::cleaner::earliest_dirty_timestamp, m)?)?;
    m.add_function(wrap_pyfunction!(storage::cleaner::roll_when_older, m)?)?;
    m.add_function(wrap_pyfunction!(storage::cleaner::survey_segments, m)?)?;
    m.add_class::<codec::Schema>()?;
    m.add_class::<client::columns::ColumnReader>()?;
    m.add_class::<client::columns::RecordColumns>()?;
    m.add_class::<client::json_columns::ArrowArray>()?;
    m.add_function(wrap_pyfunction!(client::json_columns::decode_json_columns, m)?)?;
    m.add_function(wrap_pyfunction!(client::json_columns::encode_json_columns, m)?)?;
    net::counters::add(m)?;
    m.add_class::<net::handle::PyDataPlane>()?;
    net::data_plane_settings::add(m)?;
    net::events::add(m)?;
    m.add_class::<net::control_request::PyControlRequest>()?;
    m.add_class::<storage::files::PyFileSystem>()?;
    net::listener_tls::add(m)?;
    m.add_function(wrap_pyfunction!(storage::files::close_idle_files, m)?)?;
    m.add_function(wrap_pyfunction!(forking::keep_forever, m)?)?;
    m.add_function(wrap_pyfunction!(storage::files::close_logs, m)?)?;
    m.add_class::<client::received::Received>()?;
    m.add_class::<client::record::Record>()?;
    m.add_class::<quorum::log::Log>()?;
    m.add_class::<storage::log_config::PyLogConfig>()?;
    m.add_class::<storage::log_opening::PyLogOpening>()?;
    m.add_function(wrap_pyfunction!(storage::log_opening::open_logs, m)?)?;
    m.add_class::<storage::log_walk::FileBatch>()?;
    m.add_class::<storage::log_walk::LogWalk>()?;
    m.add_class::<storage::moves::PyLogMove>()?;
    m.add_class::<storage::moves::PyLogMover>()?;
    m.add_function(wrap_pyfunction!(storage::moves::move_count, m)?)?;
    m.add_function(wrap_pyfunction!(storage::partition_metadata::read_topic_ids, m)?)?;
    m.add_function(wrap_pyfunction!(storage::moves::prepare_move, m)?)?;
    m.add_class::<storage::partition::PyPartition>()?;
    m.add_class::<coordinator::partition_log::PartitionLog>()?;
    m.add_class::<client::delivery::Delivery>()?;
    m.add_class::<client::rows_delivery::RowsDelivery>()?;
    m.add_class::<client::measured_producer::MeasuredProducer>()?;
    add_clients(m)?;
    m.add_class::<quorum::Quorum>()?;
    m.add_class::<quorum::quorum_ready::QuorumReady>()?;
    m.add_function(wrap_pyfunction!(quorum::quorum_ready::build_record_batch, m)?)?;
    m.add_function(wrap_pyfunction!(quorum::quorum_ready::parse_metadata_batches, m)?)?;
    m.add_function(wrap_pyfunction!(quorum::quorum_ready::changes_voters, m)?)?;
    m.add_function(wrap_pyfunction!(quorum::control_batch::build_control_batch, m)?)?;
    m.add_function(wrap_pyfunction!(quorum::control_batch::parse_control_batch, m)?)?;
    net::network_threads::add(m)?;
    net::quotas::add(m)?;
    m.add_class::<coordinator::record_table::RecordTable>()?;
    m.add_class::<storage::recovery_progress::PyRecoveryProgress>()?;
    m.add_class::<net::replication::PyReplicaCaughtUp>()?;
    m.add_class::<net::replication::PyReplicaDeletedRecords>()?;
    m.add_class::<net::replication::PyReplicationSettings>()?;
    m.add_function(wrap_pyfunction!(net::replication::lagging_replicas, m)?)?;
    m.add_function(wrap_pyfunction!(net::replication::stop_joining, m)?)?;
    m.add_class::<storage::retention::PyRemovedSegments>()?;
    m.add_function(wrap_pyfunction!(storage::retention::advance_log_start, m)?)?;
    m.add_function(wrap_pyfunction!(storage::retention::delete_old_segments, m)?)?;
    m.add_class::<storage::role::PyRole>()?;
    m.add_function(wrap_pyfunction!(storage::role::become_roles, m)?)?;
    m.add_class::<net::topic_table::PyPartitionEntry>()?;
    m.add_class::<net::topic_table::PyTopicEntry>()?;
    m.add_class::<net::topic_table::PyTopicTable>()?;
    net::transactions::add(m)?;
    net::work_counters::add(m)?;
    m.add_class::<storage::verify::PyVerifiedLog>()?;
    m.add_function(wrap_pyfunction!(storage::verify::set_aside_files, m)?)?;
    m.add_function(wrap_pyfunction!(storage::verify::verify_log, m)?)?;
    #[cfg(feature = "load")]
    add_load(m)?;
    #[cfg(feature = "simulation")]
    add_simulation(m)?;
    Ok(())
}

/// Registers the parts for measuring tools.
#[cfg(feature = "load")]
fn add_load(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<client::load_generator::LoadGenerator>()?;
    m.add_class::<client::stamp::KeyedStamps>()?;
    m.add_class::<client::stamp::LatencyHistogram>()?;
    m.add_class::<client::stamp::Tally>()?;
    micro::add(m)?;
    Ok(())
}

/// Registers the parts for the simulation of clusters.
#[cfg(feature = "simulation")]
fn add_simulation(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<simulation::simulated_disk::PySimulatedDisk>()?;
    m.add_class::<simulation::PySimulatedDataPlane>()?;
    Ok(())
}

/// Registers producers and fetchers, TLS and SASL of clients.
fn add_clients(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<client::fetcher::Fetcher>()?;
    m.add_class::<client::line_sender::LineSender>()?;
    m.add_class::<client::record_format::FormattedRecords>()?;
    m.add_class::<client::record_format::RecordFormat>()?;
    m.add_class::<client::producer::Outgoing>()?;
    m.add_class::<client::native_producer::Producer>()?;
    m.add_class::<client::producer_transactions::Transactions>()?;
    m.add_class::<client::settlements::Settlements>()?;
    m.add_class::<client::secure::PyClientTls>()?;
    m.add_class::<client::secure::PySaslCredentials>()?;
    m.add_class::<client::secure::PySaslExchange>()?;
    m.add_class::<client::secure::PyTlsSession>()?;
    Ok(())
}
