//! The makefile lines and the targets of recipes that request launches: every form of a recipe,
//! each with its expected call site.

use std::collections::BTreeSet;

use crate::support::chains::{Shell, assert_chains, chain_of, labelled_chains, write_files};
use crate::support::prelude::*;

live_test! {
    #[needs(Make)]
    fn every_line_of_a_recipe_has_its_call_site = recipes(&make());
    fn a_recipe_that_is_one_script_has_its_first_line = one_script(&make());
    fn recursive_makes_and_included_files_have_their_own_lines = recursive_makes(&make());
    fn launches_while_make_reads_have_the_line_that_it_reads = launches_while_reading(&make());
    fn a_built_in_rule_is_in_no_file_but_has_its_target = built_in(&make());
    fn each_of_many_parallel_jobs_has_its_target = jobs(&make());
}

fn make() -> Shell {
    Shell::installed("make")
}

fn recipes(make: &Shell) {
    recipes_followed_by(make, "");
}

/// Tests the same in another mount namespace, where the makefile can be read only while make runs.
pub fn recipes_in_a_root(make: &Shell) {
    recipes_followed_by(make, "all: wait\nwait:\n\t@perl -e 'select undef, undef, undef, 0.7'\n");
}

fn recipes_followed_by(make: &Shell, more: &str) {
    let makefile = &(RECIPES.to_owned() + more);
    expect(make, &[("Makefile", makefile)], &[], &TRUTH);
    expect(make, &[("Makefile", makefile)], &["-j3"], &TRUTH);
    let named = TRUTH.map(|(label, call_site)| (label, call_site.replace("Makefile", "other.mk")));
    let named = named.each_ref().map(|(label, call_site)| (*label, call_site.as_str()));
    expect(make, &[("other.mk", makefile)], &["-f", "other.mk"], &named);
}

const RECIPES: &str = "\
all: rule simple long pattern.x cond canned last
rule: ; @t behind
	@t after_rule
simple:
	@t plain
	@@t silent
	-@t ignored
	+@@t always
	@t first; @t shell

# a comment \\
	  that is continued
	@t continued \\
	  'over lines'
	@t below
%.x:
	@t of_$@
ifdef NOT
not_there:
endif
cond:
	@t before
ifdef NOT
	@t not
	@t same
else
	@t taken
	@t same
endif
	@t behind_all
define sequence
@t one
@t two
endef
canned:
	$(sequence)
long: PRIVATE = of_a_variable
long:
	@t $(PRIVATE)
	@t $(foreach word,a \\
		b,joined)
last:
	exec @t last
";
const TRUTH: [(&str, &str); 18] = [
    ("behind", "Makefile:2 rule"),
    ("after_rule", "Makefile:3 rule"),
    ("plain", "Makefile:5 simple"),
    ("silent", "Makefile:6 simple"),
    ("ignored", "Makefile:7 simple"),
    ("always", "Makefile:8 simple"),
    ("over lines", "Makefile:13 simple"),
    ("below", "Makefile:15 simple"),
    ("of_pattern.x", "Makefile:17 pattern.x"),
    ("before", "Makefile:22 cond"),
    ("taken", "Makefile:27 cond"),
    // Two lines have this text.
    ("same", "Makefile:? cond"),
    ("behind_all", "Makefile:30 cond"),
    ("one", "Makefile:36 canned"),
    ("two", "Makefile:36 canned"),
    ("of_a_variable", "Makefile:39 long"),
    ("joined", "Makefile:40 long"),
    ("last", "Makefile:43 last"),
];

fn one_script(make: &Shell) {
    let makefile = ".ONESHELL:\nall:\n\t@ # start\n\t@t script\n\t@t end\n";
    let recorded = expect(make, &[("Makefile", makefile)], &[], &[]);
    let call_sites = recorded.iter().map(|(_, call_site)| call_site.as_str());
    let of_shells: Vec<&str> = call_sites.filter(|site| site.starts_with("Makefile")).collect();
    assert_eq!(of_shells, ["Makefile:3 all"], "{recorded:#?}");
}

fn recursive_makes(make: &Shell) {
    let files = [
        ("Makefile", "include parts/part.mk\n.DEFAULT_GOAL := all\nall: part\n\t$(MAKE) -C below\n\t@t top\n"),
        ("parts/part.mk", "part:\n\t@t included\n"),
        ("below/GNUmakefile", "all:\n\t@t under\n\t@$(MAKE) -f more.mk\n"),
        ("below/more.mk", "\nall:\n\t@t deep\n"),
    ];
    let truth = [
        ("included", "part.mk:2 part"),
        ("under", "GNUmakefile:2 all"),
        ("deep", "more.mk:3 all"),
        ("top", "Makefile:5 all"),
        ("more.mk", "GNUmakefile:3 all"),
    ];
    expect(make, &files, &[], &truth);
}

fn launches_while_reading(make: &Shell) {
    let makefile = "\
A := $(shell @t assigned)
B != @t operator
C = $(shell @t deferred)
D := $(C)
ifeq ($(shell @t condition),x)
endif
export E = $(shell @t exported)
define F
G := $(shell @t defined)
$(1):
	@t made
endef
$(eval $(call F,made))
all: made
	@t $(shell @t expanded)in_recipe
	@t $(C)referred
.DEFAULT_GOAL := all
";
    let truth = [
        ("assigned", "Makefile:1"),
        ("operator", "Makefile:2"),
        ("condition", "Makefile:5"),
        ("expanded", "Makefile:15"),
        ("in_recipe", "Makefile:15 all"),
        ("referred", "Makefile:16 all"),
        // Make counts the lines of an evaluated rule from its `eval` on.
        ("made", "Makefile:? made"),
        ("defined", "Makefile:13"),
    ];
    let recorded = expect(make, &[("Makefile", makefile)], &[], &truth);
    // C is expanded where D refers to it. It is also expanded in a recipe, whose text does not show
    // the line.
    for (label, expected) in [("deferred", &["Makefile:4", "Makefile:?"][..]), ("exported", &["Makefile:7"])] {
        let named = recorded.iter().filter(|(name, _)| name == label);
        let call_sites: BTreeSet<&str> = named.map(|(_, call_site)| call_site.as_str()).collect();
        assert_eq!(call_sites, expected.iter().copied().collect());
    }
}

fn built_in(make: &Shell) {
    let files = [("Makefile", "all: a.o\n"), ("a.c", "int a;\n")];
    let settings = ["CC=@t", "OUTPUT_OPTION=", "CFLAGS=-Dx"];
    expect(make, &files, &settings, &[("a.c", "?:? a.o")]);
}

fn jobs(make: &Shell) {
    let number = 120;
    let names: Vec<String> = (0..number).map(|number| format!("t{number}")).collect();
    let rules: String = names.iter().map(|name| format!("{name}:\n\t@t {name}_a\n\t@t {name}_b; true\n")).collect();
    let makefile = format!("all: {}\n{rules}", names.join(" "));
    let recorded = expect(make, &[("Makefile", &makefile)], &["-j4"], &[]);
    let shells: Vec<&str> = recorded.iter().map(|(_, call_site)| call_site.as_str()).collect();
    for (at, name) in names.iter().enumerate() {
        let line = 3 + 3 * at;
        assert_eq!(chain_of(&recorded, &format!("{name}_a")), format!("Makefile:{line} {name}"));
        let call_site = format!("Makefile:{} {name}", line + 1);
        assert!(shells.contains(&call_site.as_str()), "{call_site} in {shells:#?}");
    }
}

/// Records make in a directory with these files, in which `@t` is replaced by a small program, and
/// compares the chains of the launches that have the labels in `truth`. Returns the labels and
/// chains of all launches.
#[track_caller]
fn expect(make: &Shell, files: &[(&str, &str)], arguments: &[&str], truth: &[(&str, &str)]) -> Vec<(String, String)> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    write_files(directory.path(), files);
    let record = Record::new();
    let directory = directory.path().display().to_string();
    let words = [&["-C", &directory], arguments].concat();
    make.record(&record, &words.into_iter().map(|text| text.replace("@t", &word("tiny"))).collect::<Vec<_>>())
        .expect_code(0);
    let chains = labelled_chains(&record.file());
    assert_chains(&chains, truth);
    chains
}
