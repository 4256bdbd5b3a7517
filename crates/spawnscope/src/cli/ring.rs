//! `record --keep SIZE`: which files the ring of recordings consists of, when the next one begins,
//! and which are deleted. Only recordings whose names have the form of the ring, such as
//! `spawnscope.7.db`, are ever deleted.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::record::{is_recording, numbered_file};

/// A file is finished when it is larger than 1/PARTS of the ring, so that little is lost when the
/// oldest file is deleted.
const PARTS: u64 = 8;
/// A file is also finished after this time, so that the recordings of a quiet machine do not span
/// days.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// How often the size of the current file is looked up.
const SIZE_CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// Numbers from here on are not counted further: a file with such a number was not made by a ring,
/// and its successor could overflow.
const MAX_NUMBER: u64 = 1 << 62;
/// Suffixes of the files that SQLite keeps with a recording.
const SQLITE_SUFFIXES: [&str; 2] = ["-wal", "-shm"];

pub struct Ring {
    output: PathBuf,
    /// Maximum size of all files together, in bytes.
    keep: u64,
    /// The number of the current file.
    number: u64,
    started: Instant,
    next_size_check: Instant,
}

impl Ring {
    /// Continues the ring that an earlier recorder left, if there is one.
    pub fn open(output: &Path, keep: u64) -> Result<Ring> {
        let mut ring = Ring {
            output: output.to_owned(),
            keep,
            number: 0,
            started: Instant::now(),
            next_size_check: Instant::now(),
        };
        ring.number = ring.numbers()?.pop().map_or(1, |last| last + 1);
        Ok(ring)
    }

    pub fn current(&self) -> PathBuf {
        numbered_file(&self.output, self.number)
    }

    /// Whether the next file must begin, because the current one is large or old enough.
    pub fn is_due(&mut self, now: Instant) -> bool {
        if now < self.next_size_check {
            return false;
        }
        self.next_size_check = now + SIZE_CHECK_INTERVAL;
        now.duration_since(self.started) >= MAX_AGE || size_with_log(&self.current()) >= self.keep / PARTS
    }

    /// Switches to the next file, which the caller must create.
    pub fn advance(&mut self, now: Instant) {
        self.number += 1;
        self.started = now;
    }

    /// Deletes the oldest files until the remaining files, the current one and what is written
    /// before the next size check fit into the ring. Returns the number of remaining files, without
    /// the current one.
    pub fn trim(&self) -> Result<usize> {
        let numbers = self.numbers()?.into_iter().filter(|number| *number != self.number);
        let files = numbers.map(|number| numbered_file(&self.output, number));
        // Newest first.
        let mut files: Vec<PathBuf> = files.filter(|file| is_recording(file)).collect();
        files.reverse();
        let max_bytes = self.keep - 3 * (self.keep / PARTS);
        let mut used = 0;
        let mut kept = 0;
        for file in files {
            used += size_with_log(&file);
            if used <= max_bytes {
                kept += 1;
            } else {
                remove(&file)?;
            }
        }
        Ok(kept)
    }

    /// Returns the numbers of all files that have names of the ring, ascending.
    fn numbers(&self) -> Result<Vec<u64>> {
        let directory = match self.output.parent() {
            Some(directory) if !directory.as_os_str().is_empty() => directory,
            _ => Path::new("."),
        };
        let entries =
            fs::read_dir(directory).with_context(|| format!("failed to read the directory {}", directory.display()))?;
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        let mut numbers: Vec<u64> = names.filter_map(|name| self.number_in(&name)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Returns the number in a file name. `None` if this is not a name that the ring gives to its
    /// files.
    fn number_in(&self, name: &OsString) -> Option<u64> {
        let path = Path::new(name);
        let stem = if self.output.extension().is_some() { Path::new(path.file_stem()?) } else { path };
        let number = stem.extension()?.to_str()?.parse().ok().filter(|number| *number < MAX_NUMBER)?;
        (numbered_file(&self.output, number).file_name()? == name).then_some(number)
    }
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn size_with_log(file: &Path) -> u64 {
    let files = [file.to_owned(), with_suffix(file, SQLITE_SUFFIXES[0])];
    files.iter().map(|path| fs::symlink_metadata(path).map_or(0, |metadata| metadata.len())).sum()
}

fn remove(file: &Path) -> Result<()> {
    fs::remove_file(file).with_context(|| format!("failed to remove {} for --keep", file.display()))?;
    for suffix in SQLITE_SUFFIXES {
        // Usually, this file does not exist.
        let _ = fs::remove_file(with_suffix(file, suffix));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a file of a given size that begins like a recording.
    fn recording(path: &Path, bytes: usize) {
        let directory = tempfile::tempdir().unwrap();
        let made = directory.path().join("r.db");
        create(&made);
        let mut content = fs::read(made).unwrap();
        content.resize(content.len().max(bytes), 0);
        fs::write(path, content).unwrap();
    }

    fn create(path: &Path) {
        let connection = rusqlite::Connection::open(path).unwrap();
        let sql = "PRAGMA application_id = 0x53504e53; CREATE TABLE x (y)";
        connection.execute_batch(sql).unwrap();
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn only_the_oldest_recordings_of_the_ring_are_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for name in ["ring.2.db", "ring.9.db", "ring.10.db", "ring.11.db", "other.1.db"] {
            recording(&root.join(name), 1_000_000);
        }
        fs::write(root.join("ring.2.db-wal"), "log").unwrap();
        for other in ["ring.1.db", "ring.x.db", "ring.03.db", "ring.3.db.old"] {
            fs::write(root.join(other), vec![0; 1_000_000]).unwrap();
        }
        let ring = Ring::open(&root.join("ring.db"), 4_000_000).unwrap();
        assert_eq!(ring.current(), root.join("ring.12.db"));
        assert_eq!(ring.trim().unwrap(), 2);
        let left = ["other.1.db", "ring.03.db", "ring.1.db", "ring.10.db", "ring.11.db", "ring.3.db.old", "ring.x.db"];
        assert_eq!(names(root), left);
    }

    #[test]
    fn numbers_do_not_overflow() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        recording(&root.join("ring.4294967295.db"), 1_000);
        recording(&root.join("ring.18446744073709551615.db"), 1_000);
        let mut ring = Ring::open(&root.join("ring.db"), 4_000_000).unwrap();
        assert_eq!(ring.current(), root.join("ring.4294967296.db"));
        ring.advance(Instant::now());
        assert_eq!(ring.current(), root.join("ring.4294967297.db"));
    }

    #[test]
    fn a_file_is_due_when_it_is_large_or_old_enough() {
        let directory = tempfile::tempdir().unwrap();
        let mut ring = Ring::open(&directory.path().join("ring.db"), 8_000).unwrap();
        let mut now = Instant::now() + SIZE_CHECK_INTERVAL;
        assert!(!ring.is_due(now));
        fs::write(ring.current(), vec![0; 600]).unwrap();
        fs::write(with_suffix(&ring.current(), "-wal"), vec![0; 400]).unwrap();
        assert!(!ring.is_due(now), "the size is not looked up that often");
        now += SIZE_CHECK_INTERVAL;
        assert!(ring.is_due(now));
        ring.advance(now);
        assert_eq!(ring.current(), directory.path().join("ring.2.db"));
        assert!(!ring.is_due(now + SIZE_CHECK_INTERVAL));
        assert!(ring.is_due(now + MAX_AGE));
    }
}
