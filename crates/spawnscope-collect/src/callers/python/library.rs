//! Finds the library that contains a Python program's interpreter, as the program's loader does. If
//! the loader has chosen another library, the addresses do not match, and the lines of the
//! program's launches are unknown.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use spawnscope_data::event::Pid;
use spawnscope_system::arch::LIBRARY_DIRECTORIES;

/// The default directories of loaders: those of glibc on Debian and on other distributions, and
/// those of musl.
const DIRECTORIES: [&str; 7] =
    ["/usr/local/lib", LIBRARY_DIRECTORIES[0], LIBRARY_DIRECTORIES[1], "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Opens the library of this name that a program is linked with. `directories`: those that the
/// program itself names (RUNPATH, RPATH).
pub(super) fn open(name: &[u8], directories: &[&[u8]], program: &File, process: Option<Pid>) -> Option<File> {
    let root = process.map_or(PathBuf::from("/"), |pid| PathBuf::from(format!("/proc/{}/root", pid.0)));
    let path = match process {
        Some(pid) => std::fs::read_link(format!("/proc/{}/exe", pid.0)),
        None => std::fs::read_link(format!("/proc/self/fd/{}", program.as_raw_fd())),
    };
    let preferred = library_path(process);
    let preferred = preferred.split(|&byte| byte == b':').chain(directories.iter().copied());
    let directories = preferred.map(|directory| expand_origin(directory, path.as_deref().ok()));
    let directories = directories.chain(configured_directories(&root)).chain(DIRECTORIES.map(PathBuf::from));
    directories
        .filter(|directory| directory.is_absolute())
        .find_map(|directory| File::open(in_root(&root, &directory.join(OsStr::from_bytes(name)))).ok())
}

/// Returns the LD_LIBRARY_PATH of a process, or, without a process, of this one, which the command
/// will inherit.
fn library_path(process: Option<Pid>) -> Vec<u8> {
    const NAME: &str = "LD_LIBRARY_PATH";
    let Some(pid) = process else { return std::env::var_os(NAME).unwrap_or_default().into_encoded_bytes() };
    let environment = std::fs::read(format!("/proc/{}/environ", pid.0)).unwrap_or_default();
    let mut variables = environment.split(|&byte| byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(NAME.as_bytes())?.strip_prefix(b"="));
    value.unwrap_or_default().to_vec()
}

fn in_root(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn expand_origin(directory: &[u8], program: Option<&Path>) -> PathBuf {
    let words = [&b"$ORIGIN"[..], b"${ORIGIN}"];
    let rest = words.iter().find_map(|word| directory.strip_prefix(*word));
    match (rest, program.and_then(Path::parent)) {
        (Some(rest), Some(origin)) => origin.join(OsStr::from_bytes(rest.strip_prefix(b"/").unwrap_or(rest))),
        _ => PathBuf::from(OsStr::from_bytes(directory)),
    }
}

/// Returns the directories in the loader's configuration (/etc/ld.so.conf.d).
fn configured_directories(root: &Path) -> Vec<PathBuf> {
    let directory = in_root(root, Path::new("/etc/ld.so.conf.d"));
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    texts.flat_map(|text| text.lines().map(|line| PathBuf::from(line.trim())).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_origin_is_the_directory_of_the_program() {
        let program = Some(Path::new("/opt/python/bin/python3"));
        for word in ["$ORIGIN", "${ORIGIN}"] {
            let directory = format!("{word}/../lib");
            assert_eq!(expand_origin(directory.as_bytes(), program), Path::new("/opt/python/bin/../lib"));
        }
        assert_eq!(expand_origin(b"/opt/lib", program), Path::new("/opt/lib"));
        assert!(!expand_origin(b"$ORIGIN/lib", None).is_absolute(), "relative directories are not searched");
    }

    #[test]
    fn a_directory_that_the_program_names_precedes_those_of_the_system() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("libc.so.6"), "ours").unwrap();
        let program = File::open("/bin/true").unwrap();
        let named = [b"relative", directory.path().as_os_str().as_bytes()];
        for (directories, content) in [(&named[..], b"ours"), (&[], b"\x7fELF")] {
            let mut file = open(b"libc.so.6", directories, &program, None).unwrap();
            let mut head = [0; 4];
            std::io::Read::read_exact(&mut file, &mut head).unwrap();
            assert_eq!(head, *content);
        }
    }
}
