//! The file systems that one stands on and makes temporary files on, as places to execute programs from.

use std::path::PathBuf;

use super::Check;
use crate::doctor::mounts::{self, Mount};
use crate::doctor::{Examination, Finding, Findings};

pub(super) const CHECK: Check = Check {
    id: "file-systems",
    looks_at: "file systems of the working directory and of TMPDIR",
    run,
};

/// Layers of an overlay that are searched one after the other.
const MANY_LAYERS: usize = 40;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let mounts = mounts::all(machine);
    if mounts.is_empty() {
        findings.unseen("the table of mounts");
        return;
    }
    let places = [
        ("the working directory", machine.directory().to_owned()),
        ("the directory for temporary files", machine.temporary_directory()),
    ];
    for (what, place) in places {
        let place = PathBuf::from("/").join(place);
        if let Some(mount) = mounts::of(&mounts, &place) {
            look(what, &place.display().to_string(), mount, findings);
        }
    }
}

fn look(what: &str, place: &str, mount: &Mount, findings: &mut Findings) {
    let where_it_is = format!("{place} is on {} ({})", mount.point.display(), mount.kind);
    if let Some(remote) = mount.remote() {
        findings.add(
            Finding::problem(format!("{what} is on {remote}"))
                .evidence(&where_it_is)
                .evidence("execs, opens and look-ups there may each ask another machine or process")
                .fix("build and run on a local disk, and copy what is to be kept")
                .fix_cost("copies, and room for them"),
        );
    }
    if mount.has_option("noexec") && what.contains("temporary") {
        findings.add(
            Finding::note(format!("{what} refuses to execute programs"))
                .evidence(format!("{where_it_is} with the option noexec"))
                .evidence("installers and build tools that try programs there fail, or fall back to something slower")
                .fix("let TMPDIR name a directory of your own for such a tool, rather than change the mount")
                .fix_cost("none; whoever mounted it so had a reason"),
        );
    }
    let layers = layers(mount);
    if mount.kind == "overlay" && layers >= MANY_LAYERS {
        findings.add(
            Finding::note(format!("{what} is on an overlay of {layers} layers"))
                .evidence(format!(
                    "{where_it_is}; a name that is in none is looked up in all of them, until the kernel remembers"
                ))
                .fix("build the image in fewer layers, or work in a volume")
                .fix_cost("layers are no longer shared between images"),
        );
    }
}

fn layers(mount: &Mount) -> usize {
    let lower = mount
        .options
        .split(',')
        .find_map(|option| option.strip_prefix("lowerdir="));
    lower.map_or(0, |layers| layers.split(':').filter(|layer| !layer.is_empty()).count())
}
