//! A dataset of many recordings on disk: which files a recording has in it, and how they are added
//! completely or not at all. A file is `TABLE/date=DATE/job=JOB/RUN.parquet`. RUN is a hash of the
//! recording, so a recording that is added again is recognized. Any number of processes may add
//! recordings concurrently: no file is ever changed, and processes that add the same recording
//! write the same file names. Examinations by `doctor` are added in the same way.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use chrono::{DateTime, NaiveDate};
use sha2::{Digest, Sha256};

use super::analysis::{Input, with_timelines_of};
use super::args::ExportArguments;
use super::identity::{self, Caller};
use super::output_file::{PRIVATE, act_as_caller, create_beside};
use super::recordings::unix_ns_now;
use super::{fleet, output};
use crate::analyze::GroupBy;
use crate::analyze::model::window::Part;
use crate::analyze::sites::build_labels::{BuildLabel, BuildLabels};
use crate::analyze::waits::attribution::attributed_waits;
use crate::doctor::Diagnosis;
use crate::parallel;
use crate::present::dataset::{Contents, Dataset, Examination, Table};
use crate::present::doctor;
use crate::present::json_values::hex;
use crate::record::reader::{Info, RecordingFile};

/// The name that query engines give to the directory of rows without a value.
const NO_JOB: &str = "__HIVE_DEFAULT_PARTITION__";
/// What the names of lists of merged recordings begin with, in directories of the table `runs`.
const COMPACTED: &str = ".compacted-";
/// Maximum length of a job in the name of a directory; file systems allow 255 bytes for the name.
const MAX_JOB_BYTES: usize = 180;

/// Passes the directory of a dataset to `add`. If the dataset is in an object store, that is a
/// temporary directory, which is then copied there even if only some recordings could be added.
pub fn add_to(root: &Path, add: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if !fleet::is_store(root) {
        return add(root);
    }
    let directory = identity::temporary_directory()?;
    let added = add(directory.path());
    if added.is_ok() || directory.path().join(Table::Runs.name()).exists() {
        fleet::push(directory.path(), root)?;
    }
    added
}

pub fn check_root(root: &Path) -> Result<()> {
    if root.exists() && !root.is_dir() {
        bail!("{} is not a directory: name the directory of a dataset with -o", root.display());
    }
    Ok(())
}

/// Adds the recordings to the dataset of -o, unless the dataset already has them.
pub fn export(arguments: &ExportArguments) -> Result<()> {
    let Some(root) = output::file(arguments.output.as_deref()) else {
        bail!("a dataset is a directory, or s3://BUCKET/PREFIX: name it with -o");
    };
    add_to(root, |directory| add_all(arguments, directory))
}

/// Adds all recordings that can be read, and then fails if there are others.
fn add_all(arguments: &ExportArguments, root: &Path) -> Result<()> {
    let results = arguments.files.iter().map(|path| add_to_dataset(arguments, path, root));
    let mut failures: Vec<_> = results.filter_map(Result::err).collect();
    let Some(last) = failures.pop() else { return Ok(()) };
    for failure in &failures {
        output::print_message(&output::escape_line(format!("{failure:#}")));
    }
    match arguments.files.len() - failures.len() - 1 {
        0 => Err(last),
        added => Err(last.context(format!("{added} of {} recordings were added", arguments.files.len()))),
    }
}

/// Adds a recording to the dataset in a directory, unless the dataset already has it.
fn add_to_dataset(arguments: &ExportArguments, path: &Path, root: &Path) -> Result<()> {
    let file = RecordingFile::open(path)?;
    let info = file.info()?;
    let files = DatasetFiles::for_recording(root, &file, &info)?;
    if files.exist()? {
        output::print_message(&format!("{} is already in {}", path.display(), root.display()));
        return Ok(());
    }
    with_timelines_of(&file, Part::Whole, &mut |_| {}, |input| {
        let Input { recording, forest, timelines, .. } = input;
        output::print_contradictions(path, &input.contradictions);
        let ((waits, labels), (report, path)) = parallel::join(
            || {
                let labels = BuildLabel::ALL.map(|label| BuildLabels::find(forest, label));
                (attributed_waits(recording, forest, timelines), labels)
            },
            || input.report(GroupBy::Command),
        );
        let dataset = Dataset::new(&Contents {
            run: files.id(),
            has_command_lines: !arguments.no_command_lines,
            recorder: &info.version,
            forest,
            report: &report,
            path: path.as_ref(),
            waits: &waits,
            labels: &labels,
        });
        files.write(&dataset, arguments.mode)
    })
}

/// The files of a recording, or of an examination, in a dataset.
pub struct DatasetFiles {
    root: PathBuf,
    /// `date=DATE/job=JOB`, relative to the directory of each table.
    partition: PathBuf,
    run: String,
}

impl DatasetFiles {
    pub fn for_recording(root: &Path, file: &RecordingFile, info: &Info) -> Result<DatasetFiles> {
        if info.is_live {
            bail!("the recording is still being written, and would be added again when it has ended: wait until then");
        }
        check_root(root)?;
        let date = date(info.started_unix_ns).ok_or_else(|| anyhow!("the recording has no valid date"))?;
        let job = info.labels.iter().find(|label| label.key == "job");
        let job = job.map_or_else(|| NO_JOB.to_owned(), |job| encode_job(&job.value));
        Ok(DatasetFiles {
            root: root.to_owned(),
            partition: Path::new(&format!("date={date}")).join(format!("job={job}")),
            run: hash_recording(file)?,
        })
    }

    /// Returns the files of an examination of a machine, which has no job.
    pub fn for_examination(root: &Path, examined_unix_ns: i64, contents: &str) -> Result<DatasetFiles> {
        let date = date(examined_unix_ns).ok_or_else(|| anyhow!("the clock has no valid date"))?;
        let hash = Sha256::digest(format!("{examined_unix_ns}\n{contents}"));
        Ok(DatasetFiles {
            root: root.to_owned(),
            partition: Path::new(&format!("date={date}")).join(format!("job={NO_JOB}")),
            run: hex(&hash[..16]),
        })
    }

    pub fn id(&self) -> &str {
        &self.run
    }

    /// Whether the recording is complete in the dataset.
    pub fn exist(&self) -> Result<bool> {
        let caller = identity::caller()?;
        let _owner_guard = act_as_caller(&self.root, caller.as_ref())?;
        let path = self.path(Table::Runs);
        let found = path.try_exists().with_context(|| format!("failed to look for {}", path.display()))?;
        Ok(found || path.parent().is_some_and(|directory| self.is_compacted(directory)))
    }

    /// Whether `spawnscope fleet compact` has merged the recording into another file of the
    /// directory: it leaves a list of such recordings.
    fn is_compacted(&self, directory: &Path) -> bool {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut lists = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(COMPACTED));
        lists.any(|list| fs::read_to_string(list.path()).is_ok_and(|runs| runs.lines().any(|run| run == self.run)))
    }

    /// Writes all tables, as files of a mode. If one fails, others may be in the dataset without
    /// their row in `runs`; adding the recording again completes them.
    pub fn write(&self, dataset: &Dataset<'_>, mode: u32) -> Result<()> {
        let caller = identity::caller()?;
        let Some((last, others)) = dataset.tables().split_last() else { return Ok(()) };
        let written = parallel::map(others.len(), usize::MAX, |index| {
            self.write_as_caller(dataset, others[index], mode, caller.as_ref())
        });
        written.into_iter().collect::<Result<()>>()?;
        self.write_as_caller(dataset, *last, mode, caller.as_ref())
    }

    fn write_as_caller(&self, dataset: &Dataset<'_>, table: Table, mode: u32, caller: Option<&Caller>) -> Result<()> {
        // Only the calling thread takes on the ids of the owner.
        let _owner_guard = act_as_caller(&self.root, caller)?;
        let path = self.path(table);
        self.write_table(dataset, table, mode, &path).with_context(|| format!("failed to write {}", path.display()))
    }

    /// Writes a table under a temporary name, which query engines skip, and renames the file once
    /// it is on disk.
    fn write_table(&self, dataset: &Dataset<'_>, table: Table, mode: u32, path: &Path) -> Result<()> {
        let directory = self.root.join(table.name()).join(&self.partition);
        DirBuilder::new().recursive(true).mode(0o777).create(&directory)?;
        let mut file = create_beside(path, mode)?;
        // Whatever the umask is.
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
        let mut out = BufWriter::new(file.as_file_mut());
        dataset.write(table, &mut out)?;
        out.flush()?;
        drop(out);
        file.as_file().sync_all()?;
        file.persist(path)?;
        self.sync_directories(&directory)?;
        Ok(())
    }

    /// Makes file names durable: syncs a directory, and each directory above it up to the parent of
    /// the dataset.
    fn sync_directories(&self, directory: &Path) -> io::Result<()> {
        let within = directory.ancestors().take_while(|directory| directory.starts_with(&self.root));
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
}

/// Returns the date in UTC. `None` if the time is out of range.
fn date(unix_ns: i64) -> Option<NaiveDate> {
    let time = DateTime::from_timestamp(unix_ns.div_euclid(1_000_000_000), 0)?;
    Some(time.date_naive())
}

/// Returns 32 hexadecimal digits, a hash of the checksums of all tables. The bytes of the file do
/// not identify a recording: SQLite may move the log into the file.
fn hash_recording(file: &RecordingFile) -> Result<String> {
    let mut hasher = Sha256::new();
    for (table, rows, sum) in file.sums()? {
        hasher.update(format!("{table} {rows} {sum}\n"));
    }
    Ok(hex(&hasher.finalize()[..16]))
}

/// Encodes a job as a component of a path: query engines decode %XX. The name is untrusted, so `/`,
/// `.` and `=` are encoded, too. A long name is cut, and a hash of the full name is appended.
fn encode_job(job: &str) -> String {
    if job.is_empty() {
        return NO_JOB.to_owned();
    }
    let mut encoded = String::new();
    for character in job.chars() {
        let part = encode_character(character);
        if encoded.len() + part.len() > MAX_JOB_BYTES {
            return format!("{encoded}-{}", hex(&Sha256::digest(job)[..4]));
        }
        encoded.push_str(&part);
    }
    encoded
}

fn encode_character(character: char) -> String {
    if character.is_ascii_alphanumeric() || matches!(character, '_' | '-') {
        return character.to_string();
    }
    let mut bytes = [0; 4];
    let bytes = character.encode_utf8(&mut bytes).bytes();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}

/// Checks the dataset before the examination, which takes seconds.
pub fn check_for_examination(root: &Path) -> Result<()> {
    if fleet::is_store(root) {
        return Ok(());
    }
    if root == Path::new("-") {
        bail!("a dataset is a directory, or s3://BUCKET/PREFIX: name it with -o");
    }
    check_root(root)
}

/// Adds the findings under the name `host`, or else under the machine's own name.
pub fn add_examination(root: &Path, diagnosis: &Diagnosis, host: Option<&str>) -> Result<()> {
    let machine = rustix::system::uname();
    let own_name = machine.nodename().to_string_lossy();
    let host = host.unwrap_or(&own_name);
    let examined_unix_ns = unix_ns_now()?;
    let files = DatasetFiles::for_examination(root, examined_unix_ns, &format!("{host}\n{}", doctor::json(diagnosis)))?;
    let examination =
        Examination { id: files.id(), examined_unix_ns, host, kernel: &machine.release().to_string_lossy(), diagnosis };
    files.write(&Dataset::of_examination(&examination), PRIVATE)
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
            assert_eq!(encode_job(job), expected);
        }
    }

    #[test]
    fn long_jobs_are_cut_and_remain_distinct() {
        let [one, other] = ["a", "b"].map(|end| encode_job(&format!("{}{end}", "/\u{e4}x".repeat(300))));
        assert!(one.len() <= 200 && one != other, "{one}");
        let whole = encode_job("/\u{e4}x");
        assert_eq!(one.rsplit_once('-').unwrap().0, whole.repeat(18), "cut between characters");
        assert!(encode_job(&"x".repeat(1_024)).len() <= 200);
    }
}
