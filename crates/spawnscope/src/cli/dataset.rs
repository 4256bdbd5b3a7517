//! A dataset of many recordings on disk: where the files of a recording are, and how they get there completely or not at all. A file is
//! `TABLE/date=DATE/job=JOB/RUN.parquet`. RUN is a hash of the recording, so adding it again finds it there. Any number of processes may add at once:
//! no file is ever changed, and two that add the same recording write the same names. What the doctor found is added in the same way.

use std::fmt::Write as _;
use std::fs::{DirBuilder, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use chrono::{DateTime, NaiveDate};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::identity::{self, Caller};
use crate::owner::{OwnerGuard, act_as};
use crate::parallel;
use crate::present::dataset::{Dataset, Table};
use crate::record::reader::{Info, RecordingFile};

/// The name that query engines give to the directory of rows without a value.
const NO_JOB: &str = "__HIVE_DEFAULT_PARTITION__";
/// Maximum bytes of a job in the name of a directory; file systems allow 255 for the name.
const MAX_JOB: usize = 180;

/// Makes a directory for a dataset that is copied to its place. It belongs to who would own the dataset.
///
/// # Errors
/// When it cannot be made.
pub fn temporary() -> Result<TempDir> {
    let caller = identity::caller()?;
    let _owner_guard = act_as(caller.as_ref().map(Caller::owner).as_ref())?;
    Ok(tempfile::tempdir()?)
}

/// Refuses what cannot be the directory of a dataset.
///
/// # Errors
/// When it is there and no directory.
pub fn check(root: &Path) -> Result<()> {
    if root.exists() && !root.is_dir() {
        bail!(
            "{} is not a directory: name the directory of a dataset with -o",
            root.display()
        );
    }
    Ok(())
}

/// The place of a recording or of an examination in a dataset.
pub struct Place {
    root: PathBuf,
    /// `date=DATE/job=JOB`
    partition: PathBuf,
    run: String,
}

impl Place {
    /// Finds the place of a recording.
    ///
    /// # Errors
    /// When the recording cannot be read, is still being written, or has no date, or the dataset is not a directory.
    pub fn of(root: &Path, file: &RecordingFile, info: &Info) -> Result<Place> {
        if info.is_live {
            bail!("the recording is still being written, and would be added again when it has ended: wait for its end");
        }
        check(root)?;
        let date = date(info.started_unix_ns).ok_or_else(|| anyhow!("the recording has no valid date"))?;
        let job = info.labels.iter().find(|label| label.key == "job");
        let job = job.map_or_else(|| NO_JOB.to_owned(), |job| encoded(&job.value));
        Ok(Place {
            root: root.to_owned(),
            partition: Path::new(&format!("date={date}")).join(format!("job={job}")),
            run: run_of(file)?,
        })
    }

    /// Finds the place of an examination of a machine. It has no job.
    ///
    /// # Errors
    /// When it has no date.
    pub fn of_examination(root: &Path, examined_unix_ns: i64, contents: &str) -> Result<Place> {
        let date = date(examined_unix_ns).ok_or_else(|| anyhow!("the clock has no valid date"))?;
        let hash = Sha256::digest(format!("{examined_unix_ns}\n{contents}"));
        Ok(Place {
            root: root.to_owned(),
            partition: Path::new(&format!("date={date}")).join(format!("job={NO_JOB}")),
            run: hexadecimal(&hash[..16]),
        })
    }

    /// What identifies the recording or the examination.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Whether the dataset has the recording.
    ///
    /// # Errors
    /// When that cannot be found out.
    pub fn is_taken(&self) -> Result<bool> {
        let caller = identity::caller()?;
        let _owner_guard = self.act(caller.as_ref())?;
        let path = self.path(Table::Runs);
        path.try_exists()
            .with_context(|| format!("failed to look for {}", path.display()))
    }

    /// Writes all tables.
    ///
    /// # Errors
    /// When one cannot be written. Other tables may be in the dataset, without their row in `runs`; adding the recording again completes it.
    pub fn write(&self, dataset: &Dataset<'_>) -> Result<()> {
        let caller = identity::caller()?;
        let write = |table: Table| {
            // Only the calling thread takes on the ids of the owner.
            let _owner_guard = self.act(caller.as_ref())?;
            let path = self.path(table);
            self.write_table(dataset, table, &path)
                .with_context(|| format!("failed to write {}", path.display()))
        };
        let Some((last, others)) = dataset.tables().split_last() else {
            return Ok(());
        };
        let written = parallel::each(others.len(), usize::MAX, |index| write(others[index]));
        written.into_iter().collect::<Result<()>>()?;
        write(*last)
    }

    /// Writes a table under another name, which engines skip, and renames it once it is on disk.
    fn write_table(&self, dataset: &Dataset<'_>, table: Table, path: &Path) -> Result<()> {
        let directory = self.root.join(table.name()).join(&self.partition);
        DirBuilder::new().recursive(true).mode(0o777).create(&directory)?;
        let prefix = format!(".{}.", self.run);
        let mut file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".tmp")
            .tempfile_in(&directory)?;
        let mut out = BufWriter::new(file.as_file_mut());
        dataset.write(table, &mut out)?;
        out.flush()?;
        drop(out);
        file.as_file().sync_all()?;
        file.persist(path)?;
        self.sync_directories(&directory)?;
        Ok(())
    }

    /// Makes the names in a directory durable, and those of the directories above it up to the dataset's.
    fn sync_directories(&self, directory: &Path) -> io::Result<()> {
        let within = directory
            .ancestors()
            .take_while(|directory| directory.starts_with(&self.root));
        for directory in within.filter(|directory| !directory.as_os_str().is_empty()) {
            File::open(directory)?.sync_all()?;
        }
        let above = self.root.canonicalize()?;
        above.parent().map_or(Ok(()), |above| {
            // The dataset may be in a directory that its owner cannot read.
            File::open(above).and_then(|above| above.sync_all()).or(Ok(()))
        })
    }

    fn path(&self, table: Table) -> PathBuf {
        let directory = self.root.join(table.name()).join(&self.partition);
        directory.join(format!("{}.parquet", self.run))
    }

    fn act(&self, caller: Option<&Caller>) -> Result<Option<OwnerGuard>> {
        act_as(caller.map(Caller::owner).as_ref()).with_context(|| {
            format!(
                "failed to switch to the ids of the user who called sudo, for {}",
                self.root.display()
            )
        })
    }
}

/// Returns the date in UTC.
fn date(unix_ns: i64) -> Option<NaiveDate> {
    let time = DateTime::from_timestamp(unix_ns.div_euclid(1_000_000_000), 0)?;
    Some(time.date_naive())
}

/// Returns 32 hexadecimal digits from the sums of all tables. The bytes of the file do not identify it: SQLite may move its log into it.
fn run_of(file: &RecordingFile) -> Result<String> {
    let mut hasher = Sha256::new();
    for (table, rows, sum) in file.sums()? {
        hasher.update(format!("{table} {rows} {sum}\n"));
    }
    Ok(hexadecimal(&hasher.finalize()[..16]))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Encodes a job as a part of a path: engines decode %XX. The name comes from outside, so `/`, `.` and `=` must not stay. A long name is cut, and
/// gets a hash of the whole.
fn encoded(job: &str) -> String {
    if job.is_empty() {
        return NO_JOB.to_owned();
    }
    let mut encoded = String::new();
    for character in job.chars() {
        let part = encoded_character(character);
        if encoded.len() + part.len() > MAX_JOB {
            return format!("{encoded}-{}", hexadecimal(&Sha256::digest(job)[..4]));
        }
        encoded.push_str(&part);
    }
    encoded
}

fn encoded_character(character: char) -> String {
    if character.is_ascii_alphanumeric() || matches!(character, '_' | '-') {
        return character.to_string();
    }
    let mut bytes = [0; 4];
    let bytes = character.encode_utf8(&mut bytes).bytes();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_one_part_of_a_path() {
        for (job, expected) in [
            ("build", "build"),
            ("unit-tests_2", "unit-tests_2"),
            ("../../etc", "%2E%2E%2F%2E%2E%2Fetc"),
            ("test: [a, b]", "test%3A%20%5Ba%2C%20b%5D"),
            ("a=b%", "a%3Db%25"),
            ("\u{e4}", "%C3%A4"),
            ("", NO_JOB),
        ] {
            assert_eq!(encoded(job), expected);
        }
    }

    #[test]
    fn long_jobs_are_cut_and_stay_apart() {
        let [one, other] = ["a", "b"].map(|end| encoded(&format!("{}{end}", "/\u{e4}x".repeat(300))));
        assert!(one.len() <= 200 && one != other, "{one}");
        let whole = encoded("/\u{e4}x");
        assert_eq!(
            one.rsplit_once('-').unwrap().0,
            whole.repeat(18),
            "cut between characters"
        );
        assert!(encoded(&"x".repeat(1_024)).len() <= 200);
    }
}
