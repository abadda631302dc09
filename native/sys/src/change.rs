//! The file system changes of a log, as values.

use std::fs::File;
use std::path::Path;

/// A file system change for the fault-injecting layer, or a call without a change that needs a file descriptor or
/// memory.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(test), allow(dead_code, reason = "the fields are what the tests' layer looks at"))]
pub enum Change<'a> {
    Open(&'a Path),
    Map(&'a Path),
    Create(&'a Path),
    MakeDirectory(&'a Path),
    Write(&'a File),
    Resize(&'a File),
    Sync(&'a File),
    SyncDirectory(&'a Path),
    SyncFileSystem(&'a Path),
    Rename(&'a Path, &'a Path),
    Remove(&'a Path),
}
