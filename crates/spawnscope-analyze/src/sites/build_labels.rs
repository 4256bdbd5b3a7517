//! Labels of launches: which part of a build or test suite asked for them. They are read from
//! recorded arguments, paths and working directories, from the few environment variables that are
//! recorded, and from the ninja edges. A launch without a label of its own inherits the label of
//! its parent.

use std::collections::HashMap;

use crate::model::launch::{Exec, Launch, base_name, is_version_of, path_below};
use crate::model::tree::Forest;
use crate::patterns::words::{Words, is_end_of};
use spawnscope_data::event::{Language, LaunchId};
use spawnscope_data::rows::Recording;

spawnscope_data::named_enum! {
    /// What the labels of launches name.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum BuildLabel {
        /// The make target whose recipe requested the launch (if known), the output of the ninja
        /// edge, or the output file of a compiler, linker or archiver.
        Target = "target",
        /// The crate that cargo builds or tests, or whose build script it runs.
        Crate = "crate",
        /// The directory that make or ninja works in. If it is below the working directory of the
        /// command, it is relative to that.
        Directory = "directory",
        /// The cargo package whose code is built or run, or the npm package whose script runs.
        Package = "package",
        /// The test that pytest or cargo-nextest runs.
        Test = "test",
        /// The CMake target.
        Cmake = "cmake",
    }
}

impl BuildLabel {
    /// Returns the label that the last program of a launch indicates. `command_cwd` is the working
    /// directory of the command.
    fn label_of_program(self, launch: &Launch<'_>, command_cwd: Option<&[u8]>) -> Option<Vec<u8>> {
        let exec = launch.execs.last()?;
        match self {
            BuildLabel::Target => target(exec).map(<[u8]>::to_vec),
            BuildLabel::Crate => crate_of(exec),
            BuildLabel::Directory => directory(exec).map(|directory| relative_to(command_cwd, directory)),
            BuildLabel::Package => package(exec),
            BuildLabel::Test => test(exec).map(<[u8]>::to_vec),
            BuildLabel::Cmake => cmake_target(exec).map(<[u8]>::to_vec),
        }
    }

    /// Returns the label of a launch that ninja made for an edge with these outputs.
    fn label_of_edge(self, outputs: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            BuildLabel::Target => outputs.first().map(|output| output.to_vec()),
            BuildLabel::Cmake => outputs.iter().find_map(|output| cmake_directory(output)).map(<[u8]>::to_vec),
            BuildLabel::Crate | BuildLabel::Directory | BuildLabel::Package | BuildLabel::Test => None,
        }
    }

    /// Whether the parent's label takes precedence over a launch's own. The output of a compiler
    /// driver is the object file, but the output of the compiler that it launches is a temporary
    /// file; a build script may compile crates as probes. But a make that make launches works in
    /// its own directory.
    fn prefers_parent(self) -> bool {
        match self {
            BuildLabel::Target | BuildLabel::Crate | BuildLabel::Cmake => true,
            // A test of one package may build another package, and a test may run a test suite.
            BuildLabel::Directory | BuildLabel::Package | BuildLabel::Test => false,
        }
    }
}

/// The labels of all launches of a recording.
#[derive(Clone, Debug)]
pub struct BuildLabels {
    values: Vec<Vec<u8>>,
    /// For each launch, the index of its label in `values`.
    value_indexes: Vec<Option<u32>>,
}

impl BuildLabels {
    /// Finds the label of every launch.
    #[must_use]
    pub fn find(forest: &Forest<'_>, label: BuildLabel) -> BuildLabels {
        let mut search = Search {
            forest,
            label,
            command_cwd: forest.command_directory(),
            edges: Edges::new(forest.recording()),
            edge_of: vec![None; forest.launches.len()],
        };
        let mut labels = BuildLabels { values: Vec::new(), value_indexes: vec![None; forest.launches.len()] };
        let mut indexes: HashMap<Vec<u8>, u32> = HashMap::new();
        for step in forest.walk_all() {
            let parent = forest.parent(step.index);
            let inherited = parent.and_then(|parent| labels.value_indexes[parent]);
            let own = search.own_label(step.index, parent, inherited.is_some());
            let own = own.map(|value| {
                *indexes.entry(value).or_insert_with_key(|value| {
                    labels.values.push(value.clone());
                    labels.values.len() as u32 - 1
                })
            });
            labels.value_indexes[step.index] = own.or(inherited);
        }
        labels
    }

    #[must_use]
    pub fn label_of(&self, launch: usize) -> Option<&[u8]> {
        let index = (*self.value_indexes.get(launch)?)?;
        self.values.get(index as usize).map(Vec::as_slice)
    }
}

/// Returns the make target whose recipe requested a launch.
fn make_target<'a>(forest: &Forest<'a>, launch: &Launch<'a>) -> Option<&'a [u8]> {
    let frame = forest.frames(launch.script_stack).next()?;
    frame.function.filter(|_| frame.language == Language::Make)
}

/// Maximum number of outputs of an edge that are used.
const MAX_OUTPUTS: usize = 64;

/// The outputs of each launch's ninja edge, as recorded.
struct Edges<'a> {
    by_launch: HashMap<LaunchId, Vec<&'a [u8]>>,
}

impl<'a> Edges<'a> {
    fn new(recording: &'a Recording) -> Edges<'a> {
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
    fn outputs(&self, launch: LaunchId) -> &[&'a [u8]] {
        self.by_launch.get(&launch).map_or(&[], Vec::as_slice)
    }

    /// Whether the output file of a compiler is an output of a launch's edge. The two paths may be
    /// relative to different directories.
    fn makes(&self, launch: LaunchId, file: &[u8]) -> bool {
        let file = file.strip_prefix(b"./").unwrap_or(file);
        let outputs = self.outputs(launch).iter();
        outputs.copied().any(|output| is_end_of(file, output) || is_end_of(output, file))
    }
}

/// The search for the labels of all launches, parents before their children.
struct Search<'f, 'a> {
    forest: &'f Forest<'a>,
    label: BuildLabel,
    /// The working directory of the command.
    command_cwd: Option<&'a [u8]>,
    edges: Edges<'a>,
    /// For each launch that belongs to a ninja edge, the launch that ninja made for the edge.
    edge_of: Vec<Option<LaunchId>>,
}

impl Search<'_, '_> {
    /// Returns the label of a launch, unless it inherits its parent's.
    fn own_label(&mut self, index: usize, parent: Option<usize>, parent_has_label: bool) -> Option<Vec<u8>> {
        let launch = &self.forest.launches[index];
        // An edge below another edge belongs to a nested ninja.
        if let Some(label) = self.label.label_of_edge(self.edges.outputs(launch.id)) {
            self.edge_of[index] = Some(launch.id);
            return Some(label);
        }
        if let Some(target) = make_target(self.forest, launch).filter(|_| self.label == BuildLabel::Target) {
            return Some(target.to_vec());
        }
        let edge = parent.and_then(|parent| self.edge_of[parent]);
        if parent_has_label && edge.is_none() && self.label.prefers_parent() {
            return None;
        }
        // An edge may run a whole build. The labels of that build's compilers are more precise than
        // the edge's. But a compiler that makes the output of the edge keeps ninja's name for it,
        // and so do the launches below that compiler.
        let own = self.label.label_of_program(launch, self.command_cwd);
        if own.is_none() {
            self.edge_of[index] = edge;
        }
        own.filter(|own| edge.is_none_or(|edge| !self.edges.makes(edge, own)))
    }
}

/// Compilers and linkers that name their output with `-o`.
const COMPILERS: Words = Words(
    "as c++ cc cc1 cc1plus clang clang++ collect2 g++ gcc gfortran gold icx ld ld.bfd ld.gold ld.lld mold nvcc rustc tcc",
);
/// Archivers, whose second argument is the archive.
const ARCHIVERS: Words = Words("ar gcc-ar llvm-ar");
const BUILD_TOOLS: Words = Words("make gmake ninja samu");

/// Whether a file is one of these programs. Its name may include a version or a target: `gcc-12`,
/// `x86_64-linux-gnu-gcc`.
fn is_one_of(path: &[u8], programs: Words) -> bool {
    let name = base_name(path);
    // The program's name may start after any `-`.
    let mut starts = (0..name.len()).filter(|start| *start == 0 || name[start - 1] == b'-');
    starts.any(|start| programs.iter().any(|program| is_version_of(&name[start..], program.as_bytes())))
}

fn target<'a>(exec: &Exec<'a>) -> Option<&'a [u8]> {
    let file = match exec.path() {
        path if is_one_of(path, ARCHIVERS) => exec.arguments().nth(2),
        path if is_one_of(path, COMPILERS) => argument_after(exec, b"-o"),
        _ => None,
    };
    file.filter(|file| !file.is_empty())
}

/// Returns the value of an option given as `--x y` or `--x=y`.
fn option<'a>(exec: &Exec<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let mut arguments = exec.arguments().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix(name) {
            Some([]) => return arguments.next(),
            Some([b'=', value @ ..]) => return Some(value),
            _ => {}
        }
    }
    None
}

/// Returns the crate's name and, in parentheses, what is built or run: a crate type, a test or a
/// build script.
fn crate_of(exec: &Exec<'_>) -> Option<Vec<u8>> {
    let (name, kind) = crate_and_kind(exec)?;
    Some([name, b" (", kind, b")"].concat())
}

fn crate_and_kind<'a>(exec: &Exec<'a>) -> Option<(&'a [u8], &'a [u8])> {
    if !is_one_of(exec.path(), Words("rustc")) {
        return crate_of_built_program(exec.path());
    }
    let name = option(exec, b"--crate-name")?;
    if name == b"build_script_build" {
        // All build scripts have this crate name, but the output directory names the package:
        // target/debug/build/NAME-HASH.
        let output = option(exec, b"--out-dir")?;
        return Some((without_hash(base_name(output))?, b"build script"));
    }
    let is_test = exec.arguments().any(|argument| argument == b"--test");
    let kind = if is_test { b"test".as_slice() } else { option(exec, b"--crate-type")? };
    Some((name, kind))
}

/// Returns the crate of a program that cargo has built: `build/NAME-HASH/build-script-build`, or
/// `deps/NAME-HASH` for a test.
fn crate_of_built_program(path: &[u8]) -> Option<(&[u8], &'static [u8])> {
    let mut parts = path.rsplit(|byte| *byte == b'/');
    match (parts.next()?, parts.next()?, parts.next()) {
        (b"build-script-build", directory, Some(b"build")) => Some((without_hash(directory)?, b"build script")),
        (program, b"deps", _) => Some((without_hash(program)?, b"test")),
        _ => None,
    }
}

/// Removes the hash that cargo appends to a name: `-` and 16 hexadecimal digits.
fn without_hash(name: &[u8]) -> Option<&[u8]> {
    let (name, hash) = name.split_at_checked(name.len().checked_sub(17)?)?;
    let is_hash = hash[0] == b'-' && hash[1..].iter().all(u8::is_ascii_hexdigit);
    (is_hash && !name.is_empty()).then_some(name)
}

/// Makes a directory relative to the working directory of the command if it is below that, because
/// checkouts have different paths on different machines.
fn relative_to(command_cwd: Option<&[u8]>, directory: Vec<u8>) -> Vec<u8> {
    match path_below(command_cwd, &directory) {
        Some(below) => below.to_vec(),
        None if command_cwd == Some(&directory) => b".".to_vec(),
        None => directory,
    }
}

/// Returns the directory that make or ninja works in, including the effect of its `-C` options.
fn directory(exec: &Exec<'_>) -> Option<Vec<u8>> {
    if !is_one_of(exec.path(), BUILD_TOOLS) {
        return None;
    }
    let mut directory = exec.cwd()?.to_vec();
    let mut arguments = exec.arguments().skip(1);
    while let Some(argument) = arguments.next() {
        let change = match argument {
            b"-C" | b"--directory" => arguments.next(),
            _ => argument.strip_prefix(b"-C").or(argument.strip_prefix(b"--directory=")),
        };
        match change {
            Some(absolute @ [b'/', ..]) => directory = absolute.to_vec(),
            Some(relative) if relative != b"." => directory = [&directory, b"/".as_slice(), relative].concat(),
            _ => {}
        }
    }
    Some(directory)
}

/// Returns cargo's package, or npm's package and, in parentheses, which of its scripts runs.
fn package(exec: &Exec<'_>) -> Option<Vec<u8>> {
    if let Some(name) = exec.variable(b"CARGO_PKG_NAME") {
        return Some(name.to_vec());
    }
    let name = exec.variable(b"npm_package_name")?;
    Some(match exec.variable(b"npm_lifecycle_event") {
        Some(script) => [name, b" (", script, b")"].concat(),
        None => name.to_vec(),
    })
}

/// Returns the test that launched a program, or the test that a cargo-nextest process runs.
fn test<'a>(exec: &Exec<'a>) -> Option<&'a [u8]> {
    if let Some(pytest) = exec.variable(b"PYTEST_CURRENT_TEST") {
        return Some(without_phase(pytest));
    }
    crate_of_built_program(exec.path()).filter(|(_, kind)| *kind == b"test")?;
    option(exec, b"--exact").filter(|name| !name.starts_with(b"-"))
}

/// Removes the phase that pytest appends to the name of a test: `a.py::test_x (setup)`.
fn without_phase(test: &[u8]) -> &[u8] {
    let phases: [&[u8]; 3] = [b" (setup)", b" (call)", b" (teardown)"];
    phases.iter().find_map(|phase| test.strip_suffix(*phase)).unwrap_or(test)
}

/// Returns the CMake target. CMake's generators name it in the path of an object,
/// `CMakeFiles/NAME.dir/a.c.o`, and in the makefile that they pass to make, `-f
/// lib/CMakeFiles/NAME.dir/build.make`.
fn cmake_target<'a>(exec: &Exec<'a>) -> Option<&'a [u8]> {
    let is_make = is_one_of(exec.path(), BUILD_TOOLS);
    cmake_directory(if is_make { argument_after(exec, b"-f") } else { target(exec) }?)
}

/// Returns the CMake target whose directory a path contains.
fn cmake_directory(file: &[u8]) -> Option<&[u8]> {
    const CMAKE_DIRECTORY: &[u8] = b"CMakeFiles/";
    let at = file.windows(CMAKE_DIRECTORY.len()).position(|part| part == CMAKE_DIRECTORY)?;
    let below = &file[at + CMAKE_DIRECTORY.len()..];
    let name = below.split(|byte| *byte == b'/').next()?.strip_suffix(b".dir")?;
    let is_directory = below.len() > name.len() + b".dir".len();
    (!name.is_empty() && is_directory).then_some(name)
}

fn argument_after<'a>(exec: &Exec<'a>, option: &[u8]) -> Option<&'a [u8]> {
    exec.arguments().skip(1).skip_while(|argument| *argument != option).nth(1)
}
