//! What is known about programs: which of them handle many files in one launch and how, which take a lock, and which are worth a launch of
//! their own. A program that is unknown here gets the same cures, with an "if".

use crate::model::launch::{Exec, is_version_of};
use crate::patterns::subcommands::subcommand_of;
use crate::patterns::words::Words;

/// Programs that handle each of many files independently, with the files at the end of their arguments.
pub(super) const TAKES_MANY: Words = Words(
    "b2sum black bzip2 cat chattr chgrp chmod chown cksum clang-format cp dos2unix eslint exiftool file flake8 gofmt gunzip gzip install isort
     jpegoptim ln lzop markdownlint md5sum mkdir mogrify mv mypy nm optipng perltidy prettier pylint ranlib rm rmdir rubocop ruff rustfmt
     setfacl setfattr sha1sum sha224sum sha256sum sha384sum sha512sum shellcheck shfmt shred size stat strip stylelint sum tidy touch truncate
     uncrustify unxz xmllint xz yamllint zcat zstd",
);
/// Programs of `TAKES_MANY` that print a header, a total, a summary or aligned columns for several files, so that their output changes.
const SUMMARIZE: Words = Words(
    "black cat eslint exiftool file gzip mypy nm optipng prettier pylint rubocop ruff shellcheck size stylelint sum tidy unxz xz yamllint zcat zstd",
);
/// Programs that print one line for each operand.
const PRINT_A_LINE_EACH: Words =
    Words("b2sum cksum md5sum readlink realpath sha1sum sha224sum sha256sum sha384sum sha512sum");

/// A call whose operands are handled one after the other, so that one launch does and prints what several do.
struct Joined {
    program: &'static str,
    /// A letter of the first argument, or an argument. Empty if any arguments match.
    needs: &'static str,
    /// The letters of options without a value, after which an operand may follow.
    flags: &'static str,
    /// Options that stand for one operand, or change the output.
    refuses: Words,
}

const fn joined(program: &'static str, needs: &'static str, flags: &'static str, refuses: &'static str) -> Joined {
    Joined { program, needs, flags, refuses: Words(refuses) }
}

const JOINED: [Joined; 25] = [
    joined("ar", "r", "", ""),
    joined("bzcat", "", "fq", ""),
    joined("cat", "", "uvAeEtT", "-n -b -s --number --number-nonblank --squeeze-blank"),
    joined("curl", "", "fgikLsS", "-o -O -T -w -K --output --remote-name --upload-file --write-out --next"),
    joined("docker", "rm", "fv", ""),
    joined("emacs", "batch-byte-compile", "", ""),
    joined("file", "-b", "bkLhip", ""),
    joined("getent", "", "", ""),
    joined("git", "add", "fv", "-p -i"),
    joined("git", "rm", "fqr", ""),
    joined("gzip", "", "cdfkNnqtv123456789", "-l --list"),
    joined("javac", "", "", ""),
    joined("jq", "", "rcMSae", "-n -s --null-input --slurp --args --jsonargs"),
    joined("mkfifo", "", "", ""),
    joined("python3", "py_compile", "", ""),
    joined("readlink", "", "efmqsv", "-n"),
    joined("realpath", "", "emsLPq", ""),
    joined("sqlite3", "", "", ""),
    joined("systemctl", "", "q", "show status cat"),
    joined("tar", "x", "", ""),
    joined("unxz", "", "cfkqTv", "-l --list"),
    joined("xz", "", "cdfkqtTv0123456789e", "-l --list"),
    joined("xzcat", "", "q", ""),
    joined("zcat", "", "fq", ""),
    joined("zstd", "-q", "cdfkqt", "-l -o"),
];

/// Whether a word is one of these options, or a group of options with its letter.
fn is_option(word: &[u8], option: &str) -> bool {
    let letter = option.strip_prefix('-').filter(|rest| rest.len() == 1).map(|rest| rest.as_bytes()[0]);
    let is_group = word.starts_with(b"-") && !word.starts_with(b"--");
    word == option.as_bytes() || letter.is_some_and(|letter| is_group && word.contains(&letter))
}

impl Joined {
    fn includes(&self, arguments: &[&[u8]]) -> bool {
        let Some(before) = arguments.len().checked_sub(2).map(|at| arguments[at]) else {
            return self.needs.is_empty();
        };
        let is_needed = match self.needs.as_bytes() {
            [letter] => arguments[0].contains(letter),
            _ => self.needs.is_empty() || arguments.iter().any(|argument| is_option(argument, self.needs)),
        };
        // The word after an option may be its value.
        let may_follow = !before.starts_with(b"-")
            || !before.starts_with(b"--") && before[1..].iter().all(|letter| self.flags.as_bytes().contains(letter));
        is_needed
            && may_follow
            && !arguments.iter().any(|word| self.refuses.iter().any(|option| is_option(word, option)))
    }
}

/// Whether this is a sed that edits files in place, or handles them separately. Without these
/// options, sed treats several files as one text.
pub(super) fn is_sed_for_each_file(program: &[u8], arguments: &[&[u8]]) -> bool {
    let separates = ["-i", "-s"].iter().any(|option| arguments.iter().any(|word| word.starts_with(option.as_bytes())))
        || arguments.iter().any(|word| word.starts_with(b"--in-place") || *word == b"--separate");
    // The last argument of `sed -i FILE -e SCRIPT` is not a file. A script that quits would end at the first file.
    let before_last = arguments.len().checked_sub(2).map_or(&b""[..], |at| arguments[at]);
    let is_script_last = [&b"-e"[..], b"-f", b"--expression", b"--file"].contains(&before_last);
    let quits = arguments.iter().any(|word| word.ends_with(b"q") || word.ends_with(b"Q"));
    program == b"sed" && separates && !is_script_last && !quits
}

/// Whether one launch with the last arguments of several launches does and prints the same as these. `arguments` are without the program.
pub(super) fn joins(program: &[u8], arguments: &[&[u8]]) -> bool {
    let mut rows = JOINED.iter().filter(|row| row.program.as_bytes() == program);
    TAKES_MANY.contains(program) && !SUMMARIZE.contains(program)
        || is_sed_for_each_file(program, arguments)
        || rows.any(|row| row.includes(arguments))
}

/// Filters that may print one line for each line that they read.
pub(super) const LINE_FILTERS: Words = Words("bc cut rev tr");

/// Whether a filter prints one line for each line that it reads. `words` begin with the program, `text` is the code of the line.
pub(super) fn answers_each_line(words: &[Vec<u8>], text: &[u8]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let has = |part: &[u8]| arguments.iter().any(|word| word.windows(part.len()).any(|window| window == part));
    match &program[..] {
        // It prints nothing for an error, such as a division by zero.
        b"bc" => arguments.iter().all(|word| word == b"-l") && !text.iter().any(|byte| b"/%(^".contains(byte)),
        b"cut" => !has(b"-s") && !has(b"--only") && arguments.iter().all(|word| word.starts_with(b"-")),
        b"rev" => arguments.is_empty(),
        b"tr" => ![&b"\\n"[..], b"\n", b"space", b"cntrl", b"-c", b"-C", b"-s", b"\\0"].iter().any(|part| has(part)),
        _ => false,
    }
}

/// How one call of a program answers several questions about the same input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// One filter prints assignments in the syntax of the shell.
    Jq,
    /// One format with several lines.
    Format(&'static str),
    /// Several options.
    Options,
}

impl Together {
    pub(super) fn of(program: &[u8]) -> Option<Together> {
        match program {
            b"jq" => Some(Together::Jq),
            b"date" => Some(Together::Format("+")),
            b"git" => Some(Together::Options),
            _ => None,
        }
    }

    /// Returns how to ask, for the reader.
    pub(super) const fn form(self) -> &'static str {
        match self {
            Together::Jq => r#"eval "$(jq -r '@sh "a=\(.a) b=\(.b)"' FILE)""#,
            Together::Format(_) => "{ read -r a; read -r b; } < <(date '+%Y%n%m')",
            Together::Options => "{ read -r a; read -r b; } < <(git log -1 --format='%s%n%an' COMMIT)",
        }
    }

    /// Returns one argument (or several) that asks all questions. `None` unless each certainly has one line of text as its answer or, for jq, one
    /// value.
    pub(super) fn join(self, questions: &[Vec<u8>], variables: &[String]) -> Option<String> {
        let texts: Vec<&str> = questions.iter().map(|text| std::str::from_utf8(text).ok()).collect::<Option<_>>()?;
        let quoted = |text: String| (!text.contains('\'')).then(|| format!("'{text}'"));
        match self {
            Together::Jq => {
                let is_value = |text: &&str| {
                    let is_path = |step: &str| {
                        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._".contains(&byte);
                        step == "length" || step.starts_with('.') && step != "." && step.bytes().all(is_name)
                    };
                    !text.contains("..") && text.split('|').all(|step| is_path(step.trim()))
                };
                let values = variables.iter().zip(&texts).map(|(variable, text)| format!("{variable}=\\({text})"));
                let values = values.collect::<Vec<_>>().join(" ");
                texts.iter().all(is_value).then(|| quoted(format!("@sh \"{values}\"")))?
            }
            Together::Format(prefix) => lines(&texts, prefix).and_then(quoted),
            Together::Options => {
                const ANSWERS: Words =
                    Words("--absolute-git-dir --git-common-dir --git-dir --is-inside-work-tree --show-toplevel");
                match ["--format=", "--pretty=format:"].into_iter().find_map(|prefix| lines(&texts, prefix)) {
                    Some(format) => quoted(format),
                    None => texts.iter().all(|text| ANSWERS.contains(text.as_bytes())).then(|| texts.join(" ")),
                }
            }
        }
    }
}

/// Joins formats that begin with a prefix. `None` unless each prints one line.
fn lines(formats: &[&str], prefix: &str) -> Option<String> {
    /// Formats of git and date that print several lines, or none.
    const NOT_ONE_LINE: [&str; 5] = ["%b", "%B", "%N", "%n", "%GG"];
    let formats: Vec<&str> = formats.iter().map(|text| text.strip_prefix(prefix)).collect::<Option<_>>()?;
    let is_line =
        |format: &&str| !format.contains('\n') && !NOT_ONE_LINE.iter().any(|several| format.contains(several));
    formats.iter().all(is_line).then(|| format!("{prefix}{}", formats.join("%n")))
}

/// Whether a launch prints one line for each of its operands.
pub(super) fn prints_a_line_each(program: &[u8], arguments: &[&[u8]]) -> bool {
    let has_format = arguments.iter().any(|argument| argument.starts_with(b"-c") || argument.starts_with(b"--format"));
    match program {
        b"stat" => has_format && !arguments.iter().any(|argument| argument.contains(&b'\n')),
        _ => PRINT_A_LINE_EACH.contains(program) && joins(program, arguments),
    }
}

/// Programs whose last argument is the destination.
pub(super) const HAS_DESTINATION: Words = Words("cp install ln mv");
/// Programs that must not get more arguments, because these would change the meaning of the call, or are the command line of another
/// program.
pub(super) const TAKES_ONE: Words = Words(
    "[ ash awk basename bash bc busybox c++ cc clang clang++ curl dash date diff docker env expr g++ gawk gcc git jq ksh lua make mawk mksh
     nice node openssl patch perl php ruby rustc sed sh ssh ssh-keygen sudo tar test timeout unzip zsh",
);
/// Programs that only change files.
pub(super) const FILE_CHANGERS: Words = Words("chmod chown cp install ln mkdir mv rm touch");
/// Programs whose work takes much longer than their start-up.
const HEAVY: Words = Words("bzip2 convert ffmpeg gzip jpegoptim lz4 lzop magick mogrify optipng pngcrush xz zstd");
/// Compilers, which work as long for each file, however many they get.
const COMPILERS: Words = Words("as c++ c99 cc clang clang++ g++ gcc gfortran ld nasm rustc swiftc tsc");
/// Programs that run another program elsewhere or with other rights.
const WRAPPERS: Words = Words(
    "chroot chrt cgexec doas env fakeroot firejail ionice nice nohup nsenter numactl prlimit proot runuser setarch setpriv setsid ssh stdbuf
     su sudo systemd-run taskset timeout unshare xvfb-run",
);
/// Programs that take a lock for most of their work, so that a second one waits or fails.
pub(super) const LOCKERS: Words = Words(
    "apk apt apt-get aptitude brew bundle cargo composer conda dnf dpkg flatpak gem git go gradle groupadd hg mamba mvn npm opkg pacman pip
     pip3 pnpm poetry rpm snap sqlite3 svn terraform tofu useradd usermod uv vagrant yarn yum zypper",
);

/// Whether a program works as long for each file, however many it gets.
pub(super) fn is_compiler(program: &[u8]) -> bool {
    COMPILERS.iter().any(|compiler| is_version_of(program, compiler.as_bytes()))
}

/// Whether the work of a program takes much longer than its start-up.
pub(super) fn is_heavy(program: &[u8]) -> bool {
    HEAVY.contains(program)
}

/// Whether the launch of a program is its purpose.
pub(super) fn is_worth_a_launch(program: &[u8]) -> bool {
    is_wrapper(program) || matches!(program, b"sleep" | b"flock")
}

/// Whether a program only runs another program, elsewhere or with other rights.
pub(super) fn is_wrapper(program: &[u8]) -> bool {
    WRAPPERS.contains(program)
}

/// A program, a subcommand or first argument (empty if any arguments match), and how to ask about all items at once.
type Row = (&'static str, &'static str, &'static str);

/// Programs that scripts ask about one item at a time, and how one launch handles all items.
const ITEMS: &[Row] = &[
    ("ar", "", "ar rc LIBRARY A.o B.o ..."),
    ("apt-cache", "policy", "apt-cache policy A B C ..."),
    ("apt-cache", "show", "apt-cache show A B C ..."),
    ("aws", "s3", "aws s3 cp or sync with --recursive, --exclude and --include, once for all files"),
    ("bc", "", "one bc for all lines: printf '%s\\n' EXPRESSION... | bc"),
    ("brew", "info", "brew info --json A B C ..."),
    (
        "curl",
        "",
        "one curl for all addresses, which also keeps the connection: curl OPTIONS -K LIST, or curl -Z OPTIONS URL... with -O",
    ),
    ("docker", "cp", "docker cp DIRECTORY, or tar on standard input: docker cp - CONTAINER:/"),
    ("docker", "exec", "docker exec CONTAINER sh -s, with all commands on its standard input"),
    ("docker", "inspect", "docker inspect A B C ..., or docker inspect --format=FORMAT $(docker ps -q)"),
    ("docker", "rm", "docker rm A B C ..."),
    ("dpkg", "--install", "dpkg --install A.deb B.deb ..., which also runs the triggers only once"),
    ("dpkg", "-i", "dpkg -i A.deb B.deb ..., which also runs the triggers only once"),
    ("dpkg", "-L", "dpkg -L A B C ..."),
    ("dpkg", "-S", "dpkg -S A B C ..."),
    ("dpkg", "-s", "dpkg-query -W -f='${Package} ${Status}\\n', once for all packages"),
    (
        "dpkg-deb",
        "",
        "dpkg-query for installed packages; apt-ftparchive packages DIRECTORY reads the fields of all .deb files",
    ),
    ("dpkg-query", "", "dpkg-query -W -f=FORMAT, once for all packages"),
    (
        "emacs",
        "",
        "one emacs for all files: emacs -Q --batch -f batch-byte-compile FILES..., or --eval with a loop over command-line-args-left",
    ),
    ("exiftool", "", "exiftool FILES..., or exiftool -stay_open True -@ -"),
    ("ffprobe", "", "no list of files: keep the results by path and time, or use libav through a library (PyAV)"),
    ("file", "", "file -N -- FILES..., or file -f LIST"),
    ("getent", "", "getent DATABASE A B C ..."),
    ("git", "add", "git add --pathspec-from-file=LIST"),
    (
        "git",
        "blame",
        "git log --format=... -- PATHS if the last change of each file is enough; else one git blame per file",
    ),
    ("git", "branch", "git for-each-ref --format=... refs/heads"),
    ("git", "cat-file", "git cat-file --batch, with all objects on its standard input"),
    ("git", "check-attr", "git check-attr --stdin ATTRIBUTE"),
    ("git", "check-ignore", "git check-ignore --stdin"),
    ("git", "checkout", "git checkout --pathspec-from-file=LIST"),
    ("git", "config", "git config --list -z, once, and look the keys up in it"),
    ("git", "describe", "git describe A B C ..., or git for-each-ref --format='%(describe)'"),
    ("git", "diff", "git diff --name-status A B (or --raw), once for all paths"),
    ("git", "diff-tree", "git diff-tree --stdin"),
    ("git", "for-each-ref", "git for-each-ref --format=... refs/heads refs/tags, once"),
    ("git", "hash-object", "git hash-object --stdin-paths"),
    ("git", "log", "git log --format='%H %ct' --name-only, once; its output has the commits of every path"),
    ("git", "ls-files", "git ls-files -s, once for all paths"),
    ("git", "ls-tree", "git ls-tree -r TREE, once"),
    ("git", "merge-base", "git for-each-ref --merged=COMMIT (or --contains), once for all branches"),
    ("git", "mv", "git mv A B C ... DIRECTORY"),
    ("git", "name-rev", "git name-rev --annotate-stdin"),
    ("git", "rev-list", "git rev-list --stdin; to count: git for-each-ref --format='%(ahead-behind:BASE)'"),
    ("git", "rev-parse", "git rev-parse A B C ..., or git cat-file --batch-check on standard input"),
    ("git", "rm", "git rm --pathspec-from-file=LIST"),
    (
        "git",
        "show",
        "git cat-file --batch for files (COMMIT:PATH), git log --stdin --no-walk --format=FORMAT for commits",
    ),
    ("git", "show-ref", "git for-each-ref --format='%(objectname) %(refname)', once"),
    ("git", "status", "git status --porcelain, once for the whole tree"),
    ("git", "submodule", "git submodule update --jobs N, once for all"),
    ("git", "tag", "git for-each-ref --format=... refs/tags; git tag -d A B C ..."),
    ("git", "update-index", "git update-index --index-info, with all entries on its standard input"),
    ("git", "update-ref", "git update-ref --stdin"),
    ("gpg", "", "gpg --verify-files or --decrypt-files FILES...; gpg --multifile"),
    ("gzip", "-l", "gzip -l FILES..."),
    ("helm", "template", "helm template with all --set and -f options, once per chart"),
    ("identify", "", "identify -format FORMAT FILES..."),
    ("convert", "", "mogrify OPTIONS -path DIRECTORY FILES... (with -format for another type)"),
    ("magick", "", "magick mogrify OPTIONS -path DIRECTORY FILES... (with -format for another type)"),
    (
        "inkscape",
        "",
        "inkscape --shell, with all commands on its standard input, or inkscape --export-type=TYPE FILES...",
    ),
    ("ip", "", "ip -json address (or link, route), once for all; ip -batch FILE to change several"),
    ("iptables", "", "iptables-restore --noflush, with all rules on its standard input"),
    ("javac", "", "one javac for all files: javac OPTIONS FILES..."),
    (
        "jq",
        "",
        "one jq for all: jq -r 'inputs | ...' -n FILES..., or jq -r FILTER, with all lines on its standard input",
    ),
    ("kubectl", "apply", "kubectl apply -f DIRECTORY, or several -f"),
    ("kubectl", "get", "kubectl get KIND -o json, once, and pick from it"),
    ("ldd", "", "ldd FILES..."),
    ("libreoffice", "", "libreoffice --headless --convert-to TYPE FILES..., once for all"),
    ("soffice", "", "soffice --headless --convert-to TYPE FILES..., once for all"),
    ("lz4", "", "lz4 -m FILES..."),
    ("logger", "", "logger -f FILE, or one logger that reads all lines from its standard input"),
    ("ls", "", "ls FILES..., or the shell's own patterns and tests"),
    ("md5sum", "", "md5sum -- FILES..."),
    ("mktemp", "", "mktemp -d once, with all temporary files in it; or write over one file again"),
    ("msgfmt", "", "no list of files: msgfmt in parallel, or a library (polib, babel) in one process"),
    ("mysql", "", "one mysql for all statements: mysql DATABASE <FILE, or -e 'A; B; C'"),
    ("nm", "", "nm -A FILES..."),
    ("npm", "install", "npm install A B C ..."),
    ("npm", "view", "npm outdated --json, or one request to the registry's bulk interface"),
    ("nslookup", "", "dig -f LIST"),
    ("dig", "", "dig -f LIST, or dig +short A B C ..."),
    ("objdump", "", "objdump ... FILES..."),
    (
        "openssl",
        "x509",
        "one process for all certificates: openssl storeutl -noout -text -certs FILE, or openssl crl2pkcs7 -nocrl -certfile FILE | openssl pkcs7 \
         -print_certs -noout, with FILE made by cat; x509 itself reads one certificate and ignores further files",
    ),
    ("openssl", "dgst", "openssl dgst OPTIONS FILES..., or sha256sum FILES..."),
    (
        "openssl",
        "",
        "one process for all inputs: a library (OpenSSL in Python, Perl or Ruby); the openssl command handles one input per launch",
    ),
    ("pandoc", "", "pandoc-server, or a library; pandoc with several files joins them into one document"),
    ("pdftotext", "", "a library that reads many files in one process (PyMuPDF, poppler)"),
    ("pip", "install", "pip install A B C ..., or -r FILE"),
    ("pip", "show", "pip show A B C ..., or pip list --format=json"),
    ("pip3", "install", "pip3 install A B C ..., or -r FILE"),
    ("pip3", "show", "pip3 show A B C ..., or pip3 list --format=json"),
    ("apt-get", "install", "apt-get install A B C ..."),
    ("apt", "install", "apt install A B C ..."),
    ("pngcrush", "", "pngcrush -d DIRECTORY FILES..."),
    ("podman", "inspect", "podman inspect A B C ..."),
    ("protoc", "", "protoc OPTIONS FILES..., once for all"),
    ("ps", "", "ps -o FIELDS -p PID,PID,..., once for all"),
    ("psql", "", "one psql for all statements: psql -f FILE, or several -c"),
    ("qemu-img", "info", "keep the results by path and time"),
    ("readelf", "", "readelf ... FILES..."),
    ("readlink", "", "readlink -f -- FILES..."),
    ("realpath", "", "realpath -- FILES..."),
    ("redis-cli", "", "one redis-cli for all commands on its standard input, or --pipe"),
    ("rpm", "-i", "rpm -i A.rpm B.rpm ..."),
    ("rpm", "-U", "rpm -U A.rpm B.rpm ..."),
    ("rpm", "", "rpm -q --qf FORMAT A B C ..., or rpm -qa"),
    ("rsvg-convert", "", "one process for all files: inkscape --shell, or a library (librsvg, cairosvg)"),
    ("rsync", "", "rsync --files-from=LIST SOURCE DESTINATION, once for all files"),
    ("sed", "-i", "one sed with several -e for all changes, and all files: sed -i -e A -e B FILES..."),
    ("scp", "", "scp FILES... HOST:DIRECTORY, or rsync --files-from=LIST"),
    ("sftp", "", "sftp -b FILE HOST, with all commands in the file"),
    ("sha1sum", "", "sha1sum -- FILES..."),
    ("sha256sum", "", "sha256sum -- FILES..."),
    ("sqlite3", "", "one sqlite3 for all statements on its standard input; within BEGIN and COMMIT if they write"),
    (
        "ssh-keygen",
        "",
        "one ssh-keygen for all keys: cat FILES... | ssh-keygen -lf -, which prints one line for each key",
    ),
    ("stat", "", "stat -c FORMAT -- FILES..., or find -printf"),
    ("sysctl", "", "sysctl -n A B C ..., or sysctl -p FILE"),
    ("systemctl", "is-active", "systemctl is-active A B C ..."),
    ("systemctl", "is-enabled", "systemctl is-enabled A B C ..."),
    ("systemctl", "show", "systemctl show -p PROPERTIES A B C ..."),
    (
        "tar",
        "",
        "one tar for all members: tar -xf ARCHIVE MEMBER..., or -T LIST; to add files: tar -cf ARCHIVE -T LIST",
    ),
    ("tput", "", "tput -S, with all capabilities on its standard input, or keep each answer in a variable"),
    ("unzip", "", "unzip ARCHIVE MEMBER..., once for all members"),
    ("wget", "", "wget -i LIST, which also keeps the connection"),
    ("xdotool", "", "one xdotool with all commands, or xdotool - with a script"),
    ("xmlstarlet", "", "xmlstarlet sel -t ... FILES..., or one template with all values"),
    ("xpath", "", "one process with a library (lxml, XML::LibXML, Nokogiri)"),
    ("yq", "", "one yq for all: yq FILTER FILES..., or one filter that returns all values"),
    ("zcat", "", "zcat FILES..."),
    ("zip", "", "zip ARCHIVE -@, with all names on its standard input"),
];

/// Returns how one launch of this program handles all items, and the subcommand if that depends on it. `None` if no row matches.
pub(super) fn items_form<'a>(program: &[u8], exec: &Exec<'a>) -> Option<(&'static str, &'a [u8])> {
    let word = subcommand_of(exec).or_else(|| exec.arguments().nth(1)).unwrap_or_default();
    let rows = ITEMS.iter().filter(|(name, ..)| name.as_bytes() == program);
    let mut fitting = rows.filter(|(_, subcommand, _)| subcommand.is_empty() || subcommand.as_bytes() == word);
    let (_, subcommand, fix) = fitting.next()?;
    Some((fix, if subcommand.is_empty() { b"" } else { word }))
}

/// Programs of which many launches repeat what is already done, and how each language skips that.
pub(super) fn is_idempotent(exec: &Exec<'_>) -> bool {
    let options = exec.arguments().nth(1).unwrap_or_default();
    exec.program_name() == b"mkdir" && options.starts_with(b"-") && options.contains(&b'p')
}
