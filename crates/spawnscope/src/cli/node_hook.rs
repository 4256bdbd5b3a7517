//! The hook of `record --node-lines`: a file that each Node.js process below the command loads, and
//! the environment variable that makes Node.js load it.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

const HOOK: &str = include_str!("node_hook.js");
const VARIABLE: &str = "NODE_OPTIONS";

/// The file of the hook. It is removed with its directory when this is dropped.
#[derive(Debug)]
pub struct NodeHook {
    directory: TempDir,
    file: PathBuf,
}

impl NodeHook {
    /// Writes the file. The command may run as another user, who must be able to read it.
    pub fn create() -> Result<NodeHook> {
        NodeHook::write().context("failed to write the file that Node.js loads for --node-lines")
    }

    fn write() -> io::Result<NodeHook> {
        let directory = tempfile::Builder::new().prefix("spawnscope-node-").tempdir()?;
        let file = directory.path().join("hook.js");
        fs::write(&file, HOOK)?;
        fs::set_permissions(&file, Permissions::from_mode(0o644))?;
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
        Ok(NodeHook { directory, file })
    }

    /// Returns the variable to set for the command: its inherited value, followed by the option
    /// that loads the hook.
    pub fn variable(&self) -> (OsString, OsString) {
        let mut options = std::env::var_os(VARIABLE).unwrap_or_default();
        if !options.is_empty() {
            options.push(" ");
        }
        options.push("--require=");
        options.push(quote(&self.file));
        (VARIABLE.into(), options)
    }

    /// Keeps the file. Call this if processes of the command are still running: Node.js exits if it
    /// cannot load the file.
    pub fn keep(self) {
        let _: PathBuf = self.directory.keep();
    }
}

fn quote(path: &std::path::Path) -> OsString {
    let mut text = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(b'"');
    std::os::unix::ffi::OsStringExt::from_vec(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_quotes_and_spaces_is_one_word() {
        assert_eq!(quote("/a b/\"c\\d".as_ref()), OsString::from("\"/a b/\\\"c\\\\d\""));
    }

    #[test]
    fn the_file_is_readable_by_all_and_removed_with_its_directory() {
        let hook = NodeHook::create().unwrap();
        let file = hook.file.clone();
        for (path, mode) in [(&*file, 0o644), (hook.directory.path(), 0o755)] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
        }
        assert!(hook.variable().1.to_string_lossy().ends_with("/hook.js\""));
        drop(hook);
        assert!(!file.exists());
    }
}
