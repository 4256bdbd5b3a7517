//! Checks which files `make install` creates, and that `make uninstall` removes exactly those.
//! Needs make; installs into temporary directories.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: [&str; 8] = [
    "include/popen_noshell.h",
    "include/vspawn.h",
    "lib/libvspawn.a",
    "lib/libvspawn.so",
    "lib/libvspawn.so.0",
    concat!("lib/libvspawn.so.", env!("CARGO_PKG_VERSION")),
    "lib/pkgconfig/vspawn.pc",
    "share/man/man3/vspawn.3",
];
const COMPLETIONS: [&str; 3] = [
    "share/bash-completion/completions/spawnscope",
    "share/fish/vendor_completions.d/spawnscope.fish",
    "share/zsh/site-functions/_spawnscope",
];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the relative paths of all files below a directory.
pub fn files(directory: &Path) -> BTreeSet<PathBuf> {
    fn collect(directory: &Path, found: &mut BTreeSet<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                collect(&entry.path(), found);
            } else {
                found.insert(entry.path());
            }
        }
    }
    let mut found = BTreeSet::new();
    collect(directory, &mut found);
    found.into_iter().map(|path| path.strip_prefix(directory).unwrap().to_owned()).collect()
}

/// A directory to install into, and placeholders for the built libraries, whose contents do not
/// matter here.
pub struct Installation {
    directory: tempfile::TempDir,
}

impl Installation {
    pub fn new() -> Installation {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("built")).unwrap();
        for name in ["libvspawn.so", "libvspawn.a", "libvspawn_preload.so"] {
            fs::write(directory.path().join("built").join(name), name).unwrap();
        }
        Installation { directory }
    }

    fn installed(&self) -> PathBuf {
        self.directory.path().join("destination/opt/prefix")
    }

    /// Runs make. The settings replace those of this installation.
    pub fn make(&self, targets: &[&str], settings: &[&str]) {
        let mut make = Command::new("make");
        make.args(targets)
            .arg(concat!("BINARY=", env!("CARGO_BIN_EXE_spawnscope")))
            .arg(format!("LIBRARY_FROM={}", self.directory.path().join("built").display()))
            .arg(format!("PRELOAD_FROM={}", self.directory.path().join("built").display()))
            .arg(format!("DESTDIR={}", self.directory.path().join("destination").display()))
            .arg("PREFIX=/opt/prefix")
            .args(settings)
            .current_dir(root())
            .env_remove("MAKEFLAGS");
        let output = make.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{make:?}: {errors}");
    }
}

/// Returns the files that `make install` should create.
fn expected_files() -> BTreeSet<PathBuf> {
    installed_files().into_iter().chain(LIBRARY.map(PathBuf::from)).collect()
}

/// Returns the files of the profiler alone.
pub fn installed_files() -> BTreeSet<PathBuf> {
    let manuals = fs::read_dir(root().join("docs/man"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| Path::new(name).extension().is_some_and(|section| section == "1"))
        .map(|name| Path::new("share/man/man1").join(name));
    let others = ["bin/spawnscope", "lib/spawnscope/libvspawn_preload.so", "share/doc/spawnscope/examples/unpack.sh"];
    let others = others.iter().chain(&COMPLETIONS);
    let all: BTreeSet<_> = manuals.chain(others.map(PathBuf::from)).collect();
    assert!(all.contains(Path::new("share/man/man1/spawnscope-record.1")));
    all
}

#[test]
fn install_creates_the_expected_files_and_uninstall_removes_only_those() {
    let installation = Installation::new();
    installation.make(&["install"], &[]);
    let installed = installation.installed();
    assert_eq!(files(&installed), expected_files());
    for name in COMPLETIONS {
        assert!(fs::read_to_string(installed.join(name)).unwrap().contains("whatif"), "{name}");
    }
    let foreign_page = installed.join("share/man/man1/another.1");
    fs::write(&foreign_page, "of another package").unwrap();
    installation.make(&["uninstall"], &[]);
    assert_eq!(files(&installed), BTreeSet::from(["share/man/man1/another.1".into()]));
    // A second uninstall finds nothing to remove.
    installation.make(&["uninstall"], &[]);
    assert!(foreign_page.exists());
}

#[test]
fn a_library_of_another_version_is_removed_too() {
    let installation = Installation::new();
    installation.make(&["install-library"], &["VERSION=0.1.7"]);
    assert!(installation.installed().join("lib/libvspawn.so.0.1.7").exists());
    installation.make(&["uninstall"], &[]);
    assert_eq!(files(&installation.installed()), BTreeSet::new());
}

#[test]
fn the_library_can_be_installed_in_the_directory_of_an_architecture() {
    let installation = Installation::new();
    let settings = ["LIB_DIR=lib/of-an-architecture", "PC_PREFIX=/usr"];
    installation.make(&["install-library"], &settings);
    let directory = installation.installed().join("lib/of-an-architecture");
    let pkg_config = fs::read_to_string(directory.join("pkgconfig/vspawn.pc")).unwrap();
    assert!(pkg_config.contains("prefix=/usr\nlibdir=${prefix}/lib/of-an-architecture\n"));
    installation.make(&["uninstall-library"], &settings);
    assert_eq!(files(&installation.installed()), BTreeSet::new());
}

#[test]
fn documents_and_packages_name_the_current_version() {
    let version = env!("CARGO_PKG_VERSION");
    let named = [
        ("CHANGELOG.md", format!("\n## {version}")),
        ("docs/guide/getting-started.md", format!("spawnscope-{version}-x86_64-linux.tar.gz")),
        ("docs/man/vspawn.3", format!("\"vspawn {version}\"")),
        ("crates/vspawn-capi/Cargo.toml", format!("libvspawn0 (= {version}-1)")),
        ("crates/vspawn-capi/Cargo.toml", format!("libvspawn = \"= {version}\"")),
    ];
    for (name, text) in named {
        assert!(fs::read_to_string(root().join(name)).unwrap().contains(&text), "{name}: {text}");
    }
}
