//! Guarantees of the accumulator and the fetcher, without a broker.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{ConnectionConfig, ProducerConfig};
use crate::fetcher::chunk::Extent;
use crate::network::connection::{Connection, Pending};
use crate::network::pool::BufferPool;
use crate::network::request::Segment;
use crate::network::waker::Waker;
use crate::producer::accumulator::{Accumulator, Queue};
use crate::producer::new_record::{EqualValues, NewRecord};
use crate::producer::partition_queue::PartitionQueue;
use crate::producer::partitioner::Partitioner;
use crate::producer::since::Since;
use crate::producer::transaction::{Gate, Mark};
use crate::{ClientError, Written};
use pybroker_record::{
    BatchBuilder, BatchHeader, Compression, LeaderEpoch, Records, batch_crc, records_section, set_base_offset,
    set_partition_leader_epoch,
};
use pybroker_wire::init_producer_id::ProducerIdentity;

fn connection_config() -> ConnectionConfig {
    ConnectionConfig {
        bootstrap_servers: vec!["127.0.0.1:1".to_owned()],
        client_id: "test".to_owned(),
        request_timeout: Duration::from_secs(30),
        connection_setup_timeout: Duration::from_secs(10),
        connection_setup_timeout_max: Duration::from_secs(30),
        metadata_max_age: Duration::from_secs(300),
        rebootstraps: true,
        rebootstrap_trigger: Duration::from_secs(300),
        allow_auto_create_topics: true,
        reconnect_backoff: Duration::from_millis(50),
        reconnect_backoff_max: Duration::from_secs(1),
        retry_backoff: Duration::from_millis(100),
        retry_backoff_max: Duration::from_secs(1),
        send_buffer_bytes: None,
        receive_buffer_bytes: None,
        metrics_sample_window: Duration::from_secs(30),
        metrics_num_samples: 2,
        tls: None,
        credentials: None,
    }
}

fn accumulator(batch_size: usize, buffer_memory: usize) -> Accumulator {
    let config = ProducerConfig {
        connection: connection_config(),
        acks: -1,
        batch_size,
        linger: Duration::ZERO,
        buffer_memory,
        max_block: Duration::from_millis(20),
        delivery_timeout: Duration::from_secs(120),
        max_request_size: 1 << 20,
        max_in_flight: 5,
        retries: i32::MAX as u32,
        enable_idempotence: true,
        compression: Compression::None,
        compression_level: None,
        continues: None,
        transactional_id: None,
        partitioner: Partitioner::Sticky { ignores_keys: false },
    };
    Accumulator::new(config, Arc::new(Waker::new().unwrap()))
}

fn queue() -> Arc<Queue> {
    Arc::new(Queue::new("t".into(), 0))
}

fn record(value: &[u8]) -> NewRecord<'_> {
    NewRecord { timestamp_ms: 7, key: None, value: Some(value), headers: &[] }
}

#[test]
fn records_fill_batches_in_order() {
    let (accumulator, queue) = (accumulator(300, 10_000), queue());
    for number in 0..10u8 {
        accumulator.append(&queue, &record(&[number; 100])).unwrap();
    }
    let mut seen = Vec::new();
    while let Some(mut batch) = queue.pop() {
        batch.sequence = Some(seen.len() as i32);
        let bytes = batch.seal(ProducerIdentity { id: 5, epoch: 1 }, Vec::new).unwrap().bytes;
        let header = BatchHeader::parse(&bytes).unwrap();
        assert_eq!((5, 1, seen.len() as i32), (header.producer_id, header.producer_epoch, header.base_sequence));
        assert_eq!((batch.records as i32, header.crc), (header.record_count, batch_crc(&bytes)));
        let mut scratch = Vec::new();
        let section = records_section(&header, &bytes, &mut scratch, 1 << 20).unwrap();
        seen.extend(Records::new(section, header.record_count).map(|r| r.unwrap().value.unwrap()[0]));
    }
    assert_eq!((0..10).collect::<Vec<u8>>(), seen);
}

fn mark(number: u64) -> Mark {
    Mark { number, identity: ProducerIdentity { id: 5, epoch: number as i16 }, implicit: true }
}

#[test]
fn records_are_taken_between_the_begin_and_the_end_of_a_transaction() {
    let (accumulator, queue) = (accumulator(300, 10_000), queue());
    let shut = || Gate::Shut(ClientError::TransactionAborted);
    accumulator.incomplete.lock().set_gate(shut());
    let refused = accumulator.append(&queue, &record(b"a"));
    assert!(matches!(refused, Err(ClientError::TransactionAborted)));
    assert_eq!(10_000, accumulator.available());
    accumulator.incomplete.lock().set_gate(Gate::Open(mark(1)));
    accumulator.append(&queue, &record(b"b")).unwrap();
    accumulator.incomplete.lock().set_gate(shut());
    // A record that joins a batch of the transaction belongs to the transaction, and is flushed with it.
    accumulator.append(&queue, &record(b"c")).unwrap();
    assert!(matches!(accumulator.flush(Duration::ZERO), Err(ClientError::FlushTimeout { batches: 1, .. })));
    let mut batch = queue.pop().unwrap();
    batch.sequence = Some(0);
    let bytes = batch.seal(mark(1).identity, Vec::new).unwrap().bytes;
    let header = BatchHeader::parse(&bytes).unwrap();
    assert!(header.is_transactional() && !header.is_control());
    assert_eq!((header.crc, header.record_count, header.producer_epoch), (batch_crc(&bytes), 2, 1));
    assert!(accumulator.append(&queue, &record(b"d")).is_err());
}

#[test]
fn a_stop_leaves_later_transactions_and_what_a_broker_may_have_seen() {
    let (accumulator, waiting) = (accumulator(300, 10_000), queue());
    let mut queue = PartitionQueue::new(Arc::clone(&waiting), 0);
    queue.listed = true;
    let put = |number| {
        accumulator.incomplete.lock().set_gate(Gate::Open(mark(number)));
        accumulator.append(&waiting, &record(&[0; 200])).unwrap();
    };
    put(1);
    let sent = queue.take_next(|_| true).unwrap();
    queue.send_again(sent, ClientError::Interrupted, Instant::now());
    put(1);
    put(2);
    assert_eq!(1, queue.take_stopped(1, false).unwrap().mark.unwrap().number);
    assert!(queue.take_stopped(1, false).is_none());
    assert_eq!(1, queue.take_stopped(1, true).unwrap().mark.unwrap().number);
    assert_eq!(2, waiting.front().unwrap().mark.unwrap().number);
    queue.count_for(mark(1).identity);
    assert_eq!([0, 3], [3, 1].map(|records| queue.take_sequence(records)));
    queue.count_for(mark(1).identity);
    assert_eq!(4, queue.take_sequence(1));
    queue.count_for(mark(2).identity);
    assert_eq!(0, queue.take_sequence(1));
}

#[test]
fn many_values_are_cut_where_they_are_told_to_be() {
    let (accumulator, queue) = (accumulator(1000, 100_000), queue());
    let values: Vec<u8> = (0..=255).flat_map(|n| [n; 10]).collect();
    let mut records = EqualValues { timestamp_ms: 7, values: &values, size: 10 };
    let (added, ended) = accumulator.append_all(&queue, &mut records, Since::SENT);
    assert!(added == 256 && ended.is_ok());
    let (mut count, mut bytes) = (0, 0);
    while let Some(batch) = queue.pop() {
        count += batch.strides.iter().map(|s| s.records).sum::<u32>();
        bytes += batch.strides.iter().map(|s| s.bytes).sum::<u64>();
        assert_eq!(batch.records, batch.strides.iter().map(|s| s.records).sum::<u32>());
    }
    assert_eq!((256, 2560), (count, bytes));
}

#[test]
fn a_queue_is_listed_once_until_it_was_found_empty() {
    let (accumulator, queue) = (accumulator(300, 10_000), queue());
    accumulator.append(&queue, &record(b"a")).unwrap();
    accumulator.append(&queue, &record(b"b")).unwrap();
    assert_eq!(1, accumulator.take_listed().len());
    assert!(queue.front().is_some_and(|front| !front.full) && !accumulator.has_news());
    assert!(queue.pop().is_some() && queue.front().is_none());
    accumulator.append(&queue, &record(b"c")).unwrap();
    assert!(accumulator.has_news());
}

#[test]
fn memory_is_bounded_and_comes_back() {
    let (accumulator, queue) = (accumulator(1000, 2000), queue());
    for _ in 0..2 {
        accumulator.append(&queue, &record(&[0; 800])).unwrap();
    }
    let refused = accumulator.append(&queue, &record(&[0; 800]));
    assert!(matches!(refused, Err(ClientError::BufferFull { needed: 1000, limit: 2000, .. })));
    let batch = queue.pop().unwrap();
    accumulator.complete(batch, Ok(Written { base_offset: 3, log_append_time_ms: -1 }));
    accumulator.append(&queue, &record(&[0; 800])).unwrap();
    let too_large = accumulator.append(&queue, &record(&[0; 3000]));
    assert!(matches!(too_large, Err(ClientError::BufferFull { limit: 2000, .. })));
}

#[test]
fn nothing_is_added_after_the_last_look_at_a_queue() {
    for _ in 0..200 {
        let (accumulator, queue) = (accumulator(300, 1 << 20), queue());
        let (added, popped) = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let mut added = 0;
                while accumulator.try_append(&queue, &record(b"a")).is_ok_and(|ticket| ticket.is_some()) {
                    added += 1;
                }
                added
            });
            accumulator.close();
            let mut popped = 0;
            while let Some(batch) = queue.pop() {
                popped += batch.records;
            }
            (sending.join().unwrap(), popped)
        });
        assert_eq!((added, true), (popped, queue.pop().is_none()));
    }
}

#[test]
fn what_does_not_wait_is_refused_while_memory_is_full_and_hurries_the_sender() {
    let (accumulator, queue) = (accumulator(1000, 1000), queue());
    assert!(accumulator.try_append(&queue, &record(&[0; 800])).unwrap().is_some());
    assert!(accumulator.try_append(&queue, &record(&[0; 800])).unwrap().is_none());
    assert!(accumulator.is_hurried());
    let batch = queue.pop().unwrap();
    accumulator.complete(batch, Ok(Written { base_offset: 0, log_append_time_ms: -1 }));
    assert!(!accumulator.is_hurried());
    assert!(accumulator.try_append(&queue, &record(&[0; 800])).unwrap().is_some());
}

#[test]
fn flush_waits_for_what_was_there_and_no_longer() {
    let (accumulator, queue) = (accumulator(300, 10_000), queue());
    let ticket = accumulator.append(&queue, &record(b"a")).unwrap();
    let waited = accumulator.flush(Duration::from_millis(5));
    assert!(matches!(waited, Err(ClientError::FlushTimeout { batches: 1, .. })));
    std::thread::scope(|scope| {
        let flushed = scope.spawn(|| accumulator.flush(Duration::from_secs(10)));
        let batch = queue.pop().unwrap();
        accumulator.complete(batch, Ok(Written { base_offset: 9, log_append_time_ms: -1 }));
        assert!(flushed.join().unwrap().is_ok());
    });
    assert_eq!(9, ticket.delivery.outcome().unwrap().unwrap().base_offset);
    accumulator.close();
    assert!(matches!(accumulator.append(&queue, &record(b"b")), Err(ClientError::Closed { .. })));
}

#[test]
fn who_knows_the_fate_of_the_last_batch_has_nothing_to_flush() {
    let (accumulator, queue) = (accumulator(300, 10_000), queue());
    for _ in 0..2000 {
        let ticket = accumulator.append(&queue, &record(b"a")).unwrap();
        std::thread::scope(|scope| {
            let batch = queue.pop().unwrap();
            scope.spawn(|| accumulator.complete(batch, Ok(Written { base_offset: 0, log_append_time_ms: -1 })));
            assert!(ticket.delivery.wait(Duration::from_secs(60)).unwrap().is_some());
            accumulator.flush(Duration::ZERO).unwrap();
        });
    }
}

#[test]
fn a_sealed_batch_takes_another_identity_without_being_built_again() {
    let (accumulator, queue) = (accumulator(300, 10_000), queue());
    accumulator.append(&queue, &record(b"a")).unwrap();
    let mut batch = queue.pop().unwrap();
    let before = batch.seal(ProducerIdentity::NONE, Vec::new).unwrap().bytes;
    batch.sequence = Some(4);
    let after = batch.seal(ProducerIdentity { id: 8, epoch: 2 }, Vec::new).unwrap().bytes;
    let header = BatchHeader::parse(&after).unwrap();
    assert_eq!(
        (8, 2, 4, batch_crc(&after)),
        (header.producer_id, header.producer_epoch, header.base_sequence, header.crc)
    );
    assert_eq!(before[61..], after[61..]);
}

#[test]
fn a_batch_that_is_cut_short_does_not_count() {
    let mut builder = BatchBuilder::new(Compression::None, None, 1000);
    let mut bytes = Vec::new();
    for base_offset in [10, 12] {
        builder.try_append(1, None, Some(b"a"), &[]);
        builder.try_append(1, None, Some(b"b"), &[]);
        let begin = bytes.len();
        builder.finish(-1, -1, -1, &mut bytes).unwrap();
        set_base_offset(&mut bytes[begin..], base_offset);
        set_partition_leader_epoch(&mut bytes[begin..], base_offset as i32 / 2);
    }
    let half = bytes.len() / 2;
    assert_eq!(Ok(Extent { len: bytes.len(), next_offset: 14, leader_epoch: LeaderEpoch(6) }), Extent::measure(&bytes));
    for end in half..bytes.len() {
        assert_eq!(
            Ok(Extent { len: half, next_offset: 12, leader_epoch: LeaderEpoch(5) }),
            Extent::measure(&bytes[..end])
        );
    }
    assert!(Extent::measure(&bytes[..half - 1]).unwrap_err().contains("max.partition.fetch.bytes"));
    assert_eq!(Ok(Extent { len: 0, next_offset: 0, leader_epoch: LeaderEpoch(-1) }), Extent::measure(&[]));
}

fn connected() -> (Connection<u32>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pool = Arc::new(BufferPool::new(2));
    let address = listener.local_addr().unwrap();
    let mut connection = Connection::open(address, &connection_config(), None, pool).unwrap();
    let (peer, _) = listener.accept().unwrap();
    connection.finish_connecting().unwrap();
    (connection, peer)
}

fn pending(token: u32, expects_response: bool) -> Pending<u32> {
    Pending::new(token, 0, token as i32, Instant::now() + Duration::from_secs(60), expects_response)
}

fn response(correlation_id: i32, body: &[u8]) -> Vec<u8> {
    let size = (body.len() + 4) as i32;
    [&size.to_be_bytes(), &correlation_id.to_be_bytes(), body].concat()
}

/// Read until `count` responses have arrived; waits only for the socket.
fn receive(connection: &mut Connection<u32>, count: usize) -> Vec<(u32, Vec<u8>)> {
    let (deadline, mut received) = (Instant::now() + Duration::from_secs(10), Vec::new());
    while received.len() < count && Instant::now() < deadline {
        connection.receive(&mut received).unwrap();
        std::thread::yield_now();
    }
    received.iter().map(|(pending, frame)| (pending.token, frame.bytes()[4..].to_vec())).collect()
}

#[test]
fn responses_of_every_size_come_out_whole_and_in_order() {
    let (mut connection, mut peer) = connected();
    let sizes = [0, 1, 5, 16_372, 16_373, 16_380, 16_384, 100_000, 3];
    let mut bytes = Vec::new();
    for (token, size) in sizes.into_iter().enumerate() {
        connection.enqueue(vec![Segment::Fields(vec![0; 10])], pending(token as u32, true));
        bytes.extend(response(token as i32, &vec![token as u8; size]));
    }
    connection.flush().unwrap();
    let writer = std::thread::spawn(move || {
        let mut sent = vec![0; 10 * 9];
        peer.read_exact(&mut sent).unwrap();
        bytes.chunks(7001).for_each(|piece| peer.write_all(piece).unwrap());
        peer
    });
    let expected: Vec<_> = sizes.into_iter().enumerate().map(|(t, size)| (t as u32, vec![t as u8; size])).collect();
    assert_eq!(expected, receive(&mut connection, sizes.len()));
    drop(writer.join().unwrap());
    assert_eq!(0, connection.in_flight());
    let mut none = Vec::new();
    while connection.receive(&mut none).is_ok() {
        std::thread::yield_now();
    }
    assert!(none.is_empty(), "the end of the stream is an error, not a response");
}

#[test]
fn what_nobody_asked_for_ends_the_connection() {
    for bytes in [response(9, b"x"), vec![0x7f, 0xff, 0xff, 0xff], vec![0, 0, 0, 3, 1, 1, 1], vec![0xff; 8]] {
        let (mut connection, mut peer) = connected();
        connection.enqueue(vec![Segment::Fields(vec![0; 4])], pending(1, true));
        peer.write_all(&bytes).unwrap();
        let (deadline, mut received) = (Instant::now() + Duration::from_secs(10), Vec::new());
        let mut failed = false;
        while !failed && Instant::now() < deadline {
            failed = connection.receive(&mut received).is_err();
        }
        assert!(failed && received.is_empty(), "{bytes:?}");
    }
}

#[test]
fn a_request_without_response_is_done_when_it_is_written() {
    let (mut connection, peer) = connected();
    connection.enqueue(vec![Segment::Fields(vec![1; 100])], pending(1, false));
    assert!(connection.pop_unanswered().is_none() && connection.wants_write());
    connection.flush().unwrap();
    assert_eq!(Some(1), connection.pop_unanswered().map(|p| p.token));
    drop(peer);
}
