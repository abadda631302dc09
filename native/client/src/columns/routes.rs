//! The partitions of the rows of a batch, chosen and checked before the first row is sent.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::parts::Parts;
use super::sent::{Row, SentColumns};
use crate::clock::now_ms;
use crate::error::ClientError;
use crate::producer::Producer;
use crate::producer::accumulator::Queue;
use crate::producer::delivery::Delivery;
use crate::producer::destination::Destination;
use crate::producer::new_record::{NewRecord, NewRecords, RECORD_OVERHEAD};
use crate::producer::since::Since;
use pybroker_record::RecordHeader;

/// A topic of some rows.
#[derive(Debug)]
struct Target {
    destination: Arc<Destination>,
    queues: Arc<Vec<Arc<Queue>>>,
    /// By partition, the rows in order.
    rows: Vec<Vec<usize>>,
}

impl Target {
    /// The partition of a row: its own, or the partitioner's choice.
    #[inline(always)]
    fn partition(&self, row: &Row<'_>, batch_size: usize) -> Result<usize, String> {
        let partitions = self.queues.len();
        let Some(requested) = row.partition else {
            let chosen = self.destination.choose(row.key, partitions);
            self.destination.count(&row.record(0, &[]), batch_size);
            return Ok(chosen);
        };
        if requested < 0 {
            return Err(format!("partition {requested}: must be at least 0, or null to be chosen"));
        }
        let beyond =
            || self.destination.unknown_partition(requested.try_into().unwrap_or(i32::MAX), partitions).to_string();
        usize::try_from(requested).ok().filter(|index| *index < partitions).ok_or_else(beyond)
    }
}

/// Rows with only a value. They fill one partition after the other, so each run of them is one append.
#[derive(Debug)]
struct Runs<'a> {
    values: &'a Parts,
    queues: Arc<Vec<Arc<Queue>>>,
    /// Partition and rows.
    runs: Vec<(usize, Range<usize>)>,
}

/// The partitions of the rows of one batch.
#[derive(Debug)]
enum Routes<'a> {
    Sorted(&'a SentColumns, Vec<Target>),
    Runs(Runs<'a>),
}

/// One run of values, as records.
struct Values<'a> {
    values: &'a Parts,
    rows: Range<usize>,
    now_ms: i64,
}

impl NewRecords for Values<'_> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    fn with<R>(&mut self, number: usize, look: impl FnOnce(&NewRecord<'_>) -> R) -> R {
        // Every row was read when its partition was chosen, and the columns do not change.
        let value = self.values.get(self.rows.start + number).expect("a row that was read before");
        look(&NewRecord { timestamp_ms: self.now_ms, key: None, value, headers: &[] })
    }
}

/// The rows of one partition, as records.
struct RoutedRows<'a> {
    columns: &'a SentColumns,
    rows: &'a [usize],
    now_ms: i64,
    headers: Vec<RecordHeader<'a>>,
}

impl NewRecords for RoutedRows<'_> {
    fn count(&self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    fn with<R>(&mut self, number: usize, look: impl FnOnce(&NewRecord<'_>) -> R) -> R {
        let row = self.rows[number];
        let found =
            self.columns.row(row).and_then(|found| self.columns.headers(row, &mut self.headers).map(|()| found));
        // Every row was read when its partition was chosen, and the columns do not change.
        look(&found.expect("a row that was read before").record(self.now_ms, &self.headers))
    }
}

/// The rows of one call, and their batches.
#[derive(Debug, Default)]
pub struct SentRows {
    pub rows: usize,
    /// A batch's outcome, and the number of rows in the batch.
    pub batches: Vec<(Arc<Delivery>, u32)>,
}

impl SentRows {
    fn add(&mut self, delivery: &Arc<Delivery>, rows: usize) {
        self.rows += rows;
        match self.batches.last_mut() {
            Some((last, count)) if Arc::ptr_eq(last, delivery) => *count += rows as u32,
            _ => self.batches.push((Arc::clone(delivery), rows as u32)),
        }
    }
}

impl Producer {
    /// Add a record for every row of these batches, to the row's own topic or to `topic`; returns how many. Rows of a
    /// partition keep their order.
    ///
    /// # Errors
    /// A row that is invalid ([`ClientError::BadRow`], numbered over all batches), or a topic without metadata: no row was
    /// sent. Full memory or a closed producer ([`ClientError::PartlySent`]): some rows may have been sent.
    pub fn send_columns(&self, batches: &[SentColumns], topic: Option<&str>) -> Result<SentRows, ClientError> {
        let (now_ms, mut rows) = (now_ms(), 0);
        let mut routes = Vec::with_capacity(batches.len());
        for columns in batches {
            routes.push(match columns.only_values().zip(topic) {
                Some((values, topic)) => self.runs(values, columns.rows(), topic, rows)?,
                None => Routes::Sorted(columns, self.sort(columns, topic, now_ms, rows)?),
            });
            rows += columns.rows();
        }
        let mut sent = SentRows::default();
        for routes in &routes {
            let ended = self.append_routed(routes, now_ms, &mut sent);
            let sent = sent.rows;
            ended.map_err(|error| ClientError::PartlySent { sent, rows, source: Box::new(error) })?;
        }
        Ok(sent)
    }

    /// Add the rows of one batch; the error is the reason why some were not added.
    fn append_routed(&self, routes: &Routes<'_>, now_ms: i64, sent: &mut SentRows) -> Result<(), ClientError> {
        let accumulator = &self.shared.accumulator;
        match routes {
            Routes::Runs(Runs { values, queues, runs }) => {
                for (partition, rows) in runs {
                    let mut records = Values { values, rows: rows.clone(), now_ms };
                    let note = |delivery: &Arc<Delivery>, added: Range<usize>| sent.add(delivery, added.len());
                    accumulator.append_all_noting(&queues[*partition], &mut records, Since::SENT, note).1?;
                }
            }
            Routes::Sorted(columns, targets) => {
                let each = targets.iter().flat_map(|target| target.queues.iter().zip(&target.rows));
                for (queue, rows) in each.filter(|(_, rows)| !rows.is_empty()) {
                    let mut records = RoutedRows { columns, rows, now_ms, headers: Vec::new() };
                    let note = |delivery: &Arc<Delivery>, added: Range<usize>| sent.add(delivery, added.len());
                    accumulator.append_all_noting(queue, &mut records, Since::SENT, note).1?;
                }
            }
        }
        Ok(())
    }

    /// The runs of values, each to one partition; the first value is row `before` of all.
    fn runs<'a>(&self, values: &'a Parts, rows: usize, topic: &str, before: usize) -> Result<Routes<'a>, ClientError> {
        let batch_size = self.shared.config.batch_size;
        if rows == 0 {
            return Ok(Routes::Runs(Runs { values, queues: Arc::default(), runs: Vec::new() }));
        }
        let destination = self.destination(topic)?;
        let queues = destination.queues();
        let mut runs: Vec<(usize, Range<usize>)> = Vec::new();
        let mut first = 0;
        while first < rows {
            let (partition, capacity) = (destination.choose(None, queues.len()), destination.capacity(batch_size));
            let (mut next, mut bytes) = (first, 0);
            // A partitioner that chooses for each record gets runs of one.
            while next < rows && (next == first || capacity.is_some_and(|capacity| bytes < capacity)) {
                let bad = |detail: String| ClientError::BadRow { row: before + next, detail };
                let size = values.get(next).map_err(bad)?.map_or(0, <[u8]>::len);
                let fits = self.shared.accumulator.check_size(topic, size + RECORD_OVERHEAD);
                fits.map_err(|error| bad(error.to_string()))?;
                bytes += size;
                next += 1;
            }
            if capacity.is_some() {
                destination.count_bytes(bytes, batch_size);
            }
            match runs.last_mut() {
                Some((last, rows)) if *last == partition => rows.end = next,
                _ => runs.push((partition, first..next)),
            }
            first = next;
        }
        Ok(Routes::Runs(Runs { values, queues, runs }))
    }

    /// The rows of one batch by topic and partition; the first of them is row `before` of all.
    fn sort(
        &self,
        columns: &SentColumns,
        topic: Option<&str>,
        now_ms: i64,
        before: usize,
    ) -> Result<Vec<Target>, ClientError> {
        let batch_size = self.shared.config.batch_size;
        let (mut targets, mut places): (Vec<Target>, FxHashMap<&[u8], usize>) = Default::default();
        let (mut last, mut place): (&[u8], Option<usize>) = (&[], None);
        let mut headers = Vec::new();
        for number in 0..columns.rows() {
            let bad = |detail: String| ClientError::BadRow { row: before + number, detail };
            let row = columns.row(number).map_err(bad)?;
            let name = row.topic.or(topic.map(str::as_bytes));
            let name = name.ok_or_else(|| bad("no topic: name one in the column or as the argument".to_owned()))?;
            let at = match place.filter(|_| name == last).or_else(|| places.get(name).copied()) {
                Some(at) => at,
                None => {
                    let text = std::str::from_utf8(name).map_err(|e| bad(format!("its topic is no UTF-8: {e}")))?;
                    let destination = self.destination(text)?;
                    let queues = destination.queues();
                    let rows = vec![Vec::new(); queues.len()];
                    targets.push(Target { destination, queues, rows });
                    places.insert(name, targets.len() - 1);
                    targets.len() - 1
                }
            };
            (last, place) = (name, Some(at));
            columns.headers(number, &mut headers).map_err(bad)?;
            let record = row.record(now_ms, &headers);
            if record.timestamp_ms < 0 {
                return Err(bad(format!("timestamp {} ms: must be at least 0, or null for now", record.timestamp_ms)));
            }
            let target = &mut targets[at];
            let size = self.shared.accumulator.check_size(&target.destination.name, record.upper_bound());
            size.map_err(|e| bad(e.to_string()))?;
            let partition = target.partition(&row, batch_size).map_err(bad)?;
            target.rows[partition].push(number);
        }
        Ok(targets)
    }
}
