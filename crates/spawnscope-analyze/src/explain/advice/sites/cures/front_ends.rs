//! Front ends that prepare a program at each launch and then run it: they build it, resolve its packages, or start a container. What they
//! prepare can be kept.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::sites::Site;
use crate::patterns::calls::Call;
use crate::patterns::subcommands::subcommand_of;

/// How to keep what a front end prepares.
#[derive(Clone, Copy)]
pub(super) struct FrontEnd {
    program: &'static str,
    /// Empty if any arguments match.
    subcommand: &'static str,
    /// The program that launches it, if only its launches count.
    parent: &'static str,
    /// What each launch repeats.
    pub(super) repeats: &'static str,
    pub(super) fix: &'static str,
    /// Whether the last process that it launches is the program, whose work stays.
    pub(super) keeps_last_child: bool,
}

/// Returns a front end that runs a program.
const fn runs(program: &'static str, subcommand: &'static str, repeats: &'static str, fix: &'static str) -> FrontEnd {
    FrontEnd { program, subcommand, parent: "", repeats, fix, keeps_last_child: true }
}

/// Returns a program that another one launches for each of its cases.
const fn cases(parent: &'static str, program: &'static str, repeats: &'static str, fix: &'static str) -> FrontEnd {
    FrontEnd { program, subcommand: "", parent, repeats, fix, keeps_last_child: false }
}

const BUILDS: &str = "checks and links the program again";
const RESOLVES: &str = "resolves the packages again";
const STARTS: &str = "starts a container again";
const CONFIGURES: &str = "builds and links a small project";
const RUNS_CASE: &str = "starts the test program again for one case";
const CHECKS: &str = "ask for several features in one check (check_source_compiles with all of them), or keep the results: cmake -C CACHE_FILE sets them";

const TABLE: [FrontEnd; 26] = [
    runs("bunx", "", RESOLVES, "bun add -d PACKAGE once, then node_modules/.bin/PROGRAM"),
    runs("cargo", "run", BUILDS, "cargo build once, then target/debug/PROGRAM (--release: target/release/PROGRAM)"),
    runs("deno", "run", "checks and loads the modules again", "deno compile -o PROGRAM FILE once, then ./PROGRAM"),
    runs("docker", "run", STARTS, "docker run -d once, then docker exec CONTAINER COMMAND, or one run with all inputs"),
    runs("dotnet", "run", BUILDS, "dotnet build once, then dotnet bin/.../PROGRAM.dll"),
    runs("go", "run", BUILDS, "go build -o PROGRAM PACKAGE once, then ./PROGRAM"),
    runs(
        "go",
        "test",
        BUILDS,
        "go test with all packages at once (./...), or go test -c once, then ./PACKAGE.test -test.run=NAME",
    ),
    runs("nix", "run", RESOLVES, "nix build once, then result/bin/PROGRAM"),
    runs("nix-shell", "", RESOLVES, "one nix-shell around the whole script"),
    runs("npm", "exec", RESOLVES, "npm install once, then node_modules/.bin/PROGRAM"),
    runs("npx", "", RESOLVES, "npm install -D PACKAGE once, then node_modules/.bin/PROGRAM"),
    runs("pipx", "run", RESOLVES, "pipx install PACKAGE once, then PROGRAM"),
    runs("pnpm", "dlx", RESOLVES, "pnpm add -D PACKAGE once, then node_modules/.bin/PROGRAM"),
    runs("pnpm", "exec", RESOLVES, "node_modules/.bin/PROGRAM"),
    runs("podman", "run", STARTS, "podman run -d once, then podman exec CONTAINER COMMAND, or one run with all inputs"),
    runs(
        "poetry",
        "run",
        RESOLVES,
        "the program below `poetry env info --path`, or one poetry run around the whole script",
    ),
    runs("runghc", "", BUILDS, "ghc -o PROGRAM FILE once, then ./PROGRAM"),
    runs("swift", "run", BUILDS, "swift build once, then .build/debug/PROGRAM"),
    runs("uv", "run", RESOLVES, "uv sync once, then .venv/bin/PROGRAM, or one uv run around the whole script"),
    runs("uvx", "", RESOLVES, "uv tool install PACKAGE once, then PROGRAM"),
    cases(
        "rustdoc",
        "rustc",
        "compiles and links one example",
        "edition 2024 compiles the examples of a crate as one program; mark others as `no_run` or `ignore`",
    ),
    cases(
        "ctest",
        "",
        RUNS_CASE,
        "one add_test that runs all cases of the program, instead of gtest_discover_tests or one add_test each; select single cases by hand",
    ),
    cases(
        "libtool",
        "",
        "compiles each file twice, once for the shared library",
        "configure --disable-static (or --disable-shared) compiles each file once",
    ),
    cases("cmake", "gmake", CONFIGURES, CHECKS),
    cases("cmake", "make", CONFIGURES, CHECKS),
    cases("cmake", "ninja", CONFIGURES, CHECKS),
];

impl FrontEnd {
    /// Whether it is about each program that its parent launches.
    pub(super) fn is_any_program(&self) -> bool {
        self.program.is_empty()
    }
}

/// Returns the front end that a site launches.
pub(super) fn of(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<&'static FrontEnd> {
    let exec = context.launch(site.launches[0]).execs.last()?;
    let call = Call::of(exec)?;
    let words = [call.arguments.first().copied(), subcommand_of(exec)];
    TABLE.iter().find(|front_end| {
        (front_end.is_any_program() || call.name == front_end.program.as_bytes())
            && (front_end.subcommand.is_empty() || words.contains(&Some(front_end.subcommand.as_bytes())))
            && (front_end.parent.is_empty() || site.parent == front_end.parent.as_bytes())
    })
}
