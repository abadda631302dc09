//! Requests of any API that the control plane decides on before they are executed.
//!
//! Test brokers use this to inject faults. A broker that intercepts nothing pays one relaxed load of a bit set per request.
//! An intercepted frame stays in its connection's input buffer, and the connection is paused until [`Decision`] arrives:
//! later requests keep their order, as behind a slow request in Kafka.

use std::sync::atomic::{AtomicU64, Ordering};

use pybroker_wire::ApiKey;

/// The APIs whose requests are intercepted: one bit for each key from 0 to 127.
#[derive(Debug, Default)]
pub struct InterceptedApis {
    words: [AtomicU64; 2],
}

impl InterceptedApis {
    /// Whether requests of an API are intercepted.
    pub fn contains(&self, ApiKey(api_key): ApiKey) -> bool {
        let word = usize::try_from(api_key >> 6).ok().and_then(|at| self.words.get(at));
        // Relaxed: a request that arrives while the set changes may count as before or after the change.
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (api_key & 63) & 1 == 1)
    }

    /// Intercepts these APIs and no others.
    pub fn set(&self, api_keys: &[i16]) {
        let mut words = [0_u64; 2];
        for &key in api_keys {
            if let Some(word) = usize::try_from(key >> 6).ok().and_then(|at| words.get_mut(at)) {
                *word |= 1 << (key & 63);
            }
        }
        for (word, bits) in self.words.iter().zip(words) {
            word.store(bits, Ordering::Relaxed);
        }
    }
}

/// The control plane's decision on an intercepted request.
#[derive(Debug)]
pub enum Decision {
    /// Execute the request.
    Proceed,
    /// Execute the request, and send no response to it and to all that follow on its connection.
    ProceedUnanswered {
        /// Whether the connection is closed in place of the response.
        close: bool,
    },
    /// Do not execute the request; these bytes, everything after the correlation id, are its response.
    Response(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_is_intercepted_from_when_it_is_set_until_another_set_lacks_it() {
        let apis = InterceptedApis::default();
        assert!((-1..=200).all(|key| !apis.contains(ApiKey(key))));
        apis.set(&[0, 63, 64, 127, -1, 128]);
        let found: Vec<i16> = (i16::MIN..=i16::MAX).filter(|&key| apis.contains(ApiKey(key))).collect();
        assert_eq!(found, [0, 63, 64, 127]);
        apis.set(&[1]);
        assert_eq!((0..128).filter(|&key| apis.contains(ApiKey(key))).collect::<Vec<i16>>(), [1]);
    }
}
