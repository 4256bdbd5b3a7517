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

/// The tables of a dataset. The row in `runs` makes a recording part of the dataset, so that table is the last to be written.
pub const TABLES: [&str; 7] = ["launches", "execs", "callers", "waits", "advice", DOCTOR, "runs"];
/// The table that recordings have no rows in: it is there once `spawnscope doctor -o DATASET` has added what it found on a machine.
pub const DOCTOR: &str = "doctor";

/// The tables that every dataset has.
fn of_recordings() -> impl Iterator<Item = &'static str> {
    TABLES.into_iter().filter(|table| *table != DOCTOR)
}

/// A dataset.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// As the user names it.
    pub name: String,
    /// The URL of its directory, which ends with a slash.
    pub url: Url,
    /// Where its files are.
    pub store: Arc<dyn ObjectStore>,
}

impl Dataset {
    /// Opens a directory or an URL.
    ///
    /// # Errors
    /// When it is no dataset, or its store cannot be reached as the environment says.
    pub fn open(location: &Path) -> Result<Dataset> {
        let name = location.display().to_string();
        if let Some(url) = store::url(location)? {
            let store = store::open(&url)?;
            return Ok(Dataset { name, url, store });
        }
        let absolute = fs::canonicalize(location).with_context(|| format!("failed to open dataset {name}"))?;
        if !absolute.is_dir() {
            bail!(
                "{name} is no directory: a dataset is one (`spawnscope export --format parquet -o DATASET RECORDING`)"
            );
        }
        if let Some(table) = of_recordings().find(|table| !absolute.join(table).is_dir()) {
            bail!(
                "{name} is no dataset: it has no directory `{table}`; add a recording with `spawnscope export --format parquet -o DATASET RECORDING`"
            );
        }
        let Ok(url) = Url::from_directory_path(&absolute) else {
            bail!("{name} has no absolute path");
        };
        let store = Arc::new(LocalFileSystem::new());
        Ok(Dataset { name, url, store })
    }

    /// Opens what files are copied to. A directory that is missing becomes an empty dataset.
    ///
    /// # Errors
    /// As for `open`, or when the directory cannot be made.
    pub fn open_or_create(location: &Path) -> Result<Dataset> {
        if store::url(location)?.is_none() && !location.exists() {
            for table in of_recordings() {
                fs::create_dir_all(location.join(table))
                    .with_context(|| format!("failed to make the dataset {}", location.display()))?;
            }
        }
        Dataset::open(location)
    }

    /// The URL of a table's directory.
    ///
    /// # Errors
    /// When the dataset's URL cannot have directories.
    pub fn table(&self, name: &str) -> Result<Url> {
        Ok(self.url.join(&format!("{name}/"))?)
    }

    /// All complete files of a table, in the order of their names, so by date. Those of writers that have not finished have another ending.
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
