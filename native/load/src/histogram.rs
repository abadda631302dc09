//! Latencies in HDR histograms of one configuration, so that those of many clients and machines merge exactly.
//!
//! Owns the configuration and the encoding (HdrHistogram's V2 with DEFLATE, which its other implementations read). Knows no
//! clock and no record.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// Highest latency recorded, in microseconds (ten minutes); longer ones count as this.
const HIGHEST_US: u64 = 600_000_000;
/// Significant decimal digits.
const DIGITS: u8 = 3;

/// Latencies in microseconds, from 1 to ten minutes, to three significant digits.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyHistogram(Histogram<u64>);

impl LatencyHistogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self(Histogram::new_with_bounds(1, HIGHEST_US, DIGITS).unwrap_or_else(|_| unreachable!("constant bounds")))
    }

    /// Record `count` records with a latency of `latency_us` each; below 1 counts as 1.
    pub fn record(&mut self, latency_us: u64, count: u64) {
        self.0.saturating_record_n(latency_us.max(1), count);
    }

    /// Add another histogram.
    pub fn merge(&mut self, other: &Self) {
        // Both have the same configuration, so this cannot fail.
        let _ = self.0.add(&other.0);
    }

    /// The difference from an earlier state of this histogram.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut new = self.clone();
        // Counts never decrease, so no difference is negative.
        let _ = new.0.subtract(&earlier.0);
        new
    }

    /// The number of records.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The largest latency; 0 if empty.
    pub fn max_us(&self) -> u64 {
        self.0.max()
    }

    /// The mean; 0 if empty.
    pub fn mean_us(&self) -> f64 {
        self.0.mean()
    }

    /// The latency that this fraction (0 to 1) of the records does not exceed, to three digits.
    pub fn at_quantile(&self, quantile: f64) -> u64 {
        self.0.value_at_quantile(quantile)
    }

    /// HdrHistogram's V2 encoding, compressed.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut out).map_err(|e| e.to_string())?;
        Ok(out)
    }

    /// Decode the result of `encode`. The error gives the reason, also for a histogram of another configuration.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let histogram: Histogram<u64> =
            Deserializer::new().deserialize(&mut &*bytes).map_err(|e| format!("no HdrHistogram: {e}"))?;
        if (histogram.low(), histogram.high(), histogram.sigfig()) != (1, HIGHEST_US, DIGITS) {
            let (low, high, digits) = (histogram.low(), histogram.high(), histogram.sigfig());
            return Err(format!(
                "a histogram of {low} to {high} with {digits} digits; 1 to {HIGHEST_US} with {DIGITS}"
            ));
        }
        Ok(Self(histogram))
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{HIGHEST_US, LatencyHistogram};
    use proptest::prelude::*;

    fn of(latencies: &[u64]) -> LatencyHistogram {
        let mut histogram = LatencyHistogram::new();
        latencies.iter().for_each(|us| histogram.record(*us, 1));
        histogram
    }

    proptest! {
        #[test]
        fn a_merge_is_the_histogram_of_the_union(
            ours in prop::collection::vec(0..2 * HIGHEST_US, 0..200),
            theirs in prop::collection::vec(0..2 * HIGHEST_US, 0..200),
        ) {
            let mut merged = LatencyHistogram::decode(&of(&ours).encode().unwrap()).unwrap();
            merged.merge(&LatencyHistogram::decode(&of(&theirs).encode().unwrap()).unwrap());
            let union = of(&[ours.clone(), theirs.clone()].concat());
            prop_assert_eq!(&union, &merged);
            prop_assert_eq!(of(&ours), merged.since(&of(&theirs)));
            prop_assert_eq!((ours.len() + theirs.len()) as u64, merged.count());
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = LatencyHistogram::decode(&bytes);
        }
    }

    #[test]
    fn another_shape_is_refused() {
        use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
        let other = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1000, 2).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&other, &mut bytes).unwrap();
        assert!(LatencyHistogram::decode(&bytes).unwrap_err().starts_with("a histogram of 1 to 1000 with 2 digits"));
    }
}
