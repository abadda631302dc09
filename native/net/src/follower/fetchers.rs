//! Assigns partitions to fetcher threads: by the leader's id and a hash of the partition, as in Kafka's fetcher managers.
//!
//! Owns the threads. Only a partition's role determines the leader to follow: [`ReplicaFetchers::roles_changed`] reads it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::thread::{Command, FetcherThread, Mailbox, Surroundings};
use crate::data_plane::events::{EventQueue, Level};
use crate::data_plane::settings::{FetchSecurity, FetchSource, ReplicationSettings};
use crate::scheduling::clock::Clock;
use crate::scheduling::inboxes::Inboxes;
use pybroker_replica::{BrokerId, Following, Partition, PartitionKey, ReplicationThrottle, Role, ThrottleLimit};

/// A thread: the leader's id, and the thread's number for this leader.
type ThreadKey = (BrokerId, usize);

#[derive(Debug)]
struct Running {
    mailbox: Arc<Mailbox>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Assigned {
    partition: Arc<Partition>,
    following: Following,
    /// `None` if no thread could be started.
    thread: Option<ThreadKey>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` before the control plane has set them: nothing is fetched.
    settings: Option<Arc<ReplicationSettings>>,
    sources: FxHashMap<BrokerId, FetchSource>,
    threads: FxHashMap<ThreadKey, Running>,
    /// Threads that were ordered to end.
    ending: Vec<JoinHandle<()>>,
    assigned: FxHashMap<PartitionKey, Assigned>,
    is_stopped: bool,
}

/// The fetcher threads and their partitions.
#[derive(Debug)]
pub struct ReplicaFetchers {
    surroundings: Arc<Surroundings>,
    state: Mutex<State>,
}

/// Commands for threads, collected so that each thread is woken once.
#[derive(Debug, Default)]
struct Posts(FxHashMap<ThreadKey, Vec<Command>>);

impl ReplicaFetchers {
    /// Without threads.
    pub fn new(inboxes: Arc<Inboxes>, events: Arc<EventQueue>, clock: Arc<Clock>, thread_slice: Duration) -> Self {
        let surroundings = Arc::new(Surroundings {
            inboxes,
            events,
            clock,
            throttle: Arc::new(ReplicationThrottle::new(ThrottleLimit::NONE)),
            security: Mutex::new(FetchSecurity::PLAINTEXT),
            thread_slice,
            bytes_in: AtomicU64::new(0),
        });
        Self { surroundings, state: Mutex::default() }
    }

    /// Sets the settings; another number of fetchers reassigns the partitions.
    pub fn set_settings(&self, settings: ReplicationSettings) {
        self.surroundings.throttle.set_limit(settings.follower_throttle);
        let mut state = self.state.lock();
        let before = state.settings.replace(Arc::new(settings));
        let mut posts = Posts::default();
        if before.is_none_or(|before| before.fetchers != settings.fetchers) {
            let keys: Vec<_> = state.assigned.keys().copied().collect();
            for key in keys {
                if let Some(Assigned { partition, following, thread }) = state.assigned.remove(&key) {
                    posts.unfollow(thread, key);
                    self.assign(&mut state, &mut posts, partition, following);
                }
            }
        }
        let shared = Arc::new(settings);
        for key in state.threads.keys() {
            posts.add(*key, Command::Settings(Arc::clone(&shared)));
        }
        posts.send(&state);
        state.end_threads_from(settings.fetchers);
    }

    /// Sets the security of new connections.
    pub fn set_security(&self, security: FetchSecurity) {
        *self.surroundings.security.lock() = security;
    }

    /// Bytes of records that were fetched and appended since the start.
    pub fn bytes_in(&self) -> u64 {
        self.surroundings.bytes_in.load(Ordering::Relaxed)
    }

    /// Replaces the brokers that may be fetched from.
    pub fn set_sources(&self, sources: Vec<FetchSource>) {
        let mut state = self.state.lock();
        state.sources = sources.into_iter().map(|source| (source.id, source)).collect();
        let mut posts = Posts::default();
        for key in state.threads.keys() {
            posts.add(*key, Command::Source(state.sources.get(&key.0).cloned()));
        }
        posts.send(&state);
    }

    /// Starts, changes or stops the fetching of partitions that changed their roles or were closed.
    pub fn roles_changed(&self, partitions: impl IntoIterator<Item = Arc<Partition>>) {
        let mut state = self.state.lock();
        let mut posts = Posts::default();
        for partition in partitions {
            let key = (*partition.topic_id(), partition.index());
            let wanted = match &*partition.role() {
                Role::Follower(following) if !partition.is_closed() => Some(*following),
                Role::Follower(_) | Role::Leader(_) | Role::None { .. } => None,
            };
            let before = state.assigned.get(&key);
            let is_same = before.is_some_and(|before| {
                Some(before.following) == wanted
                    && before.thread.is_some()
                    && Arc::ptr_eq(&before.partition, &partition)
            });
            if is_same {
                continue;
            }
            let thread = state.assigned.remove(&key).and_then(|before| before.thread);
            match wanted {
                // With the same leader the thread stays the same, and gets the newer epoch.
                Some(following) if thread.is_some_and(|(source, _)| source == following.leader) => {
                    self.assign(&mut state, &mut posts, partition, following);
                }
                Some(following) => {
                    posts.unfollow(thread, key);
                    self.assign(&mut state, &mut posts, partition, following);
                }
                None => posts.unfollow(thread, key),
            }
        }
        posts.send(&state);
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.state.lock().threads.len()
    }

    /// Ends all threads; none starts again.
    pub fn stop(&self) {
        let threads = {
            let mut state = self.state.lock();
            state.is_stopped = true;
            state.assigned.clear();
            state.end_threads_from(0);
            std::mem::take(&mut state.ending)
        };
        for thread in threads {
            // A thread that panicked has reported it on stderr; the others still have to be joined.
            let _ = thread.join();
        }
    }

    fn assign(&self, state: &mut State, posts: &mut Posts, partition: Arc<Partition>, following: Following) {
        let key = (*partition.topic_id(), partition.index());
        let settings = state.settings.clone().filter(|settings| settings.fetchers > 0 && !state.is_stopped);
        let thread = settings.and_then(|settings| {
            let number = fetcher_number(partition.topic(), partition.index(), settings.fetchers);
            let thread = (following.leader, number);
            match self.ensure_runs(state, thread, settings) {
                Ok(()) => Some(thread),
                Err(error) => {
                    let text = format!("a fetcher thread of broker {} cannot begin: {error}", following.leader.0);
                    self.surroundings.events.line(Level::Error, text);
                    None
                }
            }
        });
        if let Some(thread) = thread {
            posts.add(thread, Command::Follow(Arc::clone(&partition), following));
        }
        state.assigned.insert(key, Assigned { partition, following, thread });
    }

    fn ensure_runs(&self, state: &mut State, key: ThreadKey, settings: Arc<ReplicationSettings>) -> io::Result<()> {
        if state.threads.contains_key(&key) {
            return Ok(());
        }
        let (source, number) = key;
        let mailbox = Arc::new(Mailbox::new()?);
        let thread = FetcherThread::new(source, settings, Arc::clone(&self.surroundings), Arc::clone(&mailbox))?;
        mailbox.post([Command::Source(state.sources.get(&source).cloned())]);
        let name = format!("fetch-{}-{number}", source.0);
        let thread = std::thread::Builder::new().name(name).spawn(move || thread.run())?;
        state.threads.insert(key, Running { mailbox, thread });
        Ok(())
    }
}

impl State {
    /// Ends the threads of each leader from a number on: they have no partitions.
    fn end_threads_from(&mut self, fetchers: usize) {
        self.ending.retain(|thread| !thread.is_finished());
        let surplus: Vec<_> = self.threads.keys().filter(|(_, number)| *number >= fetchers).copied().collect();
        for key in surplus {
            if let Some(running) = self.threads.remove(&key) {
                running.mailbox.post([Command::Stop]);
                self.ending.push(running.thread);
            }
        }
    }
}

impl Drop for ReplicaFetchers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Posts {
    fn add(&mut self, thread: ThreadKey, command: Command) {
        self.0.entry(thread).or_default().push(command);
    }

    fn unfollow(&mut self, thread: Option<ThreadKey>, key: PartitionKey) {
        if let Some(thread) = thread {
            self.add(thread, Command::Unfollow(key));
        }
    }

    fn send(self, state: &State) {
        for (thread, commands) in self.0 {
            if let Some(running) = state.threads.get(&thread) {
                running.mailbox.post(commands);
            }
        }
    }
}

/// Kafka's `AbstractFetcherManager.getFetcherId`: `abs(31 * topic.hashCode() + partition) % fetchers`, in Java's arithmetic.
fn fetcher_number(topic: &str, index: i32, fetchers: usize) -> usize {
    let hash = topic.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    let mixed = hash.wrapping_mul(31).wrapping_add(index);
    // Kafka's `Utils.abs` returns 0 for the number without an absolute value.
    mixed.checked_abs().map_or(0, |mixed| mixed as usize) % fetchers
}

#[cfg(test)]
mod tests {
    use super::fetcher_number;

    #[test]
    fn partitions_are_dealt_as_kafka_deals_them() {
        // Java: Math.abs(31 * "orders".hashCode() + 3) % 4, with "orders".hashCode() == -1008770331.
        assert_eq!(
            fetcher_number("orders", 3, 4),
            (31_i32.wrapping_mul(-1_008_770_331) + 3).unsigned_abs() as usize % 4
        );
        assert!((0..100).all(|index| fetcher_number("t", index, 1) == 0));
        assert_eq!(
            (0..4).map(|index| fetcher_number("t", index, 4)).collect::<std::collections::BTreeSet<_>>().len(),
            4
        );
    }
}
