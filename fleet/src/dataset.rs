//! Finds the files of a dataset: `TABLE/date=YYYY-MM-DD/job=JOB/RUN.parquet`, as `spawnscope export --format parquet` writes them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The tables of a dataset.
pub const TABLES: [&str; 6] = ["runs", "launches", "execs", "callers", "waits", "advice"];

/// A dataset in a folder.
#[derive(Debug)]
pub struct Dataset {
    folder: PathBuf,
}

impl Dataset {
    /// Opens a folder.
    ///
    /// # Errors
    /// When it is no dataset, or one without a recording.
    pub fn open(folder: &Path) -> Result<Dataset> {
        let absolute =
            fs::canonicalize(folder).with_context(|| format!("failed to open dataset {}", folder.display()))?;
        if !absolute.is_dir() {
            bail!(
                "{} is no folder: a dataset is one (`spawnscope export --format parquet -o DATASET RECORDING`)",
                folder.display()
            );
        }
        for table in TABLES {
            if !absolute.join(table).is_dir() {
                bail!(
                    "{} is no dataset: it has no folder `{table}`; add a recording with `spawnscope export --format parquet -o DATASET RECORDING`",
                    folder.display()
                );
            }
        }
        Ok(Dataset { folder: absolute })
    }

    /// The folder of a table.
    #[must_use]
    pub fn table(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// All complete files of a table, in the order of their names, so by date.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn files(&self, table: &str) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        collect(&self.table(table), &mut found)?;
        found.sort();
        Ok(found)
    }
}

/// Adds the files below a folder. Names that begin with a dot are of writers that have not finished.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("failed to read {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("failed to read {}", folder.display()))?;
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            found.push(path);
        }
    }
    Ok(())
}
