//! Adds the findings of `doctor` on this machine to a dataset, in a directory or in an object
//! store.

use std::path::Path;

use anyhow::{Result, bail};

use super::dataset::{DatasetFiles, check_root};
use super::fleet;
use super::output_file::PRIVATE;
use super::recordings::unix_ns_now;
use crate::doctor::Diagnosis;
use crate::present::dataset::{Dataset, Examination};
use crate::present::doctor;

/// Checks the dataset before the examination, which takes seconds.
pub fn check(root: &Path) -> Result<()> {
    if fleet::is_store(root) {
        return Ok(());
    }
    if root == Path::new("-") {
        bail!("a dataset is a directory, or s3://BUCKET/PREFIX: name it with -o");
    }
    check_root(root)
}

/// Adds the findings under the name `host`, or else under the machine's own name.
pub fn add(root: &Path, diagnosis: &Diagnosis, host: Option<&str>) -> Result<()> {
    let machine = rustix::system::uname();
    let own_name = machine.nodename().to_string_lossy();
    let host = host.unwrap_or(&own_name);
    let examined_unix_ns = unix_ns_now()?;
    let files = DatasetFiles::for_examination(root, examined_unix_ns, &format!("{host}\n{}", doctor::json(diagnosis)))?;
    let examination =
        Examination { id: files.id(), examined_unix_ns, host, kernel: &machine.release().to_string_lossy(), diagnosis };
    files.write(&Dataset::of_examination(&examination), PRIVATE)
}
