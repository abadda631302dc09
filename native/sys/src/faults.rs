//! The file layer of the tests: records every change below a directory, injects failures, and computes the state
//! after a crash.
//!
//! Owns the model of a crash. Data that was not synced is present, lost, torn or mixed with zeros, for each file
//! separately. Names change in the order of the calls, as in every journaling file system. How many of these changes
//! survive is known only from the last sync of the directory. A directory keeps its names when it is itself renamed.
//! Must not know logs. Exists in test builds only.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::change::Change;

/// Number of active layers. Without any, a change costs one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The layers, by the directory that each watches. A change elsewhere does not keep a layer alive beyond its test.
static LAYERS: Mutex<Vec<(PathBuf, Weak<FaultLayer>)>> = Mutex::new(Vec::new());

/// A change: its kind and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    Open(PathBuf),
    Map(PathBuf),
    Create(PathBuf),
    MakeDirectory(PathBuf),
    Write(PathBuf),
    Resize(PathBuf),
    Sync(PathBuf),
    SyncDirectory(PathBuf),
    SyncFileSystem(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
}

impl Done {
    fn of(change: Change<'_>) -> Self {
        match change {
            Change::Open(path) => Self::Open(path.to_path_buf()),
            Change::Map(path) => Self::Map(path.to_path_buf()),
            Change::Create(path) => Self::Create(path.to_path_buf()),
            Change::MakeDirectory(path) => Self::MakeDirectory(path.to_path_buf()),
            Change::Write(file) => Self::Write(path_of(file)),
            Change::Resize(file) => Self::Resize(path_of(file)),
            Change::Sync(file) => Self::Sync(path_of(file)),
            Change::SyncDirectory(path) => Self::SyncDirectory(path.to_path_buf()),
            Change::SyncFileSystem(path) => Self::SyncFileSystem(path.to_path_buf()),
            Change::Rename(from, to) => Self::Rename(from.to_path_buf(), to.to_path_buf()),
            Change::Remove(path) => Self::Remove(path.to_path_buf()),
        }
    }

    /// Returns whether it changes the file system or its durable state.
    fn is_change(&self) -> bool {
        !matches!(self, Self::Open(_) | Self::Map(_))
    }

    /// Returns whether it may create or remove other files than the named one.
    fn changes_names(&self) -> bool {
        match self {
            Self::Create(_) | Self::MakeDirectory(_) | Self::Rename(..) | Self::Remove(_) => true,
            Self::Open(_) | Self::Map(_) | Self::Write(_) | Self::Resize(_) | Self::Sync(_) => false,
            Self::SyncDirectory(_) | Self::SyncFileSystem(_) => false,
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Open(path)
            | Self::Map(path)
            | Self::Create(path)
            | Self::MakeDirectory(path)
            | Self::Write(path)
            | Self::Resize(path)
            | Self::Sync(path)
            | Self::SyncDirectory(path)
            | Self::SyncFileSystem(path)
            | Self::Rename(path, _)
            | Self::Remove(path) => path,
        }
    }
}

fn path_of(file: &File) -> PathBuf {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default()
}

/// A file at one moment: its bytes and its identity, which is unique and survives a rename.
#[derive(Clone, Debug)]
struct Node {
    identity: usize,
    inode: u64,
    bytes: Arc<Vec<u8>>,
}

/// A directory at one moment. Its identity survives a rename too.
#[derive(Clone, Copy, Debug)]
struct Directory {
    identity: usize,
    inode: u64,
}

#[derive(Clone, Debug, Default)]
struct Tree {
    files: BTreeMap<PathBuf, Node>,
    directories: BTreeMap<PathBuf, Directory>,
}

impl Tree {
    fn is_directory(&self, path: &Path, identity: usize) -> bool {
        self.directories.get(path).is_some_and(|directory| directory.identity == identity)
    }

    fn path_of(&self, identity: usize) -> Option<&Path> {
        let found = self.directories.iter().find(|(_, directory)| directory.identity == identity);
        found.map(|(path, _)| path.as_path())
    }
}

/// A change, and the state that readers saw afterwards.
#[derive(Clone, Debug)]
struct Step {
    done: Option<Done>,
    tree: Tree,
}

type Authorization = dyn FnMut(&Done) -> Option<io::Error> + Send;

struct State {
    steps: Vec<Step>,
    recording: bool,
    /// Whether a change is recorded only for the file that it names.
    named_only: bool,
    decision: Option<Box<Authorization>>,
    identities: usize,
}

/// The layer over one directory. It is active until it is dropped.
pub struct FaultLayer {
    root: PathBuf,
    state: Mutex<State>,
}

impl FaultLayer {
    /// Watches everything below `root`, which must exist.
    pub fn over(root: &Path) -> Arc<Self> {
        let root = root.canonicalize().expect("the directory exists");
        let state = State { steps: Vec::new(), recording: false, named_only: false, decision: None, identities: 0 };
        let layer = Arc::new(Self { root: root.clone(), state: Mutex::new(state) });
        LAYERS.lock().push((root, Arc::downgrade(&layer)));
        COUNT.fetch_add(1, Ordering::SeqCst);
        layer
    }

    /// Starts recording.
    pub fn record(&self) {
        let mut state = self.state.lock();
        state.recording = true;
        self.note(&mut state, None);
    }

    /// Starts recording, and compares only the named file after a change. Stores to a mapping are seen when that file
    /// is synced, when names change, and at the end. For long-lived layers.
    pub fn record_named(&self) {
        self.state.lock().named_only = true;
        self.record();
    }

    /// Returns the number of recorded changes.
    pub fn count(&self) -> usize {
        self.state.lock().steps.len().saturating_sub(1)
    }

    /// Calls `decision` before every later call. If it returns an error, the call fails with it and has no effect.
    pub fn fail_when(&self, decision: impl FnMut(&Done) -> Option<io::Error> + Send + 'static) {
        self.state.lock().decision = Some(Box::new(decision));
    }

    fn perform<T>(&self, change: Change<'_>, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let done = Done::of(change);
        let mut state = self.state.lock();
        if let Some(error) = state.decision.as_mut().and_then(|decision| decision(&done)) {
            return Err(error);
        }
        let result = act();
        if state.recording && result.is_ok() && done.is_change() {
            self.note(&mut state, Some(done));
        }
        result
    }

    fn note(&self, state: &mut State, done: Option<Done>) {
        if let Some(step) = state.steps.last().filter(|_| state.named_only)
            && let Some(named) = done.as_ref().filter(|done| !done.changes_names())
        {
            let mut tree = step.tree.clone();
            // A file without a name is lost after a crash.
            if let (Some(node), Ok(bytes)) = (tree.files.get_mut(named.path()), fs::read(named.path())) {
                node.bytes = Arc::new(bytes);
            }
            state.steps.push(Step { done, tree });
            return;
        }
        let mut tree = Tree::default();
        let before = state.steps.last().map(|step| step.tree.clone()).unwrap_or_default();
        walk(&self.root, &mut |path| {
            let inode = fs::metadata(path).expect("listed").ino();
            if path.is_dir() {
                let known = before.directories.values().find(|directory| directory.inode == inode);
                let directory = known.copied().unwrap_or_else(|| {
                    state.identities += 1;
                    Directory { identity: state.identities, inode }
                });
                tree.directories.insert(path.to_path_buf(), directory);
                return;
            }
            let bytes = fs::read(path).expect("listed");
            let known = before.files.values().find(|node| node.inode == inode);
            let node = match known {
                Some(node) if *node.bytes == bytes => node.clone(),
                Some(node) => Node { bytes: Arc::new(bytes), ..node.clone() },
                None => {
                    state.identities += 1;
                    Node { identity: state.identities, inode, bytes: Arc::new(bytes) }
                }
            };
            tree.files.insert(path.to_path_buf(), node);
        });
        state.steps.push(Step { done, tree });
    }

    /// Returns the files after a crash at this moment, by path relative to the root.
    pub fn crash_now(&self, how: Crash) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut state = self.state.lock();
        self.note(&mut state, None);
        let cut = state.steps.len() - 1;
        drop(state);
        self.crash(cut, how)
    }

    /// Returns the files after a crash that follows the first `cut` changes, by path relative to the root.
    pub fn crash(&self, cut: usize, how: Crash) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state.lock();
        let steps = &state.steps[..=cut];
        let mut remains = Remains { steps, how, dice: Dice(how.seed()), left: BTreeMap::new() };
        remains.lay_out(steps[0].tree.directories[&self.root].identity, Path::new(""));
        remains.left
    }
}

/// The files that a crash leaves, computed from the root downward.
struct Remains<'a> {
    steps: &'a [Step],
    how: Crash,
    dice: Dice,
    left: BTreeMap<PathBuf, Vec<u8>>,
}

impl Remains<'_> {
    /// Computes a directory under its name after the crash. It has its names of some moment since its last sync,
    /// wherever the directory was then.
    fn lay_out(&mut self, identity: usize, place: &Path) {
        let (steps, cut) = (self.steps, self.steps.len() - 1);
        let is_sync = |step: &Step| match &step.done {
            Some(Done::SyncDirectory(path)) => step.tree.is_directory(path, identity),
            Some(Done::SyncFileSystem(_)) => true,
            _ => false,
        };
        let synced = steps.iter().rposition(is_sync).unwrap_or(0);
        let names = match self.how {
            Crash::OfTheProcess => cut,
            Crash::LosingAll => synced,
            Crash::Torn(_) => synced + self.dice.below(cut - synced + 1),
        };
        let tree = &steps[names].tree;
        let Some(home) = tree.path_of(identity) else { return };
        let name_in = |path: &Path| Some(place.join(path.file_name()?)).filter(|_| path.parent() == Some(home));
        for (path, node) in &tree.files {
            let Some(name) = name_in(path) else { continue };
            let now = content(steps, node.identity).unwrap_or_default();
            let synced = synced_content(steps, node.identity).unwrap_or_default();
            let bytes = match self.how {
                Crash::OfTheProcess => now.to_vec(),
                Crash::LosingAll => synced.to_vec(),
                Crash::Torn(_) => torn(&synced, &now, &mut self.dice),
            };
            self.left.insert(name, bytes);
        }
        for (path, directory) in &tree.directories {
            if let Some(name) = name_in(path) {
                self.lay_out(directory.identity, &name);
            }
        }
    }
}

impl Drop for FaultLayer {
    fn drop(&mut self) {
        LAYERS.lock().retain(|(_, layer)| layer.strong_count() > 0);
        COUNT.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The effect of a crash on data that was not synced.
#[derive(Clone, Copy, Debug)]
pub enum Crash {
    /// The process crashed, the system did not: all data is present.
    OfTheProcess,
    /// A power failure that loses all data that was not synced.
    LosingAll,
    /// A power failure after which data that was not synced is partly present. The number is the random seed.
    Torn(u64),
}

impl Crash {
    fn seed(self) -> u64 {
        match self {
            Self::OfTheProcess | Self::LosingAll => 0,
            Self::Torn(seed) => seed,
        }
    }
}

/// Runs `act` under the layer that watches the path, if there is one.
pub fn perform<T>(change: Change<'_>, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    if COUNT.load(Ordering::SeqCst) == 0 {
        return act();
    }
    let done = Done::of(change);
    let watching = |(root, layer): &(PathBuf, Weak<FaultLayer>)| {
        if done.path().starts_with(root) { layer.upgrade() } else { None }
    };
    let layer = LAYERS.lock().iter().find_map(watching);
    match layer {
        Some(layer) => layer.perform(change, act),
        None => act(),
    }
}

/// Visits a directory and everything below it.
fn walk(directory: &Path, visit: &mut impl FnMut(&Path)) {
    visit(directory);
    for entry in fs::read_dir(directory).expect("a directory of the test") {
        let path = entry.expect("listed").path();
        if path.is_dir() { walk(&path, visit) } else { visit(&path) }
    }
}

/// Returns the last recorded content of a file.
fn content(steps: &[Step], identity: usize) -> Option<Arc<Vec<u8>>> {
    let in_tree = |step: &Step| {
        let mut nodes = step.tree.files.values();
        nodes.find(|node| node.identity == identity).map(|node| Arc::clone(&node.bytes))
    };
    steps.iter().rev().find_map(in_tree)
}

/// Returns the content of a file at its last sync.
fn synced_content(steps: &[Step], identity: usize) -> Option<Arc<Vec<u8>>> {
    let synced = |step: &Step| match &step.done {
        Some(Done::Sync(path)) => {
            step.tree.files.get(path).filter(|node| node.identity == identity).map(|n| n.bytes.clone())
        }
        // It covers all files.
        Some(Done::SyncFileSystem(_)) => content(std::slice::from_ref(step), identity),
        _ => None,
    };
    // Files that existed when the recording began are on the device.
    let first = || content(&steps[..1], identity);
    steps.iter().rev().find_map(synced).or_else(first)
}

/// Returns a mixture of synced and current content, by sector. Zeros appear where the length was written before the
/// data.
fn torn(synced: &[u8], now: &[u8], dice: &mut Dice) -> Vec<u8> {
    const SECTOR: usize = 16;
    let (shorter, longer) = (synced.len().min(now.len()), synced.len().max(now.len()));
    let len = match dice.below(4) {
        0 => synced.len(),
        1 => now.len(),
        _ => shorter + dice.below(longer - shorter + 1),
    };
    let style = dice.below(3);
    let mut bytes = vec![0; len];
    for (sector, chunk) in bytes.chunks_mut(SECTOR).enumerate() {
        let at = sector * SECTOR;
        let fresh = match style {
            0 => true,
            1 => dice.below(8) > 0,
            _ => dice.below(2) > 0,
        };
        let from = if fresh { now } else { synced };
        for (offset, byte) in chunk.iter_mut().enumerate() {
            *byte = from.get(at + offset).copied().unwrap_or(0);
        }
    }
    bytes
}

/// A deterministic random number generator (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
