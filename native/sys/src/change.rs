//! The changes of the file system that a log makes, as values.

use std::fs::File;
use std::path::Path;

/// A change of the file system, as the fault-injecting layer sees it; and what needs a descriptor or memory and changes
/// nothing.
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
