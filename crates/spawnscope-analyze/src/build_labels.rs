//! Labels of launches: which part of a build or of a test suite asked for them. They are read from recorded arguments, paths and working directories, from
//! the few variables that are recorded, and from the ninja edges. A launch without a label of its own has that of the launch that asked for it.

mod edges;

use std::collections::HashMap;

use crate::launch::{Exec, Launch, base_name, is_version_of};
use crate::tree::Forest;
use edges::Edges;
use spawnscope_data::event::{Language, LaunchId};

/// What a label says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BuildLabel {
    /// Make's target where its call site is known, the output of the ninja edge, or the file that a compiler, linker or archiver was asked to make.
    Target,
    /// The crate that cargo builds, runs the build script of, or tests.
    Crate,
    /// The directory that make or ninja works in, below that of the command.
    Directory,
    /// The package that cargo or npm builds or runs something of.
    Package,
    /// The test that pytest or cargo-nextest runs.
    Test,
    /// CMake's target.
    Cmake,
}

impl BuildLabel {
    /// All labels.
    pub const ALL: [BuildLabel; 6] = [
        BuildLabel::Target,
        BuildLabel::Crate,
        BuildLabel::Directory,
        BuildLabel::Package,
        BuildLabel::Test,
        BuildLabel::Cmake,
    ];

    /// Its name in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BuildLabel::Target => "target",
            BuildLabel::Crate => "crate",
            BuildLabel::Directory => "directory",
            BuildLabel::Package => "package",
            BuildLabel::Test => "test",
            BuildLabel::Cmake => "cmake",
        }
    }

    /// Returns the label of a launch by itself. `top` is the directory of the command.
    fn of(self, launch: &Launch<'_>, top: Option<&[u8]>) -> Option<Vec<u8>> {
        let exec = launch.execs.last()?;
        match self {
            BuildLabel::Target => target(exec).map(<[u8]>::to_vec),
            BuildLabel::Crate => crate_of(exec),
            BuildLabel::Directory => directory(exec).map(|directory| below(top, directory)),
            BuildLabel::Package => package(exec),
            BuildLabel::Test => test(exec).map(<[u8]>::to_vec),
            BuildLabel::Cmake => cmake_target(exec).map(<[u8]>::to_vec),
        }
    }

    /// Returns the label of a launch that was made for a ninja edge.
    fn of_edge(self, outputs: &[&[u8]]) -> Option<Vec<u8>> {
        match self {
            BuildLabel::Target => outputs.first().map(|output| output.to_vec()),
            BuildLabel::Cmake => outputs
                .iter()
                .find_map(|output| cmake_directory(output))
                .map(<[u8]>::to_vec),
            BuildLabel::Crate | BuildLabel::Directory | BuildLabel::Package | BuildLabel::Test => None,
        }
    }

    /// Whether a launch keeps the label of its parent although it has one of its own. A compiler driver makes the object, and its compiler a
    /// temporary file; a build script may compile crates to find out what works. But a make below make works in its own directory.
    fn is_of_the_outermost(self) -> bool {
        match self {
            BuildLabel::Target | BuildLabel::Crate | BuildLabel::Cmake => true,
            // A test of a package builds another package, and a test may run a test suite.
            BuildLabel::Directory | BuildLabel::Package | BuildLabel::Test => false,
        }
    }
}

/// One label of each launch of a recording.
#[derive(Clone, Debug)]
pub struct BuildLabels {
    values: Vec<Vec<u8>>,
    /// By launch index: an index into `values`.
    of_launch: Vec<Option<u32>>,
}

impl BuildLabels {
    /// Finds the label of every launch.
    #[must_use]
    pub fn find(forest: &Forest<'_>, label: BuildLabel) -> BuildLabels {
        let command = forest.root.and_then(|root| forest.launches[root].execs.first());
        let mut search = Search {
            forest,
            label,
            top: command.and_then(Exec::cwd),
            edges: Edges::of(forest.recording()),
            edge_of: vec![None; forest.launches.len()],
        };
        let mut labels = BuildLabels {
            values: Vec::new(),
            of_launch: vec![None; forest.launches.len()],
        };
        let mut numbers: HashMap<Vec<u8>, u32> = HashMap::new();
        let tops = [forest.roots.as_slice(), &forest.orphans].concat();
        for step in forest.walk(&tops) {
            let parent = forest.parent(step.index);
            let inherited = parent.and_then(|parent| labels.of_launch[parent]);
            let own = search.own(step.index, parent, inherited.is_some());
            let number = own.map(|value| {
                *numbers.entry(value).or_insert_with_key(|value| {
                    labels.values.push(value.clone());
                    labels.values.len() as u32 - 1
                })
            });
            labels.of_launch[step.index] = number.or(inherited);
        }
        labels
    }

    /// Returns the label of the launch at an index.
    #[must_use]
    pub fn of(&self, launch: usize) -> Option<&[u8]> {
        let number = (*self.of_launch.get(launch)?)?;
        self.values.get(number as usize).map(Vec::as_slice)
    }
}

/// The target whose recipe requested a launch. A make below another one makes its own targets.
fn make_target<'a>(forest: &Forest<'a>, launch: &Launch<'a>) -> Option<&'a [u8]> {
    let frame = forest.frames(launch.script_stack).next()?;
    frame.function.filter(|_| frame.language == Language::Make)
}

/// The search for the labels of all launches, parents before their children.
struct Search<'f, 'a> {
    forest: &'f Forest<'a>,
    label: BuildLabel,
    /// The directory of the command.
    top: Option<&'a [u8]>,
    edges: Edges<'a>,
    /// By launch index: the launch whose edge its label is from.
    edge_of: Vec<Option<LaunchId>>,
}

impl Search<'_, '_> {
    /// Returns the label that a launch does not have from its parent.
    fn own(&mut self, index: usize, parent: Option<usize>, is_labelled: bool) -> Option<Vec<u8>> {
        let launch = &self.forest.launches[index];
        // An edge below an edge is of another ninja.
        if let Some(made) = self.label.of_edge(self.edges.outputs(launch.id)) {
            self.edge_of[index] = Some(launch.id);
            return Some(made);
        }
        if let Some(target) = make_target(self.forest, launch).filter(|_| self.label == BuildLabel::Target) {
            return Some(target.to_vec());
        }
        let edge = parent.and_then(|parent| self.edge_of[parent]);
        if is_labelled && edge.is_none() && self.label.is_of_the_outermost() {
            return None;
        }
        // An edge may run a whole build, of which compilers know more. If they make the edge's output, ninja's name for it is the better one.
        let own = self.label.of(launch, self.top);
        let own = own.filter(|own| edge.is_none_or(|edge| !self.edges.makes(edge, own)));
        if own.is_none() {
            self.edge_of[index] = edge;
        }
        own
    }
}

/// Compilers and linkers that name their output with `-o`.
const COMPILERS: [&[u8]; 21] = [
    b"as",
    b"c++",
    b"cc",
    b"cc1",
    b"cc1plus",
    b"clang",
    b"clang++",
    b"collect2",
    b"g++",
    b"gcc",
    b"gfortran",
    b"gold",
    b"icx",
    b"ld",
    b"ld.bfd",
    b"ld.gold",
    b"ld.lld",
    b"mold",
    b"nvcc",
    b"rustc",
    b"tcc",
];
/// Archivers, whose second argument is the archive.
const ARCHIVERS: [&[u8]; 3] = [b"ar", b"gcc-ar", b"llvm-ar"];
const MAKES: [&[u8]; 4] = [b"make", b"gmake", b"ninja", b"samu"];

/// Whether a file is one of these programs, perhaps of a version or for a target: `gcc-12`, `x86_64-linux-gnu-gcc`.
fn is_one_of(path: &[u8], programs: &[&[u8]]) -> bool {
    let name = base_name(path);
    let is = |name: &[u8]| programs.iter().any(|program| is_version_of(name, program));
    // Each part of the name may be the first of the program's.
    is(name) || (0..name.len()).any(|at| name[at] == b'-' && is(&name[at + 1..]))
}

fn target<'a>(exec: &Exec<'a>) -> Option<&'a [u8]> {
    let mut arguments = exec.arguments().skip(1);
    if is_one_of(exec.path(), &ARCHIVERS) {
        return arguments.nth(1).filter(|archive| !archive.is_empty());
    }
    if !is_one_of(exec.path(), &COMPILERS) {
        return None;
    }
    arguments.find(|argument| *argument == b"-o")?;
    arguments.next().filter(|file| !file.is_empty())
}

/// The value of an option given as `--x y` or `--x=y`.
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

/// The crate's name, and in parentheses what of it is built or run.
fn crate_of(exec: &Exec<'_>) -> Option<Vec<u8>> {
    let named = |name: &[u8], kind: &[u8]| [name, b" (", kind, b")"].concat();
    if !is_one_of(exec.path(), &[b"rustc"]) {
        return of_built_program(exec.path()).map(|(name, kind)| named(name, kind));
    }
    let name = option(exec, b"--crate-name")?;
    if name == b"build_script_build" {
        // Its own name says nothing, but its directory is that of the package: target/debug/build/NAME-HASH.
        let output = option(exec, b"--out-dir")?;
        return Some(named(without_hash(base_name(output))?, b"build script"));
    }
    let is_test = exec.arguments().any(|argument| argument == b"--test");
    let kind = if is_test {
        b"test".as_slice()
    } else {
        option(exec, b"--crate-type")?
    };
    Some(named(name, kind))
}

/// The crate of a program that cargo has built: `build/NAME-HASH/build-script-build`, `deps/NAME-HASH` of a test.
fn of_built_program(path: &[u8]) -> Option<(&[u8], &'static [u8])> {
    let mut parts = path.rsplit(|byte| *byte == b'/');
    match (parts.next()?, parts.next()?, parts.next()) {
        (b"build-script-build", directory, Some(b"build")) => Some((without_hash(directory)?, b"build script")),
        (program, b"deps", _) => Some((without_hash(program)?, b"test")),
        _ => None,
    }
}

/// Removes the hash that cargo puts after a name: `-` and 16 hexadecimal digits.
fn without_hash(name: &[u8]) -> Option<&[u8]> {
    let (name, hash) = name.split_at_checked(name.len().checked_sub(17)?)?;
    let is_hash = hash[0] == b'-' && hash[1..].iter().all(u8::is_ascii_hexdigit);
    (is_hash && !name.is_empty()).then_some(name)
}

/// Shortens a directory below `top`. Checkouts are in different places on different machines.
fn below(top: Option<&[u8]>, directory: Vec<u8>) -> Vec<u8> {
    match top.and_then(|top| directory.strip_prefix(top)) {
        Some([]) => b".".to_vec(),
        Some([b'/', rest @ ..]) => rest.to_vec(),
        _ => directory,
    }
}

/// The working directory of make or ninja, after their `-C`.
fn directory(exec: &Exec<'_>) -> Option<Vec<u8>> {
    if !is_one_of(exec.path(), &MAKES) {
        return None;
    }
    let mut directory = exec.cwd()?.to_vec();
    let mut arguments = exec.arguments().skip(1);
    while let Some(argument) = arguments.next() {
        let into = match argument {
            b"-C" | b"--directory" => arguments.next(),
            _ => argument.strip_prefix(b"-C").or(argument.strip_prefix(b"--directory=")),
        };
        match into {
            Some(absolute @ [b'/', ..]) => directory = absolute.to_vec(),
            Some(relative) if relative != b"." => directory = [&directory, b"/".as_slice(), relative].concat(),
            _ => {}
        }
    }
    Some(directory)
}

/// The package of cargo, or that of npm and in parentheses which of its scripts runs.
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

/// The test that asked for a program, or that a program of cargo-nextest is.
fn test<'a>(exec: &Exec<'a>) -> Option<&'a [u8]> {
    let pytest = exec.variable(b"PYTEST_CURRENT_TEST").map(without_phase);
    let exact = || {
        of_built_program(exec.path()).filter(|(_, kind)| *kind == b"test")?;
        option(exec, b"--exact").filter(|name| !name.starts_with(b"-"))
    };
    pytest.or_else(exact)
}

/// Removes the phase that pytest puts behind a test: `a.py::test_x (setup)`.
fn without_phase(test: &[u8]) -> &[u8] {
    let phases: [&[u8]; 3] = [b" (setup)", b" (call)", b" (teardown)"];
    phases
        .iter()
        .find_map(|phase| test.strip_suffix(*phase))
        .unwrap_or(test)
}

/// The target that CMake's generators name in the path of an object, `CMakeFiles/NAME.dir/a.c.o`, or that its makefiles hand to make,
/// `-f lib/CMakeFiles/NAME.dir/build.make`.
fn cmake_target<'a>(exec: &Exec<'a>) -> Option<&'a [u8]> {
    let is_make = is_one_of(exec.path(), &MAKES);
    cmake_directory(if is_make { makefile(exec) } else { target(exec) }?)
}

/// The target in a path below `CMakeFiles`.
fn cmake_directory(file: &[u8]) -> Option<&[u8]> {
    let directories = file.windows(CMAKE_DIRECTORY.len());
    let at = directories.enumerate().find(|(_, part)| *part == CMAKE_DIRECTORY)?.0;
    let below = &file[at + CMAKE_DIRECTORY.len()..];
    let name = below.split(|byte| *byte == b'/').next()?.strip_suffix(b".dir")?;
    let is_directory = below.len() > name.len() + b".dir".len();
    (!name.is_empty() && is_directory).then_some(name)
}

const CMAKE_DIRECTORY: &[u8] = b"CMakeFiles/";

/// The file behind `-f`.
fn makefile<'a>(exec: &Exec<'a>) -> Option<&'a [u8]> {
    let mut arguments = exec.arguments().skip(1);
    arguments.find(|argument| *argument == b"-f")?;
    arguments.next()
}
