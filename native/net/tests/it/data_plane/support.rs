//! A data plane on loopback, and the few bytes of Kafka's protocol that the tests speak.

use std::collections::{HashMap, VecDeque};
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pybroker_net::{Authorization, DataPlane, Event, Identity, ListenerSettings, Settings};
use pybroker_record::{
    BatchBuilder, BatchHeader, Batches, Compression, MessageSetBuilder, NewMessage, Records, TimestampType,
    records_section,
};
use pybroker_replica::{
    BrokerId, FlushCounts, LeaderEpoch, Leadership, Partition, PartitionSlot, Topic, TopicTable, Waiter,
};
use pybroker_storage::{Log, LogConfig, OpenLog};
use pybroker_wire::primitives::{Reader, Writer};

const PATIENCE: Duration = Duration::from_secs(20);

pub struct Plane {
    plane: DataPlane,
    port: u16,
    seen: Mutex<VecDeque<Event>>,
    directory: tempfile::TempDir,
}

fn settings() -> Settings {
    Settings {
        node_id: 1,
        network_threads: 2,
        thread_slice: Duration::ZERO,
        socket_request_max_bytes: 100 << 20,
        socket_send_buffer_bytes: -1,
        socket_receive_buffer_bytes: -1,
        queued_max_requests: 500,
        requests_in_work_per_connection: 1000,
        queued_request_bytes: -1,
        queued_response_bytes_per_connection: 64 << 20,
        queued_response_bytes: 256 << 20,
        connections_max_idle_ms: 600_000,
        max_connections: 1000,
        max_connections_reason: "a test".to_owned(),
        fetch_max_bytes: 55 << 20,
        fetch_session_slots: 1000,
        fetch_session_eviction_ms: 120_000,
    }
}

fn log_config() -> LogConfig {
    LogConfig {
        segment_bytes: 1 << 30,
        segment_ms: 7 * 86_400_000,
        segment_jitter_ms: 0,
        segment_index_bytes: 1 << 20,
        index_interval_bytes: 4096,
        max_message_bytes: 1_048_588,
        compression: None,
        compression_level: None,
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: i64::MAX,
        require_keys: false,
        preallocate: false,
        delete_retention_ms: 86_400_000,
        flush_messages: i64::MAX,
        flush_ms: i64::MAX,
        flush_group: false,
        producer_id_expiration_ms: 86_400_000,
        max_decompressed_bytes: 100 << 20,
        file_delete_delay_ms: 0,
    }
}

fn listener(port: u16) -> ListenerSettings {
    ListenerSettings {
        name: "PLAINTEXT".into(),
        host: "127.0.0.1".into(),
        port,
        backlog: 50,
        congestion_control: None,
        control_only: false,
        identity: Some(Arc::new(Identity { kind: "User".into(), name: "ANONYMOUS".into() })),
        unauthenticated_max_bytes: 512,
        authentication_timeout_ms: 30_000,
        tls: None,
    }
}

impl Plane {
    pub fn start() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        let plane = DataPlane::start(settings).unwrap();
        let port = plane.listen(&listener(0)).unwrap();
        Self { plane, port, seen: Mutex::default(), directory: tempfile::tempdir().unwrap() }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn data_plane(&self) -> &DataPlane {
        &self.plane
    }

    /// Binds one more listener, whose requests all go to the control plane; its port.
    pub fn listen_control_only(&self) -> u16 {
        let name = "CONTROL".into();
        self.plane.listen(&ListenerSettings { name, control_only: true, ..listener(0) }).unwrap()
    }

    /// Binds one more listener, whose connections have to authenticate; its port.
    pub fn listen_authenticated(&self) -> u16 {
        self.plane.listen(&ListenerSettings { identity: None, ..listener(0) }).unwrap()
    }

    /// As [`Plane::listen_authenticated`], where a connection has so long to authenticate.
    pub fn listen_authenticated_within(&self, authentication_timeout_ms: u64) -> u16 {
        self.plane.listen(&ListenerSettings { identity: None, authentication_timeout_ms, ..listener(0) }).unwrap()
    }

    /// Binds the port of the start again.
    pub fn listen_again(&self) {
        assert_eq!(self.plane.listen(&listener(self.port)).unwrap(), self.port);
    }

    pub fn topic(&self, name: &str, id: u8) {
        self.topic_with(name, id, |_| {});
    }

    pub fn topic_with(&self, name: &str, id: u8, change: impl FnOnce(&mut LogConfig)) {
        let mut config = log_config();
        change(&mut config);
        let directory = self.directory.path().to_path_buf();
        let how =
            OpenLog { clean_shutdown: false, recovery_point: 0, log_start_offset: 0, high_watermark: 0, now_ms: 0 };
        let (log, _) = Log::open(&directory.join(format!("{name}-0")), config, how).unwrap();
        let partition = Partition::new(name.into(), 0, [id; 16], directory, log, 0);
        partition.become_leader(Leadership::alone(0), 0, &mut |_| ()).unwrap();
        let slot = PartitionSlot {
            partition: Some(Arc::new(partition)),
            offline: false,
            leader: BrokerId(1),
            leader_epoch: LeaderEpoch(0),
        };
        let topic = Topic {
            name: name.into(),
            id: [id; 16],
            internal: false,
            partitions: vec![Some(slot)],
            counters: Arc::default(),
        };
        self.publish(Arc::new(self.plane.table().replace([topic], &[])));
    }

    pub fn partition(&self, name: &str, index: i32) -> Arc<Partition> {
        let table = self.plane.table();
        Arc::clone(table.by_name(name).unwrap().slot(index).unwrap().partition.as_ref().unwrap())
    }

    pub fn table(&self) -> Arc<TopicTable> {
        self.plane.table()
    }

    pub fn publish(&self, table: Arc<TopicTable>) {
        self.plane.publish(table);
    }

    pub fn connect(&self) -> TcpStream {
        let socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        socket
    }

    pub fn wait_until(&self, condition: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !condition() {
            assert!(Instant::now() < until, "the condition did not come true in {PATIENCE:?}");
            std::thread::yield_now();
        }
    }

    pub fn event(&self, wanted: impl Fn(&Event) -> bool) -> Event {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut seen = self.seen.lock();
            seen.extend(self.plane.events().drain(100));
            if let Some(at) = seen.iter().position(&wanted) {
                return seen.remove(at).unwrap();
            }
            assert!(Instant::now() < until, "no such event in {PATIENCE:?}: {seen:?}");
            std::thread::yield_now();
        }
    }

    /// Every event that is there now, those that `event` passed over included.
    pub fn events(&self) -> Vec<Event> {
        let mut seen = self.seen.lock();
        seen.extend(self.plane.events().drain(100));
        seen.drain(..).collect()
    }

    /// Whether there was such an event that [`Self::event`] has not given yet.
    pub fn has_seen(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        let mut seen = self.seen.lock();
        seen.extend(self.plane.events().drain(100));
        seen.iter().any(wanted)
    }

    pub fn connections(&self) -> usize {
        self.plane.connections()
    }

    pub fn respond(&self, connection: u64, request: u64, payload: &[u8]) {
        self.plane.respond(Waiter { connection, request }, payload.to_vec());
    }

    pub fn publish_api_versions(&self, responses: HashMap<i16, Vec<u8>>) {
        self.plane.publish_api_versions(responses);
    }

    pub fn retry(&self, connection: u64, request: u64) {
        self.plane.retry(Waiter { connection, request }, Authorization::default());
    }

    pub fn flush_counts(&self) -> FlushCounts {
        self.plane.flush_counts()
    }

    pub fn wake(&self, waiter: Waiter) {
        self.plane.wake(waiter);
    }

    pub fn shut_down(&self) {
        self.plane.shut_down(5000);
    }
}

pub fn batch(values: &[&str]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Compression::None, None, 16 << 20);
    for value in values {
        assert!(builder.try_append(1, None, Some(value.as_bytes()), &[]).is_some());
    }
    let mut bytes = Vec::new();
    builder.finish(-1, -1, -1, &mut bytes).unwrap();
    bytes
}

pub fn message_set(magic: i8, values: &[&str]) -> Vec<u8> {
    let mut builder = MessageSetBuilder::new(magic, Compression::None, TimestampType::CreateTime);
    for (offset, value) in (0..).zip(values) {
        builder.append(&NewMessage { offset, timestamp: 1, key: None, value: Some(value.as_bytes()) });
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes).unwrap();
    bytes
}

pub fn values(records: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    for batch in Batches::new(records) {
        let (header, bytes): (BatchHeader, &[u8]) = batch.unwrap();
        let mut scratch = Vec::new();
        let section = records_section(&header, bytes, &mut scratch, 1 << 24).unwrap();
        for record in Records::new(section, header.record_count) {
            all.push(String::from_utf8(record.unwrap().value.unwrap().to_vec()).unwrap());
        }
    }
    all
}

pub fn frame(api_key: i16, version: i16, correlation: i32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    let mut writer = Writer::new(&mut bytes, false);
    writer.i16(api_key);
    writer.i16(version);
    writer.i32(correlation);
    writer.string("test");
    writer.raw(body);
    let size = (bytes.len() - 4) as i32;
    bytes[..4].copy_from_slice(&size.to_be_bytes());
    bytes
}

pub fn produce_request(correlation: i32, topic: &str, partition: i32, acks: i16, records: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body, false);
    writer.nullable_string(None);
    writer.i16(acks);
    writer.i32(30_000);
    writer.array_len(1);
    writer.string(topic);
    writer.array_len(1);
    writer.i32(partition);
    writer.bytes(records);
    frame(0, 7, correlation, &body)
}

pub fn fetch_request(correlation: i32, topic: &str, partition: i32, offset: i64, min: i32, wait_ms: i32) -> Vec<u8> {
    fetch_isolated(correlation, (topic, partition), offset, min, wait_ms, 0)
}

/// A Fetch of isolation level 0 (`read_uncommitted`) or 1 (`read_committed`).
pub fn fetch_isolated(
    correlation: i32,
    (topic, partition): (&str, i32),
    offset: i64,
    min: i32,
    wait_ms: i32,
    isolation: i8,
) -> Vec<u8> {
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body, false);
    writer.i32(-1);
    writer.i32(wait_ms);
    writer.i32(min);
    writer.i32(50 << 20);
    writer.i8(isolation);
    writer.array_len(1);
    writer.string(topic);
    writer.array_len(1);
    writer.i32(partition);
    writer.i64(offset);
    writer.i32(1 << 20);
    frame(1, 4, correlation, &body)
}

/// Produce of version 0 to 2.
pub fn old_produce_request(version: i16, correlation: i32, topic: &str, records: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body, false);
    writer.i16(-1);
    writer.i32(30_000);
    writer.array_len(1);
    writer.string(topic);
    writer.array_len(1);
    writer.i32(0);
    writer.bytes(records);
    frame(0, version, correlation, &body)
}

/// Fetch of version 0 to 3 that waits for a byte.
pub fn old_fetch_request(version: i16, correlation: i32, topic: &str, offset: i64) -> Vec<u8> {
    let mut body = Vec::new();
    let mut writer = Writer::new(&mut body, false);
    for number in [-1, 60_000, 1] {
        writer.i32(number);
    }
    if version == 3 {
        writer.i32(50 << 20);
    }
    writer.array_len(1);
    writer.string(topic);
    writer.array_len(1);
    writer.i32(0);
    writer.i64(offset);
    writer.i32(1 << 20);
    frame(1, version, correlation, &body)
}

pub fn read_frame(socket: &mut TcpStream) -> Vec<u8> {
    socket.flush().unwrap();
    let mut size = [0; 4];
    socket.read_exact(&mut size).unwrap();
    let mut frame = vec![0; u32::from_be_bytes(size) as usize];
    socket.read_exact(&mut frame).unwrap();
    frame
}

pub struct Produced {
    pub error: i16,
    pub base_offset: i64,
}

impl Produced {
    pub fn read(socket: &mut TcpStream, correlation: i32) -> Self {
        let frame = read_frame(socket);
        let mut reader = Reader::new(&frame, 0, false);
        assert_eq!(reader.i32(), Ok(correlation));
        assert_eq!(reader.array_len(), Ok(1));
        reader.string().unwrap();
        assert_eq!(reader.array_len(), Ok(1));
        reader.i32().unwrap();
        Self { error: reader.i16().unwrap(), base_offset: reader.i64().unwrap() }
    }
}

pub struct Fetched {
    pub error: i16,
    pub high_watermark: i64,
    /// Producer and first offset.
    pub aborted: Vec<(i64, i64)>,
    pub records: Vec<u8>,
}

impl Fetched {
    pub fn read(socket: &mut TcpStream, correlation: i32) -> Self {
        Self::read_version(socket, correlation, 4)
    }

    pub fn read_version(socket: &mut TcpStream, correlation: i32, version: i16) -> Self {
        let frame = read_frame(socket);
        let mut reader = Reader::new(&frame, 0, false);
        assert_eq!(reader.i32(), Ok(correlation));
        if version >= 1 {
            reader.i32().unwrap();
        }
        assert_eq!(reader.array_len(), Ok(1));
        reader.string().unwrap();
        assert_eq!(reader.array_len(), Ok(1));
        reader.i32().unwrap();
        let error = reader.i16().unwrap();
        let high_watermark = reader.i64().unwrap();
        let mut aborted = Vec::new();
        if version >= 4 {
            reader.i64().unwrap();
            // Aborted transactions, sent to a client that asked for committed records.
            for _ in 0..reader.nullable_array_len().unwrap().unwrap_or(0) {
                aborted.push((reader.i64().unwrap(), reader.i64().unwrap()));
            }
        }
        let records = reader.nullable_bytes().unwrap().unwrap_or_default().to_vec();
        Self { error, high_watermark, aborted, records }
    }
}
