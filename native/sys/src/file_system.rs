//! A whole file system, synced at once.
//!
//! Owns the question whether that can be relied on: where the kernel reports what it lost (Linux 5.8 and later), and where the
//! file system itself waits for its device. It must not know what is synced.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::change::Change;
use super::file::{self, change};

/// The file system that a directory lies in. Losses are reported since it was opened: it is opened before anything is written
/// that [`FileSystem::sync`] shall vouch for.
#[derive(Debug)]
pub struct FileSystem {
    directory: PathBuf,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has the call"))]
    opened: File,
}

impl FileSystem {
    /// The file system of `directory`; `None` where a sync of all of it cannot be relied on.
    ///
    /// # Errors
    /// Whatever `open` says.
    pub fn open(directory: &Path) -> io::Result<Option<Self>> {
        if !reports_losses() {
            return Ok(None);
        }
        let opened = file::open(directory)?;
        Ok(waits_for_its_device(&opened).then(|| Self { directory: directory.to_path_buf(), opened }))
    }

    /// Takes it that the file system can be relied on.
    #[cfg(any(test, feature = "fault-injection"))]
    pub fn assumed(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), opened: File::open(directory).expect("a directory of the test") }
    }

    /// Waits until everything that was written in the file system is on its device.
    ///
    /// # Errors
    /// An error means that pages may be lost, of whatever file: it must never be answered by a second try.
    pub fn sync(&self) -> io::Result<()> {
        change(Change::SyncFileSystem(&self.directory), || self.sync_all())
    }

    #[cfg(target_os = "linux")]
    fn sync_all(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.opened)?)
    }

    #[cfg(not(target_os = "linux"))]
    fn sync_all(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Before Linux 5.8 `syncfs` says nothing of pages that were lost.
fn reports_losses() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 8)
}

/// Those of which it is known. A file system in user space may return before its server has written anything, and one over
/// another does what that does.
#[cfg(target_os = "linux")]
fn waits_for_its_device(opened: &File) -> bool {
    /// From `linux/magic.h`: ext2 to ext4, XFS, Btrfs, F2FS, tmpfs.
    const KNOWN: [u64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];
    rustix::fs::fstatfs(opened).is_ok_and(|found| KNOWN.contains(&(found.f_type as u64)))
}

#[cfg(not(target_os = "linux"))]
fn waits_for_its_device(_: &File) -> bool {
    false
}
