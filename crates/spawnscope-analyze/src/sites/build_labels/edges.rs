//! The ninja edges that launches were made for, as recorded.

use std::collections::HashMap;

use spawnscope_data::event::LaunchId;
use spawnscope_data::rows::Recording;

/// Maximum number of outputs of an edge that are used.
const MAX_OUTPUTS: usize = 64;

/// The outputs of each launch's edge.
pub(super) struct Edges<'a> {
    by_launch: HashMap<LaunchId, Vec<&'a [u8]>>,
}

impl<'a> Edges<'a> {
    pub(super) fn new(recording: &'a Recording) -> Edges<'a> {
        let mut by_launch: HashMap<LaunchId, Vec<&[u8]>> = HashMap::new();
        for edge in &recording.edges {
            let outputs = by_launch.entry(edge.launch).or_default();
            if outputs.len() < MAX_OUTPUTS {
                outputs.push(recording.texts.get(edge.output));
            }
        }
        Edges { by_launch }
    }

    /// Returns the outputs of a launch's edge. Empty if the launch was not made for an edge.
    pub(super) fn outputs(&self, launch: LaunchId) -> &[&'a [u8]] {
        self.by_launch.get(&launch).map_or(&[], Vec::as_slice)
    }

    /// Whether the output file of a compiler is an output of a launch's edge. The two paths may be
    /// relative to different directories.
    pub(super) fn makes(&self, launch: LaunchId, file: &[u8]) -> bool {
        let file = file.strip_prefix(b"./").unwrap_or(file);
        let outputs = self.outputs(launch).iter();
        outputs.copied().any(|output| is_end_of(file, output) || is_end_of(output, file))
    }
}

/// Whether a path ends with all components of another path.
fn is_end_of(end: &[u8], path: &[u8]) -> bool {
    let before = path.strip_suffix(end);
    before.is_some_and(|before| before.is_empty() || before.ends_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_with_whole_components() {
        assert!(is_end_of(b"a.o", b"a.o") && is_end_of(b"a.o", b"x/a.o") && is_end_of(b"x/a.o", b"/b/x/a.o"));
        assert!(!is_end_of(b"a.o", b"aa.o") && !is_end_of(b"x/a.o", b"a.o") && !is_end_of(b"a.o", b"a.o/b"));
    }
}
