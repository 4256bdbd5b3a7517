//! Finds the files of a dataset: `TABLE/date=YYYY-MM-DD/job=JOB/RUN.parquet`, as `spawnscope export --format parquet` writes them, in a
//! directory or in an object store.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use datafusion::object_store::{ObjectMeta, ObjectStore};
use futures::TryStreamExt;
use object_store::local::LocalFileSystem;
use url::Url;

use crate::store;

/// The tables of a dataset, in the order in which they are written. `runs` is last, because its row makes a recording part of the dataset.
pub const TABLES: [&str; 7] = ["launches", "execs", "callers", "waits", "advice", DOCTOR, "runs"];
/// The table of the doctor's findings, which has no rows of recordings. It exists once `spawnscope doctor -o DATASET` has added findings.
pub const DOCTOR: &str = "doctor";

/// Returns the tables of recordings, which every dataset has.
fn recording_tables() -> impl Iterator<Item = &'static str> {
    TABLES.into_iter().filter(|table| *table != DOCTOR)
}

/// A dataset.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The location as the user typed it.
    pub name: String,
    /// The URL of its directory, which ends with a slash.
    pub url: Url,
    /// The file system or object store that contains its files.
    pub store: Arc<dyn ObjectStore>,
}

impl Dataset {
    /// Opens a directory or a URL.
    ///
    /// # Errors
    /// When it is not a dataset, or the AWS_ variables of the environment do not lead to its store.
    pub fn open(location: &Path) -> Result<Dataset> {
        let name = location.display().to_string();
        if let Some(url) = store::url(location)? {
            let store = store::open(&url)?;
            return Ok(Dataset { name, url, store });
        }
        let absolute = fs::canonicalize(location).with_context(|| format!("failed to open dataset {name}"))?;
        if !absolute.is_dir() {
            bail!(
                "{name} is not a directory: a dataset is a directory made by `spawnscope export --format parquet -o DATASET RECORDING`"
            );
        }
        if let Some(table) = recording_tables().find(|table| !absolute.join(table).is_dir()) {
            bail!(
                "{name} is not a dataset: it has no directory `{table}`; add a recording with `spawnscope export --format parquet -o \
                 DATASET RECORDING`"
            );
        }
        let Ok(url) = Url::from_directory_path(&absolute) else {
            bail!("{name} has no absolute path");
        };
        let store = Arc::new(LocalFileSystem::new());
        Ok(Dataset { name, url, store })
    }

    /// Opens a dataset that files are copied to. If the directory does not exist, an empty dataset is created.
    ///
    /// # Errors
    /// As for `open`, or when the directory cannot be created.
    pub fn open_or_create(location: &Path) -> Result<Dataset> {
        if store::url(location)?.is_none() && !location.exists() {
            for table in recording_tables() {
                fs::create_dir_all(location.join(table))
                    .with_context(|| format!("failed to make the dataset {}", location.display()))?;
            }
        }
        Dataset::open(location)
    }

    /// Returns the URL of a table's directory.
    ///
    /// # Errors
    /// When the dataset's URL cannot have directories.
    pub fn table(&self, name: &str) -> Result<Url> {
        Ok(self.url.join(&format!("{name}/"))?)
    }

    /// Returns all complete files of a table, ordered by name and so by date. Incomplete files do not end in `.parquet`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn files(&self, table: &str) -> Result<Vec<ObjectMeta>> {
        let directory = store::path(&self.table(table)?)?;
        let listed = self.store.list(Some(&directory));
        let mut found: Vec<ObjectMeta> = listed
            .try_filter(|file| std::future::ready(file.location.extension() == Some("parquet")))
            .try_collect()
            .await
            .with_context(|| format!("failed to list table {table} of {}", self.name))?;
        found.sort_by(|one, other| one.location.cmp(&other.location));
        Ok(found)
    }
}
