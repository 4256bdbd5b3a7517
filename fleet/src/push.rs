//! `push`: copies the files of a dataset that another one lacks. A file name is never reused for other contents, so several machines may push
//! to the same store at once, and pushing may be repeated.

use std::collections::HashSet;

use anyhow::{Context, Result};
use datafusion::object_store::{ObjectMeta, ObjectStoreExt};
use object_store::buffered::BufWriter;
use object_store::path::Path;
use spawnscope_data::units;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Builder;

use crate::dataset::{Dataset, TABLES};
use crate::store;

/// Copies the missing files, and returns the message to print.
///
/// # Errors
/// When a file cannot be read or written. The files copied so far are complete; another push copies the rest.
pub fn push(from: &Dataset, to: &Dataset) -> Result<String> {
    let runtime = Builder::new_current_thread().enable_all().build().context("failed to start a runtime")?;
    let (mut copied, mut already_there) = (0, 0);
    // `runs` is the last table, so that a recording becomes part of the dataset only after all of its other tables.
    for table in TABLES {
        let (here, there) = (store::path(&from.url)?, store::path(&to.url)?);
        runtime.block_on(async {
            let known: HashSet<Path> = to.files(table).await?.into_iter().map(|file| file.location).collect();
            for file in from.files(table).await? {
                let target: Path = file
                    .location
                    .prefix_match(&here)
                    .map(|parts| there.parts().chain(parts).collect())
                    .with_context(|| format!("{} is not in {}", file.location, from.name))?;
                if known.contains(&target) {
                    already_there += 1;
                    continue;
                }
                let done = copy(from, &file, to, target).await;
                done.with_context(|| format!("failed to copy {} to {}", file.location, to.name))?;
                copied += 1;
            }
            anyhow::Ok(())
        })?;
    }
    let were = if already_there == 1 { "was" } else { "were" };
    Ok(match copied {
        0 => {
            let files = units::counted(already_there, "file", "files");
            format!("nothing to copy: {} already has the {files}\n", to.name)
        }
        _ => format!(
            "copied {} to {}; {} more {were} already there\n",
            units::counted(copied, "file", "files"),
            to.name,
            units::count(already_there)
        ),
    })
}

/// Copies a file. The target shows the copy only when it is complete.
async fn copy(from: &Dataset, file: &ObjectMeta, to: &Dataset, target: Path) -> Result<()> {
    let contents = from.store.get(&file.location).await?.bytes().await?;
    let mut out = BufWriter::new(to.store.clone(), target);
    let written = out.write_all(&contents).await;
    match written {
        Ok(()) => out.shutdown().await?,
        Err(error) => {
            // Stores keep the parts of an unfinished file, which costs money, so remove them. Only the first error is reported.
            let _ = out.abort().await;
            return Err(error.into());
        }
    }
    Ok(())
}
