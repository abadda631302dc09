//! Counts the records of received batches without creating Python objects; with load generation, also the latencies of
//! stamped records.

use parking_lot::Mutex;
use pybroker_client::{Chunk, ClientError, Count};

#[cfg(feature = "load")]
use crate::client::stamp::{LatencyHistogram, Tally};

/// The state kept between calls.
#[derive(Default)]
pub struct Counting {
    scratch: Mutex<Vec<u8>>,
    #[cfg(feature = "load")]
    arrivals: Mutex<pybroker_load::Arrivals>,
}

#[cfg(feature = "load")]
impl Counting {
    /// Reads every record of a chunk, with its stamp if `stamped`.
    pub fn read(&self, chunk: &Chunk, stamped: bool) -> Result<Count, ClientError> {
        let scratch = &mut self.scratch.lock();
        if stamped {
            self.arrivals.lock().read(chunk, scratch, pybroker_client::now_us())
        } else {
            chunk.count(scratch)
        }
    }

    /// The stamped records read since the last call.
    pub fn take_arrivals(&self) -> (Tally, LatencyHistogram) {
        let (tally, histogram) = self.arrivals.lock().take();
        (Tally::from(tally), LatencyHistogram::from(histogram))
    }
}

#[cfg(not(feature = "load"))]
impl Counting {
    /// Reads every record of a chunk; stamps are not supported.
    pub fn read(&self, chunk: &Chunk, stamped: bool) -> Result<Count, ClientError> {
        if stamped {
            let detail = "this extension module was built without load generation";
            return Err(ClientError::BadSetting { setting: "stamped", value: "true".to_owned(), detail });
        }
        chunk.count(&mut self.scratch.lock())
    }
}
