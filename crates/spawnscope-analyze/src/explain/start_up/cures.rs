//! What to change in a line of a start-up file. The cures read only the text of the line, because
//! few tools are responsible for most slow lines, and each documents one way to avoid its work:
//! save the code that a program prints, load a file on first use, or skip a repeated check.

use std::ops::Range;

use super::Spent;
use crate::explain::advice::{Recipe, prints_constant_code, recipe};
use crate::model::launch::base_name;
use spawnscope_data::event::Nanos;

/// What to change in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cure {
    pub title: String,
    /// At most this time is saved.
    pub saving: Nanos,
    /// The bytes of the line to replace, and what replaces them. `None`: the user must decide what
    /// to write.
    pub edit: Option<(Range<usize>, String)>,
    /// What behaves differently after the change.
    pub limits: String,
}

impl Cure {
    /// Returns the cure that a recipe describes.
    fn of(recipe: Recipe, saving: Nanos, edit: Option<(Range<usize>, String)>) -> Cure {
        Cure { title: recipe.title, saving, edit, limits: recipe.limits }
    }
}

/// Files that also define functions for use by other lines, and the prefix of their names.
const USED_BY_OTHERS: [(&str, &str); 2] = [("/nvm.sh", "nvm_"), ("/bash_completion", "__git_ps1")];
/// Files that only define commands, and these commands: they can be loaded on first use.
const LAZY: [(&str, &str); 4] = [
    ("nvm.sh", "nvm node npm npx"),
    ("sdkman-init.sh", "sdk"),
    ("virtualenvwrapper.sh", "workon mkvirtualenv"),
    ("google-cloud-sdk/completion.bash.inc", "gcloud"),
];
/// Commands whose printed code starts the program again, and the same commands with the option that
/// prevents that.
const STARTED_ONCE: [(&str, &str); 5] = [
    ("nodenv init - ", "nodenv init - --no-rehash "),
    ("plenv init - ", "plenv init - --no-rehash "),
    ("pyenv init - ", "pyenv init - --no-rehash "),
    ("rbenv init - ", "rbenv init - --no-rehash "),
    ("starship init ", "starship init --print-full-init "),
];

/// Returns what to change in a line of a start-up file; nothing if no cure is known for such lines.
/// `root` is the whole start.
#[must_use]
pub fn cures(line: &str, shell: &str, spent: &Spent, root: &Spent) -> Vec<Cure> {
    let cures = || framework_settings(line, spent);
    let other = || match shell {
        "fish" => None,
        _ => completion_cache(line, shell, spent).or_else(|| loaded_later(line, shell, spent)),
    };
    let one = conda(line, shell, spent, root)
        .or_else(|| saved_output(line, shell, spent))
        .or_else(other)
        .or_else(|| git_status(line, spent));
    one.map_or_else(cures, |cure| vec![cure])
}

/// `conda shell.SHELL hook` prints code that conda also installs as a file. The printed code may
/// also start conda again, to activate `base`; without that, output and file are the same.
fn conda(line: &str, shell: &str, spent: &Spent, root: &Spent) -> Option<Cure> {
    if position(line, "eval \"$__conda_setup\"").is_some() {
        return Some(Cure::of(recipe("conda-activates", &[], &[]), spent.launched, None));
    }
    let start = line.find("$(").map_or(0, |at| at + "$(".len());
    let words: Vec<&str> = line[start..].split([' ', ')']).filter(|word| !matches!(*word, "" | "eval")).collect();
    let [program, printed, hook, ..] = words[..] else { return None };
    let is_hook = printed.contains("shell.") && hook.trim_matches(['"', '\'']) == "hook";
    let directory = program.trim_end_matches(['"', '\'']).strip_suffix("conda").filter(|_| is_hook)?;
    let file = if shell == "fish" { "etc/fish/conf.d/conda.fish" } else { "etc/profile.d/conda.sh" };
    if shell == "fish" || calls(root, b"__conda_activate") {
        return Some(Cure::of(recipe("conda-activates", &[], &[("file", file)]), spent.launched, None));
    }
    // If the file is missing, the line fails as if conda were missing.
    let quote = &program[program.trim_end_matches(['"', '\'']).len()..];
    let edit = directory.strip_suffix("bin/").filter(|_| matches!(shell, "bash" | "zsh")).and_then(|prefix| {
        let end = start + line[start..].find(')')?;
        Some((start..end, format!("< {prefix}{file}{quote}")))
    });
    Some(Cure::of(recipe("conda-file", &[], &[("file", file)]), spent.launched, edit))
}

fn calls(spent: &Spent, function: &[u8]) -> bool {
    spent.place.function.as_deref() == Some(function) || spent.inner.iter().any(|inner| calls(inner, function))
}

/// Saves the code that a program prints in a file, and writes the file again after an update of the
/// program.
fn saved_output(line: &str, shell: &str, spent: &Spent) -> Option<Cure> {
    let is_fish = shell == "fish";
    let (range, command) = if is_fish { piped(line) } else { evaluated(line) }?;
    let mut words = command.split_ascii_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let program = words.next()?;
    let arguments: Vec<&str> = words.filter(|word| !word.contains('>') && *word != "/dev/null").collect();
    let name = base_name(program.as_bytes());
    let bytes: Vec<&[u8]> = arguments.iter().map(|word| word.as_bytes()).collect();
    let is_constant = prints_constant_code(name, &bytes);
    let name = String::from_utf8_lossy(name);
    let plain =
        |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./~$\"'{} ".contains(letter));
    let parts = [&*name].into_iter().chain(arguments.iter().map(|word| word.trim_matches('-')));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let file = format!("{}.{shell}", parts.join("-").replace(['/', '~', '$'], "_"));
    let once = |command: String, (from, to): &(&str, &str)| match command.contains(to) {
        true => command,
        false => command.replacen(from, to, 1),
    };
    let saved = STARTED_ONCE.iter().fold(format!("{command} "), once);
    let cases =
        [if is_constant { "" } else { "unknown" }, if saved.contains("--no-rehash") { "rehash" } else { "" }, shell];
    let values =
        [("command", command), ("name", &name), ("file", &file), ("program", program), ("saved", saved.trim_end())];
    let recipe = recipe("start-up-output", &cases, &values);
    // The file must also be newer than the program's directory: a program from a package keeps the
    // time of its build. The file is moved into its place, because another shell may be about to
    // read it.
    let edit = (is_constant && plain(command)).then(|| (range, recipe.fix.concat()));
    Some(Cure::of(recipe, spent.launched, edit))
}

/// Like `evaluated`, for fish: `x init | source`, `source (x init | psub)`.
fn piped(line: &str) -> Option<(Range<usize>, &str)> {
    let at = line.find("| source").or_else(|| line.find("| psub)"))?;
    let is_psub = line[at..].starts_with("| psub)");
    let begin = if is_psub { "source (" } else { "" };
    let from = line[..at].rfind([';', '&', '(']).map_or(0, |before| before + 1);
    let words = line[from..at].trim();
    let command = words.strip_prefix("and ").or_else(|| words.strip_prefix("or ")).unwrap_or(words).trim();
    let start = line[..at].rfind(command)?;
    let end = at + if is_psub { "| psub)" } else { "| source" }.len();
    let is_complete =
        line[..start].ends_with(begin) && (is_psub || line[end..].trim_start_matches(" -").trim().is_empty());
    let is_command = !line.trim_start().starts_with('#') && !command.contains('|');
    (is_complete && is_command).then_some((start - begin.len()..end, command))
}

/// Returns the part of a line that executes what a command prints, and the command: `eval "$(x
/// init)"`, `. <(x init)`.
fn evaluated(line: &str) -> Option<(Range<usize>, &str)> {
    for (begin, opening, end) in
        [("eval \"$(", 8, ")\""), ("eval $(", 7, ")"), ("eval \"`", 7, "`\""), ("source <(", 9, ")"), (". <(", 4, ")")]
    {
        let Some(start) = position(line, begin) else { continue };
        let from = start + opening;
        let Some(length) = line[from..].rfind(end) else { continue };
        let command = line[from..from + length].trim();
        // The output of several commands would need several files.
        if command.contains(['(', ')', '`', '|', ';', '&']) {
            continue;
        }
        return Some((start..from + length + end.len(), command));
    }
    None
}

/// Finds these words at the beginning of a command.
fn position(line: &str, begin: &str) -> Option<usize> {
    let start = line.find(begin)?;
    let before = line[..start].trim_end();
    let starts_command = before.is_empty() || before.ends_with([';', '&', '|', '{', '(']) || before.ends_with("then");
    (starts_command && !line.trim_start().starts_with('#')).then_some(start)
}

/// Settings of oh-my-zsh: the file whose work they avoid, and the line that sets them.
const SETTINGS: [(&str, &str); 2] =
    [("nvm.plugin.zsh", "zstyle ':omz:plugins:nvm' lazy yes"), ("compaudit", "ZSH_DISABLE_COMPFIX=true")];

/// Sets options of a plugin framework, before the line that loads it.
fn framework_settings(line: &str, spent: &Spent) -> Vec<Cure> {
    let start = line.len() - line.trim_start().len();
    let is_framework = line.contains("oh-my-zsh.sh") && !line[start..].starts_with('#');
    let cure = |(file, setting): &(&str, &str)| {
        let edit = (start..start, format!("{setting}\n{}", &line[..start]));
        let recipe = recipe("start-up-setting", &[file], &[]);
        Cure::of(recipe, in_file(spent, file.as_bytes()), Some(edit))
    };
    let cures = SETTINGS.iter().filter(|_| is_framework).map(cure);
    cures.filter(|cure| cure.saving > Nanos(0)).collect()
}

/// Without -C, `compinit` checks all files and directories of completions at each start.
fn completion_cache(line: &str, shell: &str, spent: &Spent) -> Option<Cure> {
    let start = line.rfind("compinit").filter(|_| shell == "zsh")?;
    let end = start + "compinit".len();
    let is_command = !line[..start].ends_with(['$', '-', '_', '/']) && !line[..start].trim_end().ends_with("autoload");
    let is_loaded = line[..start].contains("autoload") && !line[..start].contains([';', '&']);
    if !is_command || is_loaded || line[end..].contains("-C") {
        return None;
    }
    Some(Cure::of(recipe("start-up-dump", &[], &[]), spent.total(), Some((end..end, " -C".to_owned()))))
}

fn in_file(spent: &Spent, name: &[u8]) -> Nanos {
    if spent.place.file.as_deref().is_some_and(|file| base_name(file) == name) {
        return spent.total();
    }
    Nanos(spent.inner.iter().map(|inner| in_file(inner, name).0).sum())
}

/// Loads a file when one of its commands is called, or at the first Tab.
fn loaded_later(line: &str, shell: &str, spent: &Spent) -> Option<Cure> {
    let (start, sourced) = sourced(line)?;
    let end = start + line[start..].find(" #").unwrap_or(line.len() - start);
    let file = sourced.trim_matches(['"', '\'']);
    let lazy = LAZY.iter().find(|(name, _)| file.ends_with(name));
    let (text, defines) = match lazy {
        Some((_, commands)) => (functions(commands, sourced), "commands"),
        None if shell == "bash" && file.ends_with("/bash_completion") => {
            let load = format!("_load_completions() {{ complete -r -D; . {sourced}; return 124; }}");
            (format!("{{ {load}; complete -D -F _load_completions; }}"), "completions")
        }
        None => return None,
    };
    let recipe = recipe("start-up-file", &[defines], &[("file", sourced)]);
    Some(Cure::of(recipe, spent.total(), Some((start..end, text))))
}

/// Returns the first line that uses a function from the file that `line` sources. If that file were
/// loaded later, such as at the first Tab, the function would be missing until then.
#[must_use]
pub fn user_of_sourced(content: &str, line: u32) -> Option<u32> {
    let mut lines = (1..).zip(content.lines());
    let (_, text) = lines.clone().nth(line as usize - 1)?;
    let sourced = sourced(text)?.1.trim_matches(['"', '\'']);
    let (_, begin) = USED_BY_OTHERS.iter().find(|(file, _)| sourced.ends_with(file))?;
    let uses = |text: &str| !text.trim_start().starts_with('#') && text.contains(begin);
    lines.find(|(number, text)| *number != line && uses(text)).map(|(number, _)| number)
}

/// Returns functions that load a file when one of them is called.
fn functions(commands: &str, sourced: &str) -> String {
    let function = |name: &str| format!("{name}() {{ unset -f {commands}; . {sourced}; {name} \"$@\"; }}");
    let functions: Vec<String> = commands.split(' ').map(function).collect();
    format!("{{ {}; }}", functions.join("; "))
}

/// Returns the file that a line sources as its last command, and where that command starts.
fn sourced(line: &str) -> Option<(usize, &str)> {
    let start = ["source ", "\\. ", ". "].iter().find_map(|begin| position(line, begin))?;
    let after = &line[start + line[start..].find(' ')?..];
    let file = after.split(" #").next()?.trim();
    let is_last = !file.contains([';', '&', '|', ' ', '<']);
    (is_last && !file.is_empty()).then_some((start, file))
}

/// Unless an option forbids it, `git status` searches all directories for untracked files.
fn git_status(line: &str, spent: &Spent) -> Option<Cure> {
    let end = line.find("git status")? + "git status".len();
    let is_told = ["-uno", "--untracked-files", "-u no"].iter().any(|option| line.contains(option));
    let edit = (end..end, " --untracked-files=no".to_owned());
    (!is_told && !line.trim_start().starts_with('#'))
        .then(|| Cure::of(recipe("start-up-status", &[], &[]), spent.launched, Some(edit)))
}

/// Returns the cure for a line that no other cure knows.
pub(super) fn general(spent: &Spent, at_prompt: bool) -> Cure {
    let is_most = |time: Nanos| time.0 * 2 > spent.total().0;
    let launched = spent.programs.first().filter(|program| is_most(program.time) && !program.name.starts_with(b"("));
    let name = launched.map(|program| String::from_utf8_lossy(&program.name)).unwrap_or_default();
    let case = if at_prompt { "prompt" } else { "" };
    Cure::of(recipe("start-up-line", &[case], &[("name", &name)]), spent.total(), None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::start_up::Place;

    fn cured(line: &str, shell: &str) -> Option<String> {
        let spent = Spent { own: Nanos(1), launched: Nanos(2), ..Spent::default() };
        let (range, text) = cures(line, shell, &spent, &spent).pop()?.edit?;
        let mut line = line.to_owned();
        line.replace_range(range, &text);
        Some(line)
    }

    #[test]
    fn printed_code_is_saved_where_the_guard_stays() {
        let cured = cured("command -v direnv >/dev/null && eval \"$(direnv hook bash)\" # hook", "bash").unwrap();
        assert!(cured.starts_with("command -v direnv >/dev/null && { _saved="), "{cured}");
        assert!(cured.contains("direnv hook bash >|\"$_saved.$$\"") && cured.ends_with("; } # hook"), "{cured}");
        assert!(self::cured("source <(kubectl completion zsh)", "zsh").unwrap().contains("whence -p kubectl"));
        for (line, command) in [
            ("eval \"$(pyenv init -)\"", "pyenv init - --no-rehash >"),
            ("eval \"$(pyenv init --path)\"", "pyenv init --path >"),
            ("eval \"$(rbenv init - bash)\"", "rbenv init - --no-rehash bash >"),
            ("eval \"$(starship init bash)\"", "starship init --print-full-init bash >"),
        ] {
            let cured = self::cured(line, "bash").unwrap();
            assert!(cured.contains(&format!("{{ mkdir -p \"${{_saved%/*}}\"; {command}")), "{cured}");
        }
        for (line, start) in [
            ("    starship init fish | source", "    begin; set -l _saved ~/.cache/starship-init-fish.fish; set"),
            ("type -q direnv; and direnv hook fish | source", "type -q direnv; and begin; set"),
            ("source (direnv hook fish | psub)", "begin; set"),
        ] {
            let cured = self::cured(line, "fish").unwrap();
            assert!(cured.starts_with(start) && cured.ends_with("; source $_saved; end"), "{cured}");
        }
    }

    #[test]
    fn output_that_may_differ_and_comments_are_left_alone() {
        for line in [
            "eval \"$(ssh-agent -s)\"",
            "eval \"$(mise activate bash)\"",
            "eval \"$(x init; y init)\"",
            "# eval \"$(direnv hook bash)\"",
            "echo hi",
        ] {
            assert_eq!(cured(line, "bash"), None, "{line}");
        }
    }

    #[test]
    fn a_file_is_loaded_when_its_commands_are_called() {
        let line = "[ -s \"$NVM_DIR/nvm.sh\" ] && \\. \"$NVM_DIR/nvm.sh\" # This loads nvm";
        let cured = cured(line, "bash").unwrap();
        assert!(cured.starts_with("[ -s \"$NVM_DIR/nvm.sh\" ] && { nvm() { unset -f nvm node npm npx; . "), "{cured}");
        assert!(cured.ends_with("npx \"$@\"; }; } # This loads nvm"), "{cured}");
        let completion = self::cured("    . /usr/share/bash-completion/bash_completion", "bash").unwrap();
        assert!(completion.starts_with("    { _load_completions() {"), "{completion}");
    }

    #[test]
    fn conda_is_not_started_to_print_its_own_file() {
        let line = "__conda_setup=\"$('/c/bin/conda' 'shell.bash' 'hook' 2> /dev/null)\"";
        assert_eq!(cured(line, "bash").unwrap(), "__conda_setup=\"$(< '/c/etc/profile.d/conda.sh')\"");
        let line = "eval \"$(\"$HOME/c/bin/conda\" shell.zsh hook)\"";
        assert_eq!(cured(line, "zsh").unwrap(), "eval \"$(< \"$HOME/c/etc/profile.d/conda.sh\")\"");
        // The printed code differs from the file, or the file is unknown.
        let place = Place { function: Some(b"__conda_activate".to_vec()), ..Place::default() };
        let activating = Spent { place, ..Spent::default() };
        let fish = "    eval /c/bin/conda \"shell.fish\" \"hook\" $argv | source";
        for (line, shell) in [(line, "zsh"), ("eval \"$__conda_setup\"", "bash"), (fish, "fish")] {
            let cure = cures(line, shell, &activating, &activating).pop().unwrap();
            assert!(cure.edit.is_none() && cure.title.contains("auto_activate_base false"), "{cure:?}");
        }
        assert_eq!(cured("eval \"$(conda shell.bash hook)\"", "bash"), None);
    }

    #[test]
    fn a_file_of_which_another_line_uses_a_function_is_found() {
        let completion = ". /usr/share/bash-completion/bash_completion\n# __git_ps1\n";
        assert_eq!(user_of_sourced(completion, 1), None);
        assert_eq!(user_of_sourced(&format!("{completion}PS1='$(__git_ps1)$ '\n"), 1), Some(3));
        let nvm = "f() { nvm_find_nvmrc; }\n[ -s $NVM_DIR/nvm.sh ] && . $NVM_DIR/nvm.sh # it\n";
        assert_eq!((user_of_sourced(nvm, 2), user_of_sourced(nvm, 1)), (Some(1), None));
    }

    #[test]
    fn git_is_not_asked_for_untracked_files() {
        let line = "  dirty=$(git status --porcelain)";
        assert_eq!(cured(line, "zsh").unwrap(), "  dirty=$(git status --untracked-files=no --porcelain)");
        assert_eq!(cured("git status -uno", "zsh"), None);
    }

    #[test]
    fn completions_are_not_checked_again() {
        assert_eq!(cured("autoload -Uz compinit && compinit", "zsh").unwrap(), "autoload -Uz compinit && compinit -C");
        assert_eq!(cured("compinit -i", "zsh").unwrap(), "compinit -C -i");
        assert_eq!(cured("compinit -C", "zsh"), None);
        assert_eq!(cured("autoload -Uz compinit", "zsh"), None);
    }
}
