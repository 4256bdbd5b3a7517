//! The control groups of a process, in cgroup v1 and v2. In a container, /proc may show the host's
//! names of the groups, whose directories do not exist in the container. Callers skip missing
//! directories. The root directory always exists and contains the container's own limits.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the directories of a process's groups for a controller, and of all ancestors of these
/// groups. `process` is a pid or `self`.
pub fn directories(root: &Path, process: &str, controller: &str) -> Vec<PathBuf> {
    let text = fs::read_to_string(root.join("proc").join(process).join("cgroup")).unwrap_or_default();
    let mut directories = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        let paths: Vec<PathBuf> = match controllers {
            "" => vec!["sys/fs/cgroup".into(), "sys/fs/cgroup/unified".into()],
            names if names.split(',').any(|name| name == controller) => {
                vec![Path::new("sys/fs/cgroup").join(controller)]
            }
            _ => Vec::new(),
        };
        for above in Path::new(group.trim_start_matches('/')).ancestors() {
            directories.extend(paths.iter().map(|path| root.join(path).join(above)));
        }
    }
    directories
}
