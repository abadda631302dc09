//! The tests' file layer: records every change below a directory, makes changes fail, and says what a crash may leave.
//!
//! Owns the model of a crash. Data that was not synced is there, gone, torn or mixed with zeros, each file by itself. Names
//! change in the order of the calls, as every journaling file system does it, but how far they have got is known only from
//! the last sync of their directory, which keeps what it holds when it is itself renamed. It must not know what a log is. It exists in test builds only.

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

/// Layers in force; changes elsewhere cost one load.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// By the directory that each watches. A change elsewhere does not keep a layer alive beyond its test.
static LAYERS: Mutex<Vec<(PathBuf, Weak<FaultLayer>)>> = Mutex::new(Vec::new());

/// A change, by what it does and to which path.
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

    /// Whether it changes the file system, or what of it is on the device.
    fn is_change(&self) -> bool {
        !matches!(self, Self::Open(_) | Self::Map(_))
    }

    /// Whether other files than the one that it names may be there, or not be there, afterwards.
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

/// A file at one moment: its identity (which outlives a rename, and is not given twice) and its bytes.
#[derive(Clone, Debug)]
struct Node {
    identity: usize,
    inode: u64,
    bytes: Arc<Vec<u8>>,
}

/// A directory at one moment: its identity outlives a rename, too.
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

/// What was done, and what readers then saw.
#[derive(Clone, Debug)]
struct Step {
    done: Option<Done>,
    tree: Tree,
}

type Verdict = dyn FnMut(&Done) -> Option<io::Error> + Send;

struct State {
    steps: Vec<Step>,
    recording: bool,
    /// A change is looked for in the file that it names alone.
    named_only: bool,
    verdict: Option<Box<Verdict>>,
    identities: usize,
}

/// The layer over one directory; in force until it is dropped.
pub struct FaultLayer {
    root: PathBuf,
    state: Mutex<State>,
}

impl FaultLayer {
    /// Watches everything below `root`, which exists.
    pub fn over(root: &Path) -> Arc<Self> {
        let root = root.canonicalize().expect("the directory exists");
        let state = State { steps: Vec::new(), recording: false, named_only: false, verdict: None, identities: 0 };
        let layer = Arc::new(Self { root: root.clone(), state: Mutex::new(state) });
        LAYERS.lock().push((root, Arc::downgrade(&layer)));
        COUNT.fetch_add(1, Ordering::SeqCst);
        layer
    }

    /// Records from now on.
    pub fn record(&self) {
        let mut state = self.state.lock();
        state.recording = true;
        self.note(&mut state, None);
    }

    /// Records from now on, and looks for a change in the file that it names alone: what is stored to a mapping is seen
    /// when that file is synced, when names change, and in the end. For layers that live long.
    pub fn record_named(&self) {
        self.state.lock().named_only = true;
        self.record();
    }

    /// Changes recorded so far.
    pub fn count(&self) -> usize {
        self.state.lock().steps.len().saturating_sub(1)
    }

    /// Asks `verdict` about everything from now on: an error is what it ends with, undone.
    pub fn fail_when(&self, verdict: impl FnMut(&Done) -> Option<io::Error> + Send + 'static) {
        self.state.lock().verdict = Some(Box::new(verdict));
    }

    fn perform<T>(&self, change: Change<'_>, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let done = Done::of(change);
        let mut state = self.state.lock();
        if let Some(error) = state.verdict.as_mut().and_then(|verdict| verdict(&done)) {
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
            // A file that has lost its name is nobody's after a crash.
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

    /// What a crash now leaves below another root, by path relative to it.
    pub fn crash_now(&self, how: Crash) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut state = self.state.lock();
        self.note(&mut state, None);
        let cut = state.steps.len() - 1;
        drop(state);
        self.crash(cut, how)
    }

    /// What a crash after the first `cut` changes leaves below another root, by path relative to it.
    pub fn crash(&self, cut: usize, how: Crash) -> BTreeMap<PathBuf, Vec<u8>> {
        let state = self.state.lock();
        let steps = &state.steps[..=cut];
        let mut remains = Remains { steps, how, dice: Dice(how.seed()), left: BTreeMap::new() };
        remains.lay_out(steps[0].tree.directories[&self.root].identity, Path::new(""));
        remains.left
    }
}

/// What a crash leaves, as it is found out from the root downward.
struct Remains<'a> {
    steps: &'a [Step],
    how: Crash,
    dice: Dice,
    left: BTreeMap<PathBuf, Vec<u8>>,
}

impl Remains<'_> {
    /// Lays out a directory under the name that it has after the crash: its own names are those of some moment since it was
    /// last synced, wherever it was then.
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

/// How a crash treats what was not synced.
#[derive(Clone, Copy, Debug)]
pub enum Crash {
    /// The process ended, the system went on: everything is there.
    OfTheProcess,
    /// The power went, and everything that was not synced with it.
    LosingAll,
    /// The power went, and what was not synced is there in part; the number chooses which.
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

/// Does `act` under the layer that watches the path, if one does.
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

/// Visits the directory and everything below it.
fn walk(directory: &Path, visit: &mut impl FnMut(&Path)) {
    visit(directory);
    for entry in fs::read_dir(directory).expect("a directory of the test") {
        let path = entry.expect("listed").path();
        if path.is_dir() { walk(&path, visit) } else { visit(&path) }
    }
}

/// What a file held when it was last seen.
fn content(steps: &[Step], identity: usize) -> Option<Arc<Vec<u8>>> {
    let in_tree = |step: &Step| {
        let mut nodes = step.tree.files.values();
        nodes.find(|node| node.identity == identity).map(|node| Arc::clone(&node.bytes))
    };
    steps.iter().rev().find_map(in_tree)
}

/// What a file held when it was last synced.
fn synced_content(steps: &[Step], identity: usize) -> Option<Arc<Vec<u8>>> {
    let synced = |step: &Step| match &step.done {
        Some(Done::Sync(path)) => {
            step.tree.files.get(path).filter(|node| node.identity == identity).map(|n| n.bytes.clone())
        }
        // It holds all files, wherever they lie.
        Some(Done::SyncFileSystem(_)) => content(std::slice::from_ref(step), identity),
        _ => None,
    };
    // What was there when the recording began is on the device.
    let first = || content(&steps[..1], identity);
    steps.iter().rev().find_map(synced).or_else(first)
}

/// A mixture of what was synced and what was there, in sectors; zeros where the length was written before the data.
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

/// Numbers that look random and are the same in every run (SplitMix64).
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
