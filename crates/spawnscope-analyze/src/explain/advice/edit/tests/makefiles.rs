//! Edits of makefiles: make itself must expand both makefiles to the same text.

use crate::explain::advice::edit::makefile::MakeRewrite;
use crate::explain::advice::edit::spliced;

fn edited(command: &str, makefile: &str) -> Option<String> {
    let rewrite = MakeRewrite { commands: [command.as_bytes().to_vec()].into(), ..MakeRewrite::default() };
    let splices = rewrite.splices(makefile.as_bytes()).ok()?;
    String::from_utf8(spliced(makefile.as_bytes(), &splices)).ok()
}

/// make itself must expand both makefiles to the same text.
#[test]
fn a_loop_of_functions_is_expanded_once() {
    let of = |makefile: &str| {
        let commands = ["cat a1", "cat b1"].map(|command| command.as_bytes().to_vec()).into();
        let splices = MakeRewrite { commands, ..MakeRewrite::default() }.splices(makefile.as_bytes());
        splices.map(|splices| String::from_utf8(spliced(makefile.as_bytes(), &splices)).unwrap())
    };
    let looped = "M = a1 b1\nV = $(foreach m,$(M),$(shell cat $(m)))\nall: ; @echo $(V) $(V)\n";
    let edited = of(looped).unwrap();
    assert_eq!(edited, looped.replace("V =", "V :="));
    let run = |makefile: &str| {
        let directory = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| std::fs::write(directory.path().join(file), text).unwrap();
        [("a1", "1\n"), ("b1", "2 3\n"), ("Makefile", makefile)].iter().for_each(|(file, text)| write(file, text));
        let mut make = std::process::Command::new("make");
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        make.current_dir(directory.path()).output().unwrap().stdout
    };
    assert_eq!(String::from_utf8(run(&edited)).unwrap(), "1 2 3 1 2 3\n");
    assert_eq!(run(&edited), run(looped));
    let two = "V = a $(shell cat a1)-$(shell cat b1)\nall: ; @echo $(V) $(V)\n";
    assert_eq!(of(two).unwrap(), two.replace("V =", "V :="));
    assert_eq!(run(&of(two).unwrap()), run(two));
    for refused in [
        looped.replace("all:", "M = b1\nall:"),
        looped.replace("all:", "a1: ; touch $@\nall:"),
        looped.replace("all:", "all: M = b1\nall:"),
        format!("m = b\n{looped}").replace(")))", "))) $(m)\nm = a"),
        looped.replace("$(foreach m,$(M),$(shell cat $(m)))", "$(shell cat $(M))"),
    ] {
        assert!(of(&refused).is_err(), "{refused}");
    }
}

/// make itself must expand both makefiles to the same text.
#[test]
fn an_included_makefile_and_a_function_are_evaluated_once() {
    let directory = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &[u8]| std::fs::write(directory.path().join(file), text).unwrap();
    let run = || {
        let mut make = std::process::Command::new("make");
        make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        String::from_utf8(make.current_dir(directory.path()).output().unwrap().stdout).unwrap()
    };
    let main = "X = 1\ninclude flags.mk\nall: ; @echo $(FLAGS) $(FLAGS) $(V)\n";
    let flags = "opt = $(shell if test $(1) = a; then echo $(1); else echo $(2); fi)\nFLAGS = -O $(call opt,a,) $(call opt,b,-c)\nV = $(shell cat V)\n";
    [("V", "2\n"), ("Makefile", main), ("flags.mk", flags)]
        .iter()
        .for_each(|(file, text)| write(file, text.as_bytes()));
    let before = run();
    assert_eq!(before, "-O a -c -O a -c 2\n");
    let of = |main: &str, flags: &str| {
        let test = |a: &str, b: &str| format!("if test {a} = a; then echo {a}; else echo {b}; fi");
        let commands = [test("a", ""), test("b", "-c"), "cat V".to_owned()].map(String::into_bytes).into();
        let all = MakeRewrite { commands, ..MakeRewrite::default() }.included(main.as_bytes());
        let (file, rewrite) = all.into_iter().next()?;
        assert_eq!(file, b"flags.mk");
        Some(String::from_utf8(spliced(flags.as_bytes(), &rewrite.splices(flags.as_bytes()).ok()?)).unwrap())
    };
    let edited = of(main, flags).unwrap();
    assert_eq!(edited, flags.replace("FLAGS =", "FLAGS :=").replace("V =", "V :="));
    write("flags.mk", edited.as_bytes());
    assert_eq!(run(), before);
    let of_flags = flags.replace("V = $(shell cat V)\n", "");
    for (main, flags) in [
        (main.replace("include ", "-include "), flags.to_owned()),
        (main.replace("all:", "FLAGS += $(LATER)\nLATER = x\nall:"), of_flags.clone()),
        (main.to_owned(), of_flags.replace("b,-c", "$@,-c")),
        (main.to_owned(), of_flags.replace("b,-c", "b,$(LATER)") + "LATER = x\n"),
        (main.replace("all:", "LATER = x\nall:"), of_flags.replace("echo $(2)", "echo $(LATER)")),
    ] {
        assert_eq!(of(&main, &flags), None, "{main}{flags}");
    }
}

#[test]
fn variables_are_defined_once() {
    for (makefile, expected) in [
        ("V = $(shell cat VERSION)\nall:\n\techo $(V)", Some("V := $(shell cat VERSION)\nall:\n\techo $(V)")),
        ("V=$(shell cat VERSION)", Some("V:=$(shell cat VERSION)")),
        ("export V = x-$(shell cat VERSION)-y", Some("export V := x-$(shell cat VERSION)-y")),
        ("V = ${shell cat 'VERSION'}", Some("V := ${shell cat 'VERSION'}")),
        ("V = $(shell cat \\\n  VERSION)", Some("V := $(shell cat \\\n  VERSION)")),
        (
            "V = $(shell cat VERSION)\nW = $(shell cat VERSION)",
            Some("V := $(shell cat VERSION)\nW := $(shell cat VERSION)"),
        ),
        ("F = VERSION\nV = $(shell cat $(F))", Some("F = VERSION\nV := $(shell cat $(F))")),
        ("V ?= $(shell cat VERSION)\n", Some("ifeq ($(origin V),undefined)\nV := $(shell cat VERSION)\nendif\n")),
        ("V = $(shell cat $(F))\nF = VERSION", None),
        ("V = $(shell cat $(F))\ninclude config.mk", None),
        ("V = $(shell cat $@)", None),
        ("V = $(shell cat $(1))", None),
        ("V := $(shell cat VERSION)", None),
        ("V = $(shell cat VERSION)\nV += x", Some("V := $(shell cat VERSION)\nV += x")),
        ("V = $(shell cat VERSION)\nV += $(L)\nL = x", None),
        ("V = $(shell cat VERSION)\nV += $(shell cat OTHER)\nOTHER: ; touch OTHER", None),
        ("V = $(shell cat VERSION)\nV += x\ninclude more.mk", None),
        ("V ?= $(shell cat VERSION)\nV += x", None),
        ("V = $(shell cat VERSION)\nall: V += $(L)", None),
        (
            "t = $(shell cat $(1))\nu = $(call t,$(1))\nV = $(call u,VERSION)",
            Some("t = $(shell cat $(1))\nu = $(call t,$(1))\nV := $(call u,VERSION)"),
        ),
        ("t = $(shell cat $(1))\nV = $(call u,VERSION)\nu = $(call t,$(1))", None),
        ("V = $(shell cat VERSION)\nVERSION:\n\ttouch VERSION", None),
        ("V = $(shell cat VERSION)\nt:\n\techo 2 >VERSION", None),
        ("V = $(shell cat VERSION)\nt: ; echo 2 > VERSION", None),
        ("V = $(shell cat $(F))\nt: F = VERSION", None),
        ("define V =\nV = $(shell cat VERSION)\nendef", None),
        ("\tV = $(shell cat VERSION)", None),
        ("V = $(shell cat OTHER)", None),
        ("", None),
    ] {
        assert_eq!(edited("cat VERSION", makefile).as_deref(), expected, "{makefile}");
    }
}
