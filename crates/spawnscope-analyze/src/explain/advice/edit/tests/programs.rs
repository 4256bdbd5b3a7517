//! Executes edited Python and Perl programs: each row of `library.tsv` must print, fail and leave
//! behind what the launched program did.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use super::executed::tree;
use crate::explain::advice::edit::library::{LibraryRewrite, Otherwise, programs};
use crate::explain::advice::edit::{Edit, Rewrite, spliced};
use spawnscope_data::event::Language;

/// Calls of each program. `F` is an existing file, `D` a directory, `N` a new name, `M` a missing
/// file.
const ACTIONS: [(&str, &str); 15] = [
    ("chmod", "640 F"),
    ("cp", "F N"),
    ("cp", "F D"),
    ("cp", "-p F N"),
    ("cp", "M N"),
    ("ln", "-s F N"),
    ("mkdir", "N"),
    ("mkdir", "-p N/a/b"),
    ("mkdir", "-p D"),
    ("mv", "F N"),
    ("mv", "-f F D"),
    ("rm", "F"),
    ("rm", "-f M"),
    ("rmdir", "M"),
    ("touch", "N"),
];
/// Calls whose output is used.
const QUESTIONS: [(&str, &str); 33] = [
    ("basename", "F"),
    ("basename", "F .c"),
    ("cat", "F"),
    ("date", "+%Y"),
    ("date", "+%Y-%m-%d"),
    ("date", "-u +%F"),
    ("dirname", "F"),
    ("dirname", "N/a"),
    ("hostname", ""),
    ("id", "-u"),
    ("id", "-un"),
    ("md5sum", "F"),
    ("pwd", ""),
    ("readlink", "-f F"),
    ("realpath", "D"),
    ("sha1sum", "F"),
    ("sha224sum", "F"),
    ("sha256sum", "F"),
    ("sha384sum", "F"),
    ("sha512sum", "F"),
    ("stat", "-c %s F"),
    ("stat", "-c %Y F"),
    ("uname", ""),
    ("uname", "-s"),
    ("uname", "-n"),
    ("uname", "-r"),
    ("uname", "-m"),
    ("wc", "-l < F"),
    ("wc", "-c < F"),
    ("which", "sh"),
    ("whoami", ""),
    ("cat", "E"),
    ("wc", "-l < E"),
];
const NAMES: [&str; 7] = ["./plain", "./with space", "./-leading", "./star*", "./x.c", "./.hidden", "./ blank "];

/// Runs a program in a directory with files. Returns its output, whether it reported an error, its
/// status, and the files.
fn run(interpreter: &str, program: &str) -> (String, bool, Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("d/directory")).unwrap();
    let time = UNIX_EPOCH + Duration::from_secs(1_000_000);
    for (number, name) in NAMES.iter().enumerate() {
        let file = at("d").join(name);
        fs::write(&file, "line\n".repeat(number) + "end").unwrap();
        fs::File::open(file).unwrap().set_modified(time).unwrap();
    }
    fs::File::open(at("d/directory")).unwrap().set_modified(time).unwrap();
    fs::write(at("d/empty"), "").unwrap();
    fs::write(at("program"), program).unwrap();
    let mut command = Command::new(interpreter);
    let output = command.arg("../program").current_dir(at("d")).env("TZ", "Asia/Tokyo").output().unwrap();
    // The directory has another name each time.
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&*directory.path().to_string_lossy(), "");
    let files = format!("{}\n{}", tree(&at("d")), tree(&at("d/directory")));
    (text(&output.stdout), !output.stderr.is_empty(), output.status.code(), files)
}

/// Edits the line of a call.
fn edit(
    language: Language,
    program: &str,
    call: &[&str],
    line: u32,
    source: &str,
    otherwise: Otherwise,
) -> Result<String, String> {
    let calls = BTreeSet::from([call.iter().map(|word| word.as_bytes().to_vec()).collect()]);
    let program = program.as_bytes().to_vec();
    let rewrite = LibraryRewrite { language, program, calls, has_failures: false, otherwise };
    let edit = Edit::of((b"p", line, None), 0, Ok(Rewrite::Library(rewrite)));
    let splices = edit.splices(source.as_bytes()).map_err(|refusal| refusal.to_string())?;
    Ok(String::from_utf8(spliced(source.as_bytes(), &splices)).unwrap())
}

/// Edits each line with the program, and checks that the program then does the same.
fn check(language: Language, program: &str, arguments: &str, source: &str) {
    let recorded = arguments.split('<').next().unwrap_or_default().split_whitespace();
    let recorded = recorded.map(|word| match word {
        "F" => b"./plain".to_vec(),
        "E" => b"./empty".to_vec(),
        "M" => b"./missing/0".to_vec(),
        "D" => b"directory".to_vec(),
        _ => word.replace('N', "./new").into_bytes(),
    });
    let has_failures = arguments.contains('M') && !arguments.starts_with("-f");
    let calls = BTreeSet::from([recorded.collect()]);
    let rewrite = LibraryRewrite {
        language,
        program: program.as_bytes().to_vec(),
        calls,
        has_failures,
        otherwise: Otherwise::Nothing,
    };
    let mut edited = source.to_owned();
    for own in source.lines().filter(|line| line.contains(&format!("{program} "))) {
        let line = edited.lines().position(|line| line == own).unwrap();
        let rewrite = Ok(Rewrite::Library(rewrite.clone()));
        let edit = Edit::of((b"program", line as u32 + 1, None), 0, rewrite);
        let splices = edit.splices(edited.as_bytes()).unwrap_or_else(|refusal| panic!("{edited}: {refusal}"));
        edited = String::from_utf8(spliced(edited.as_bytes(), &splices)).unwrap();
    }
    let interpreter = if language == Language::Python { "python3" } else { "perl" };
    assert_eq!(run(interpreter, &edited), run(interpreter, source), "{source}\nbecame\n{edited}");
}

/// Returns a command with quoted variables, in which `F` is the value of `f`.
fn command(program: &str, arguments: &str, variable: impl Fn(&str) -> String) -> String {
    let word = |word: &str| match word.as_bytes().first() {
        Some(first @ (b'F' | b'N')) => {
            format!("'{}{}'", variable(&first.to_ascii_lowercase().escape_ascii().to_string()), &word[1..])
        }
        Some(b'D') => "directory".to_owned(),
        Some(b'E') => "./empty".to_owned(),
        Some(b'M') => format!("./missing/{}", variable("i")),
        _ => word.to_owned(),
    };
    [format!("{program} ")].into_iter().chain(arguments.split_whitespace().map(|each| word(each) + " ")).collect()
}

/// Returns names of files, of which the last ones do not exist or are not readable as a file if the
/// calls ask something.
fn names(call: &str) -> Vec<&'static str> {
    let others = if call.contains("my $x") || call.contains("repr") { &["./directory", "./gone"][..] } else { &[] };
    NAMES.iter().chain(others).copied().collect()
}

fn in_python(program: &str, arguments: &str, call: &str) -> String {
    let names = names(call);
    let command = command(program, arguments, |name| format!("{{{name}}}"));
    let call = call.replace("COMMAND", &format!("f\"{command}\""));
    format!(
        "import os\nimport subprocess\n\ndef main():\n    for i, f in enumerate({names:?}):\n        n = f\"{{f}}.new\"\n        {call}\n        print(f, os.path.exists(f), flush=True)\n\nmain()\n"
    )
}

fn in_perl(program: &str, arguments: &str, call: &str) -> String {
    let command = command(program, arguments, |name| format!("${{{name}}}"));
    let names: Vec<String> = names(call).iter().map(|name| format!("'{name}'")).collect();
    let names = names.join(", ");
    let call = call.replace("COMMAND", &command);
    format!(
        "#!/usr/bin/perl\nuse strict;\nuse warnings;\n$| = 1;\nmy $i = 0;\nfor my $f ({names}) {{\n    my $n = \"$f.new\";\n    {call}\n    print \"$f \", -e $f ? 1 : 0, \"\\n\";\n    $i++;\n}}\n"
    )
}

#[test]
fn functions_change_files_as_programs_do() {
    for (program, arguments) in ACTIONS {
        let fails = arguments.contains('M') && !arguments.starts_with("-f");
        let python = "os.system(COMMAND)\n        subprocess.run(COMMAND, shell=True)  # -\n        status = subprocess.call(COMMAND, shell=True)\n        print(status)";
        check(Language::Python, program, arguments, &in_python(program, arguments, python));
        if !fails {
            let checked = in_python(program, arguments, "subprocess.run(COMMAND, shell=True, check=True)");
            check(Language::Python, program, arguments, &checked);
        }
        if !arguments.starts_with("-p F") {
            let tested = "system(\"COMMAND\") == 0 or print \"failed\\n\";";
            let perl = ["system(\"COMMAND\");", "system(\"COMMAND\") if $i;", tested];
            let perl = if fails { perl[..2].join("\n    ") } else { perl.join("\n    ") };
            check(Language::Perl, program, arguments, &in_perl(program, arguments, &perl));
        }
    }
}

#[test]
fn functions_answer_as_programs_do() {
    for (program, arguments) in QUESTIONS {
        let mut python = vec![
            "print(repr(os.popen(COMMAND).read()))",
            "x = subprocess.run(COMMAND, shell=True, capture_output=True, text=True).stdout.strip(); print(repr(x))",
        ];
        if program != "cat" {
            python.push("print(subprocess.check_output(COMMAND, shell=True).decode().rstrip('\\n'), 'x')");
            python.push("print(subprocess.check_output(COMMAND, shell=True))");
        }
        check(Language::Python, program, arguments, &in_python(program, arguments, &python.join("\n        ")));
        if program != "which" {
            let perl = "my $x = `COMMAND`; chomp $x; print \"[$x]\\n\";\n    my $y = qx{COMMAND};\n    print $y;";
            let perl = perl.to_owned() + if program == "cat" { "" } else { "\n    print `COMMAND`, \"x\\n\";" };
            check(Language::Perl, program, arguments, &in_perl(program, arguments, &perl));
        }
    }
}

/// Functions that launch what they are given.
const FUNCTIONS: [&str; 4] = [
    "def ask(cmd):\n    return os.popen(cmd).read().strip()\n",
    "def ask(cmd, **kwargs):\n    \"\"\"Asks.\"\"\"\n    result = subprocess.run(cmd, shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,\n                            text=True, **kwargs)\n    if result.returncode != 0:\n        # failed\n        raise RuntimeError(result.stderr)\n    return result.stdout.rstrip('\\n')\n",
    "def call(argv, shell=True):\n    try:\n        return subprocess.check_output(argv, shell=True, stderr=subprocess.DEVNULL)\n    except subprocess.CalledProcessError:\n        raise RuntimeError\n\ndef ask(cmd: str) -> str:\n    out = call(cmd).decode()\n    return out.strip()\n",
    "def ask(cmd):\n    p = subprocess.Popen(cmd, shell=True, stdout=subprocess.PIPE, text=True)\n    out, _ = p.communicate()\n    if p.returncode:\n        raise RuntimeError(cmd)\n    return out\n",
];

#[test]
fn functions_that_launch_are_read() {
    let bytes = "import subprocess\nx = subprocess.check_output(['cat', f]).decode()\n";
    edit(Language::Python, "cat", &["f"], 2, bytes, Otherwise::Nothing).expect_err("ends of lines");
    let call = "try:\n            print(repr(ask(COMMAND)))\n        except RuntimeError:\n            print('failed')";
    let program = |function: &str, source: String| source.replace("def main", &format!("{function}\ndef main"));
    for function in FUNCTIONS {
        for (name, arguments) in [("basename", "F"), ("sha1sum", "F"), ("stat", "-c %s F"), ("wc", "-l < F")] {
            check(Language::Python, name, arguments, &program(function, in_python(name, arguments, call)));
        }
        let first_word = in_python("md5sum", "F", "if os.path.isfile(f):\n            print(ask(COMMAND).split()[0])");
        check(Language::Python, "md5sum", "F", &program(function, first_word));
    }
    for other in [
        "def ask(cmd):\n    print(cmd)\n    return os.popen(cmd).read()\n",
        "def ask(cmd):\n    return os.popen(cmd).read() + '.'\n",
        "def ask(cmd):\n    return subprocess.check_output(cmd, shell=True, cwd='/')\n",
        "def ask(cmd, other):\n    return os.popen(cmd).read()\n",
        "def ask(cmd): return os.popen(cmd).read()\n",
        "def ask(self, cmd):\n    return os.popen(cmd).read()\n",
        "@twice\ndef ask(cmd):\n    return os.popen(cmd).read()\n",
        "def ask(cmd):\n    for i in range(2):\n        out = os.popen(cmd).read()\n    return out\n",
        "def ask(cmd):\n    return os.popen(cmd).read()\ndef ask(cmd):\n    pass\n",
    ] {
        let source = format!("import os\n{other}\nx = ask('uname -m')\n");
        let line = source.lines().count() as u32;
        let edited = edit(Language::Python, "uname", &["-m"], line, &source, Otherwise::Nothing);
        assert!(edited.is_err(), "{source}\n{edited:?}");
    }
}

#[test]
fn an_answer_is_kept() {
    let python = format!(
        "import os\nimport subprocess\n\n{}\n\n@staticmethod\n@staticmethod\ndef main():\n    for f in ['1', '2', '1']:\n        x = ask('expr 1 + 1')\n        y = subprocess.check_output(['expr', f, '+', '5']).decode()\n        print(x, y)\n\nmain.__func__.__func__()\n",
        FUNCTIONS[0]
    );
    let line = |source: &str, part: &str| 1 + source.lines().position(|line| line.contains(part)).unwrap() as u32;
    let once = |source: &str, part: &str, language, call: &[&str]| {
        let edited = edit(language, "expr", call, line(source, part), source, Otherwise::Once).unwrap();
        let interpreter = if language == Language::Python { "python3" } else { "perl" };
        assert_eq!(run(interpreter, &edited), run(interpreter, source), "{edited}");
        edited
    };
    let edited = once(&python, "x = ", Language::Python, &["1", "+", "1"]);
    assert!(edited.contains("        x = expr_1_once()\n"), "{edited}");
    let edited = once(&edited, "y = ", Language::Python, &["2", "+", "5"]);
    assert!(edited.contains("        y = expr_once(f)\n"), "{edited}");
    let listed = |call: &str| {
        let ask = "def ask(*args):\n    result = subprocess.run([\"expr\", *args], capture_output=True, text=True)\n    return result.stdout.strip()";
        format!("import subprocess\n\n\n{ask}\n\n\nfor f in (1, 2):\n    x = {call}\n    print(x)\n")
    };
    let edited = once(&listed("ask('1', '+', '1')"), "x = ", Language::Python, &["1", "+", "1"]);
    assert!(edited.contains("    return ask('1', '+', '1')\n") && edited.contains("x = expr_1_once()\n"), "{edited}");
    for other in ["ask(*words)", "ask('1', '+', other='1')", "ask('1', '+')"] {
        edit(Language::Python, "expr", &["1", "+", "1"], 10, &listed(other), Otherwise::Once).expect_err(other);
    }
    let perl = "#!/usr/bin/perl\nuse strict;\nuse warnings;\nfor (1, 2) {\n    my $x = `expr 1 + 1`;\n    chomp $x;\n    print \"$x\\n\";\n}\nfor (1, 2) {\n    my $y = `expr 2 + $_`;\n}\n";
    once(perl, "$x = ", Language::Perl, &["1", "+", "1"]);
    edit(Language::Perl, "expr", &["2", "+", "1"], 10, perl, Otherwise::Once).expect_err("arguments differ");
}

#[test]
fn each_program_of_the_table_was_executed() {
    let executed: BTreeSet<&str> =
        ACTIONS.iter().chain(&QUESTIONS).map(|(program, _)| *program).chain(["rmdir"]).collect();
    assert_eq!(programs().collect::<BTreeSet<_>>(), executed);
}

fn functions_pass_their_arguments_on() {
    let python = "import shutil\nimport subprocess\n\ndef run(*cmd):\n    subprocess.check_call(cmd)\n\nfor a in ('./plain', './with space'):\n    run('cp', a, a + '.new')\n";
    let call = "cp ./plain ./plain.new";
    let words: Vec<&str> = call.split(' ').skip(1).collect();
    let edited = edit(Language::Python, "cp", &words, 8, python, Otherwise::Nothing).unwrap();
    assert_eq!(edited, python.replace("run('cp', a, a + '.new')", "shutil.copy(a, a + '.new')"));
    assert_eq!(run("python3", &edited), run("python3", python));
    for body in [
        "system(@_) == 0 or die \"failed\"",
        "my @command = @_;\n    system(@command) == 0\n        or die \"@command\";",
        "system(@_);",
    ] {
        let perl = format!(
            "use strict;\nuse File::Copy ();\nfor my $a ('./plain', './with space') {{\n    run('cp', $a, \"$a.new\");\n}}\nsub run {{\n    {body}\n}}\n"
        );
        let edited = edit(Language::Perl, "cp", &words, 4, &perl, Otherwise::Nothing).unwrap();
        let end = if body.contains("die") { "or die \"cp: $!\\n\";" } else { "or warn \"cp: $!\\n\";" };
        assert_eq!(
            edited,
            perl.replace("run('cp', $a, \"$a.new\");", &format!("File::Copy::cp($a, \"$a.new\") {end}"))
        );
        assert_eq!(run("perl", &edited), run("perl", &perl));
    }
}

#[test]
fn lists_of_words_are_read() {
    let python = "import subprocess\nfor f in ['./a b', './c']:\n    subprocess.run([\"touch \".strip(), f])\n";
    let edit = |language, program: &str, call: &[&str], line, source: &str| {
        edit(language, program, call, line, source, Otherwise::Nothing)
    };
    edit(Language::Python, "touch", &["./c"], 3, python).expect_err("the program is computed");
    let python = "import subprocess\nimport shutil\nsubprocess.run([\"cp\", a, b + \".tmp\"], check=True)\n";
    let edited = "import subprocess\nimport shutil\nshutil.copy(a, b + \".tmp\")\n";
    assert_eq!(edit(Language::Python, "cp", &["x", "y.tmp"], 3, python).unwrap(), edited);
    let perl = "use strict;\nsystem('mv', $a, \"$b/x\") == 0 or die;\nsystem(@c);\nif ($?) { exit $?; }\n";
    let edited =
        "use strict;\nuse File::Copy ();\nFile::Copy::move($a, \"$b/x\") or die;\nsystem(@c);\nif ($?) { exit $?; }\n";
    assert_eq!(edit(Language::Perl, "mv", &["1", "2/x"], 2, perl).unwrap(), edited);
    functions_pass_their_arguments_on();
    for (language, source) in [
        (Language::Python, "import subprocess\nsubprocess.run([\"cp\", a, b], cwd=c)\n"),
        (Language::Python, "import subprocess\nsubprocess.run([\"cp\", *a])\n"),
        (Language::Python, "import subprocess\nif subprocess.call([\"cp\", a, b]):\n    pass\n"),
        (Language::Python, "import subprocess\nx = y = subprocess.call([\"cp\", a, b])\n"),
        (Language::Python, "import subprocess\nx = subprocess.call([\"cp\", a, b]) or 2\n"),
        (Language::Python, "import subprocess\nsubprocess.run([\"cp\", a, b]); shutil = 1\n"),
        (Language::Python, "from subprocess import run\nrun([\"cp\", a, b], check=True); shutil = 1\n"),
        (Language::Python, "import subprocess\nrun([\"cp\", a, b], check=True)\n"),
        (Language::Perl, "#\nrun('cp', $a, $b);\nsub run { system(@_) == 0 or die; print 1 }\n"),
        (Language::Perl, "#\nrun('cp', $a, $b);\nsub run { system('sudo', @_) }\n"),
        (Language::Perl, "#\nmy $r = run('cp', $a, $b);\nsub run { system(@_) }\n"),
        (Language::Python, "import subprocess\nrun('cp', a, b)\ndef run(*cmd):\n    subprocess.check_call(cmd[1:])\n"),
        (Language::Perl, "#\nsystem(\"cp $a $b | cat\");\n"),
        (Language::Perl, "#\nsystem(\"cp $a $b\"); exit $?;\n"),
        (Language::Perl, "#\nmy $r = system(\"cp $a $b\");\n"),
        (Language::Perl, "#\n# system(\"cp $a $b\");\n"),
        (Language::Perl, "#\nsystem(\"cp $a $b\");\n$x = `ls` if $y;\nexit $?;\n"),
        (Language::Perl, "#\nsystem(\"cp $a $b\");\nfor (`ls`) {\n    exit $?;\n}\n"),
    ] {
        edit(language, "cp", &["1", "2"], 2, source).expect_err(source);
    }
}
