//! State that a spawn must preserve in the calling process: open files, signals, the dumpable flag,
//! no remaining child.

use std::collections::BTreeMap;

use super::kernel;

/// Above all descriptor numbers of these tests.
const DESCRIPTOR_LIMIT: i32 = 5_120;

#[derive(Debug, PartialEq, Eq)]
pub struct State {
    pub files: BTreeMap<i32, String>,
    /// SigBlk, SigIgn, SigCgt of this thread.
    signals: Vec<u64>,
    dumpable: i32,
    has_children: bool,
}

impl State {
    pub fn now() -> State {
        State {
            files: open_files(),
            signals: ["SigBlk", "SigIgn", "SigCgt"].map(signals).to_vec(),
            dumpable: kernel::dumpable(),
            has_children: kernel::has_children(),
        }
    }
}

/// Returns this process's descriptors and their targets.
pub fn open_files() -> BTreeMap<i32, String> {
    // Tries each number instead of listing the directory, because a filter may refuse the listing.
    let open = (0..DESCRIPTOR_LIMIT).filter(|fd| kernel::is_open(*fd));
    open.filter_map(|fd| {
        let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
        Some((fd, path.display().to_string()))
    })
    .collect()
}

/// Returns a set of signals of this thread. The two that libc reserves are removed: libc installs
/// their handlers with the first thread or cancellation.
fn signals(name: &str) -> u64 {
    const LIBCS_OWN: u64 = 0b11 << 31;
    u64::from_str_radix(&status_field(name), 16).unwrap() & !LIBCS_OWN
}

/// Returns a field of this thread's `status` file in `/proc`.
pub fn status_field(name: &str) -> String {
    field(&std::fs::read_to_string("/proc/thread-self/status").unwrap(), name)
}

/// Returns the value of a field in the text of a `status` file.
pub fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("the field is there").trim().to_owned()
}

/// Returns the number of mappings of this process, to detect leaked ones.
pub fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}
