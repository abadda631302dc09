//! File operations of a log: create, rename, write, truncate, sync, preallocate.
//!
//! Owns the choice between the Linux call and its portable fallback. Every change of a log's files passes through
//! this module, so that the fault-injecting layer of the tests (`faults`) can intercept it. Production builds have no
//! such layer. Must not know the content of files.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
#[cfg(target_os = "linux")]
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::change::Change;

/// Size of a page in bytes. The first page of a regular file is read at once, so a read of less than a page reaches
/// the end of the file.
pub const PAGE: usize = 4096;
#[cfg(target_os = "linux")]
const DIRECTORY_CHUNK: usize = 32 << 10;

/// Runs `act`, unless the fault-injecting layer of the tests replaces its result.
#[inline]
pub(crate) fn change<T>(what: Change<'_>, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    #[cfg(any(test, feature = "fault-injection"))]
    return crate::faults::perform(what, act);
    #[cfg(not(any(test, feature = "fault-injection")))]
    {
        let _ = what;
        act()
    }
}

/// Returns whether the error is a lack of file descriptors or memory. The same call may succeed later, and the disk
/// may be fine.
#[must_use]
pub fn is_exhaustion(error: &io::Error) -> bool {
    match error.raw_os_error() {
        Some(number) => matches!(number, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN),
        // A failed allocation in Rust has no error number.
        None => error.kind() == io::ErrorKind::OutOfMemory,
    }
}

/// Returns a sync error that is never taken for exhaustion: pages may be lost, and a retry would not report it.
fn final_error(error: io::Error) -> io::Error {
    if is_exhaustion(&error) { io::Error::from_raw_os_error(libc::EIO) } else { error }
}

/// Opens a file for reading.
///
/// # Errors
/// The errors of `open`.
pub fn open(path: &Path) -> io::Result<File> {
    change(Change::Open(path), || File::open(path))
}

/// Opens an existing file for reading and writing.
///
/// # Errors
/// The errors of `open`.
pub fn open_writable(path: &Path) -> io::Result<File> {
    change(Change::Open(path), || OpenOptions::new().read(true).write(true).open(path))
}

/// Reads a whole file. A file smaller than a page costs one open, one read and one close.
///
/// # Errors
/// The errors of `open` and `read`.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    change(Change::Open(path), || {
        let mut file = File::open(path)?;
        let mut front = [0; PAGE];
        let read = loop {
            match file.read(&mut front) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        let mut bytes = front[..read].to_vec();
        if read == PAGE {
            file.read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    })
}

/// Returns the names in a directory, in no order.
///
/// # Errors
/// The errors of `open` and `getdents`.
pub fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    change(Change::Open(directory), || list_names(directory))
}

#[cfg(target_os = "linux")]
fn list_names(directory: &Path) -> io::Result<Vec<OsString>> {
    use std::os::unix::ffi::OsStringExt;

    use rustix::fs::{Mode, OFlags, RawDir};

    let opened = rustix::fs::open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let mut buffer = Vec::with_capacity(DIRECTORY_CHUNK);
    let mut entries = RawDir::new(opened, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name));
        }
    }
    Ok(names)
}

#[cfg(not(target_os = "linux"))]
fn list_names(directory: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Lists a directory.
///
/// # Errors
/// The errors of `opendir`.
pub fn list(directory: &Path) -> io::Result<fs::ReadDir> {
    change(Change::Open(directory), || fs::read_dir(directory))
}

/// Maps a file into memory with `map`, which must not change the file.
///
/// # Errors
/// The errors of `mmap`.
pub fn map<T>(path: &Path, map: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    change(Change::Map(path), map)
}

/// Creates an empty file, and replaces an existing one.
///
/// # Errors
/// The errors of `open`.
pub fn create(path: &Path) -> io::Result<File> {
    let how = || OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
    change(Change::Create(path), how)
}

/// Opens a file for reading and writing, and creates it when absent.
///
/// # Errors
/// The errors of `open`.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    match open_writable(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path),
        opened => opened,
    }
}

/// Opens a file for reading and writing without updating its access time, which makes reads cheaper.
///
/// # Errors
/// The errors of `open`.
pub fn open_untimed(path: &Path) -> io::Result<File> {
    change(Change::Open(path), || open_without_time(path))
}

fn open_without_time(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.read(true).write(true);
    #[cfg(target_os = "linux")]
    {
        match how.clone().custom_flags(rustix::fs::OFlags::NOATIME.bits().cast_signed()).open(path) {
            // Only the owner of a file may use this flag.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            opened => return opened,
        }
    }
    how.open(path)
}

/// Creates a directory and its parents. Returns true if it was absent.
///
/// # Errors
/// The errors of `mkdir`.
pub fn make_directory(path: &Path) -> io::Result<bool> {
    if path.is_dir() {
        return Ok(false);
    }
    change(Change::MakeDirectory(path), || fs::create_dir_all(path))?;
    Ok(true)
}

/// Writes all of `bytes` at `position`.
///
/// # Errors
/// The errors of `pwrite`. A part of the bytes may then be in the file.
pub fn write_all_at(file: &File, bytes: &[u8], position: u64) -> io::Result<()> {
    change(Change::Write(file), || file.write_all_at(bytes, position))
}

/// Sets the length of a file.
///
/// # Errors
/// The errors of `ftruncate`.
pub fn set_len(file: &File, len: u64) -> io::Result<()> {
    change(Change::Resize(file), || file.set_len(len))
}

/// Renames a file, and replaces an existing one with the new name.
///
/// # Errors
/// The errors of `rename`.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    change(Change::Rename(from, to), || fs::rename(from, to))
}

/// Deletes a file.
///
/// # Errors
/// The errors of `unlink`.
pub fn remove(path: &Path) -> io::Result<()> {
    change(Change::Remove(path), || fs::remove_file(path))
}

/// Preallocates `len` bytes from `position` on without changing the file's length.
///
/// Returns whether they were allocated. A full file system, or one without this call, is no error: the following
/// write shows whether there is space.
pub fn reserve_beyond_end(file: &File, position: u64, len: u64) -> bool {
    #[cfg(target_os = "linux")]
    {
        rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, position, len).is_ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, position, len);
        false
    }
}

/// Ensures that `len` bytes from `position` on have blocks, so that stores to a shared mapping of them cannot fail.
///
/// If the file system has no `fallocate`, zeros are written instead: the range must not contain data.
///
/// # Errors
/// ENOSPC, EDQUOT or another error of the file system.
pub fn reserve_within(file: &File, position: u64, len: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), position, len) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    write_zeros(file, position, len)
}

fn write_zeros(file: &File, mut position: u64, len: u64) -> io::Result<()> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let end = position + len;
    while position < end {
        let step = (end - position).min(ZEROS.len() as u64);
        file.write_all_at(&ZEROS[..step as usize], position)?;
        position += step;
    }
    Ok(())
}

/// Frees blocks that are preallocated beyond `len`, the file's length.
///
/// # Errors
/// The errors of `ftruncate`.
pub fn release_beyond_end(file: &File, len: u64) -> io::Result<()> {
    set_len(file, len)
}

/// Waits until the file's data (and the length needed to read it) is on the device.
///
/// # Errors
/// An error means that pages may be lost. The caller must not retry. The error is never an [`is_exhaustion`].
pub fn sync_data(file: &File) -> io::Result<()> {
    change(Change::Sync(file), || file.sync_data()).map_err(final_error)
}

/// Makes the names in `directory` durable.
///
/// # Errors
/// The errors of opening the directory and of [`Directory::sync`].
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    Directory::open(directory)?.sync()
}

/// A directory whose changed names must become durable. It is opened before the change, so that the change is not
/// left half done for lack of a file descriptor.
#[derive(Debug)]
pub struct Directory<'a> {
    path: &'a Path,
    opened: File,
}

impl<'a> Directory<'a> {
    /// Opens the directory.
    ///
    /// # Errors
    /// The errors of `open`.
    pub fn open(path: &'a Path) -> io::Result<Self> {
        Ok(Self { path, opened: open(path)? })
    }

    /// Waits until the directory's names are on the device.
    ///
    /// # Errors
    /// As [`sync_data`].
    pub fn sync(&self) -> io::Result<()> {
        change(Change::SyncDirectory(self.path), || self.opened.sync_all()).map_err(final_error)
    }
}

fn read_once_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, position) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Reads the first page of a file. Returns the bytes and the file's length. A smaller file costs one call.
///
/// # Errors
/// The errors of `pread` and `fstat`.
pub fn read_front<'a>(file: &File, page: &'a mut [u8; PAGE]) -> io::Result<(&'a [u8], u64)> {
    let read = read_once_at(file, page, 0)?;
    let len = if read < PAGE { read as u64 } else { file.metadata()?.len() };
    Ok((&page[..read], len))
}

/// Reads until `buffer` is full or the file ends. Returns the number of bytes read.
///
/// # Errors
/// The errors of `pread` except interruptions.
pub fn read_full_at(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn files_of_any_length_are_read_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        for len in [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 7] {
            let bytes: Vec<u8> = (0..len).map(|n| (n * 31 % 251) as u8).collect();
            fs::write(&path, &bytes).unwrap();
            assert!(read(&path).unwrap() == bytes, "{len}");
            let mut page = [0; PAGE];
            let (front, found) = read_front(&File::open(&path).unwrap(), &mut page).unwrap();
            assert!((front, found) == (&bytes[..len.min(PAGE)], len as u64), "{len}");
        }
        assert_eq!(read(&directory.path().join("absent")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn all_names_of_a_directory_are_listed() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(names(directory.path()).unwrap(), Vec::<OsString>::new());
        // More names than one chunk can have.
        let expected: Vec<OsString> = (0..700).map(|n| format!("{n:0100}").into()).collect();
        expected.iter().for_each(|name| drop(File::create(directory.path().join(name)).unwrap()));
        fs::create_dir(directory.path().join("z")).unwrap();
        let mut listed = names(directory.path()).unwrap();
        listed.sort();
        assert_eq!(listed, [expected, vec!["z".into()]].concat());
        assert_eq!(names(&directory.path().join("absent")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn blocks_reserved_beyond_the_end_change_no_length_and_are_given_back() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"abc", 0).unwrap();
        if !reserve_beyond_end(&file, 0, 1 << 20) {
            return;
        }
        let reserved = file.metadata().unwrap();
        assert_eq!(reserved.len(), 3);
        assert!(reserved.blocks() * 512 >= 1 << 20);
        release_beyond_end(&file, 3).unwrap();
        assert!(file.metadata().unwrap().blocks() * 512 < 1 << 20);
    }

    #[test]
    fn reserving_within_keeps_what_is_outside() {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"abc", 0).unwrap();
        file.set_len(1 << 16).unwrap();
        reserve_within(&file, 4096, 4096).unwrap();
        write_zeros(&file, 8192, 5000).unwrap();
        let mut buffer = [1u8; 8];
        assert_eq!(read_full_at(&file, &mut buffer, 0).unwrap(), 8);
        assert_eq!(&buffer, b"abc\0\0\0\0\0");
        assert_eq!(read_full_at(&file, &mut buffer, (1 << 16) - 3).unwrap(), 3);
    }
}
