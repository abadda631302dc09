//! What the log asks of a file: made, named, written, cut, synced, blocks reserved ahead.
//!
//! Owns the choice between the Linux call and its portable fallback, and the one way through which every change of a log's
//! files goes: the tests' fault-injecting layer (`faults`) stands there, and a production build has nothing in its place.
//! It must not know what the bytes are.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
#[cfg(target_os = "linux")]
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::change::Change;

/// Bytes of a page. A regular file's first page is read at once, so that a read of less than a page ends with the file.
pub const PAGE: usize = 4096;
#[cfg(target_os = "linux")]
const DIRECTORY_CHUNK: usize = 32 << 10;

/// Does `act`, unless the tests' layer has another idea.
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

/// Whether the process or the system has run out of descriptors or memory: the same call may succeed later, and says
/// nothing about the disk.
#[must_use]
pub fn is_exhaustion(error: &io::Error) -> bool {
    match error.raw_os_error() {
        Some(number) => matches!(number, libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN),
        // An allocation of Rust that failed has no number.
        None => error.kind() == io::ErrorKind::OutOfMemory,
    }
}

/// The error of a sync is final whatever its number is: pages may be lost, and no second try finds that out.
fn final_error(error: io::Error) -> io::Error {
    if is_exhaustion(&error) { io::Error::from_raw_os_error(libc::EIO) } else { error }
}

/// Opens a file for reading.
///
/// # Errors
/// Whatever `open` says.
pub fn open(path: &Path) -> io::Result<File> {
    change(Change::Open(path), || File::open(path))
}

/// Opens a file for reading and writing; it has to be there.
///
/// # Errors
/// Whatever `open` says.
pub fn open_writable(path: &Path) -> io::Result<File> {
    change(Change::Open(path), || OpenOptions::new().read(true).write(true).open(path))
}

/// Reads a whole file. One that is smaller than a page costs an open, a read and a close.
///
/// # Errors
/// Whatever `open` or `read` says.
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

/// The names in a directory, in no order.
///
/// # Errors
/// Whatever `open` or `getdents` says.
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
/// Whatever `opendir` says.
pub fn list(directory: &Path) -> io::Result<fs::ReadDir> {
    change(Change::Open(directory), || fs::read_dir(directory))
}

/// Maps a file into memory by `map`, which changes nothing.
///
/// # Errors
/// Whatever `mmap` says.
pub fn map<T>(path: &Path, map: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    change(Change::Map(path), map)
}

/// Makes an empty file, in place of one that has its name.
///
/// # Errors
/// Whatever `open` says.
pub fn create(path: &Path) -> io::Result<File> {
    let how = || OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
    change(Change::Create(path), how)
}

/// Opens a file for reading and writing, and makes it when it is absent.
///
/// # Errors
/// Whatever `open` says.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    match open_writable(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path),
        opened => opened,
    }
}

/// Opens a file for reading and writing without keeping the time of its last access, which costs every read a little.
///
/// # Errors
/// Whatever `open` says.
pub fn open_untimed(path: &Path) -> io::Result<File> {
    change(Change::Open(path), || open_without_time(path))
}

fn open_without_time(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.read(true).write(true);
    #[cfg(target_os = "linux")]
    {
        match how.clone().custom_flags(rustix::fs::OFlags::NOATIME.bits().cast_signed()).open(path) {
            // Only the owner of a file may ask for that.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            opened => return opened,
        }
    }
    how.open(path)
}

/// Makes a directory and those above it; true when it was not there.
///
/// # Errors
/// Whatever `mkdir` says.
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
/// Whatever `pwrite` says; a part of the bytes may be in the file then.
pub fn write_all_at(file: &File, bytes: &[u8], position: u64) -> io::Result<()> {
    change(Change::Write(file), || file.write_all_at(bytes, position))
}

/// Gives the file this length.
///
/// # Errors
/// Whatever `ftruncate` says.
pub fn set_len(file: &File, len: u64) -> io::Result<()> {
    change(Change::Resize(file), || file.set_len(len))
}

/// Renames; what had the new name is gone.
///
/// # Errors
/// Whatever `rename` says.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    change(Change::Rename(from, to), || fs::rename(from, to))
}

/// Removes a file's name.
///
/// # Errors
/// Whatever `unlink` says.
pub fn remove(path: &Path) -> io::Result<()> {
    change(Change::Remove(path), || fs::remove_file(path))
}

/// Asks for the blocks of `len` bytes from `position` on without changing the file's length.
///
/// Returns whether they were reserved; a file system that cannot, or is full, is no error here: the write that follows
/// shows whether there is room.
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

/// Makes sure that `len` bytes from `position` on have blocks, so that storing to a shared mapping of them cannot fail.
///
/// Where the file system has no `fallocate`, zeros are written instead: the range must not hold data.
///
/// # Errors
/// ENOSPC, EDQUOT or whatever the file system says.
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

/// Gives back blocks reserved beyond `len`, the file's length.
///
/// # Errors
/// Whatever `ftruncate` says.
pub fn release_beyond_end(file: &File, len: u64) -> io::Result<()> {
    set_len(file, len)
}

/// Waits until the file's data (and the length needed to read it) is on the device.
///
/// # Errors
/// An error means that pages may be lost: it must never be answered by a second try, and is no [`is_exhaustion`].
pub fn sync_data(file: &File) -> io::Result<()> {
    change(Change::Sync(file), || file.sync_data()).map_err(final_error)
}

/// Makes the names in `directory` durable.
///
/// # Errors
/// Whatever opening the directory says, and [`Directory::sync`].
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    Directory::open(directory)?.sync()
}

/// A directory whose names are to be made durable: opened before they are changed, so that the change does not end
/// half done for want of a descriptor.
#[derive(Debug)]
pub struct Directory<'a> {
    path: &'a Path,
    opened: File,
}

impl<'a> Directory<'a> {
    /// Opens the directory.
    ///
    /// # Errors
    /// Whatever `open` says.
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

/// Reads the first page of a file; returns the bytes and how long the file is. A file that is smaller costs one call.
///
/// # Errors
/// Whatever `pread` or `fstat` says.
pub fn read_front<'a>(file: &File, page: &'a mut [u8; PAGE]) -> io::Result<(&'a [u8], u64)> {
    let read = read_once_at(file, page, 0)?;
    let len = if read < PAGE { read as u64 } else { file.metadata()?.len() };
    Ok((&page[..read], len))
}

/// Reads until `buffer` is full or the file ends; returns the bytes read.
///
/// # Errors
/// Whatever `pread` says, interruptions aside.
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
        // More than one chunk has.
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
