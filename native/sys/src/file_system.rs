//! The sync of a whole file system.
//!
//! Owns the decision whether it is reliable: the kernel must report lost pages (Linux 5.8 and later), and the file
//! system must wait for its device. Must not know the synced data.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::change::Change;
use super::file::{self, change};

/// The file system of a directory. Lost pages are reported from the opening on, so it must be opened before the
/// writes that [`FileSystem::sync`] covers.
#[derive(Debug)]
pub struct FileSystem {
    directory: PathBuf,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has the call"))]
    opened: File,
}

impl FileSystem {
    /// Opens the file system of `directory`; `None` if a sync of all of it is not reliable.
    ///
    /// # Errors
    /// The errors of `open`.
    pub fn open(directory: &Path) -> io::Result<Option<Self>> {
        if !reports_losses() {
            return Ok(None);
        }
        let opened = file::open(directory)?;
        Ok(waits_for_its_device(&opened).then(|| Self { directory: directory.to_path_buf(), opened }))
    }

    /// Opens the file system and assumes that it is reliable.
    #[cfg(any(test, feature = "fault-injection"))]
    pub fn assumed(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), opened: File::open(directory).expect("a directory of the test") }
    }

    /// Waits until all writes to the file system are on its device.
    ///
    /// # Errors
    /// An error means that pages of any file may be lost. The caller must not retry.
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

/// Before Linux 5.8, `syncfs` does not report lost pages.
fn reports_losses() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 8)
}

/// Returns whether the file system is known to wait for its device. A file system in user space may return before its
/// server has written anything. A stacked file system depends on the one below.
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
