//! How values of environment variables are shown. They may contain secrets, so only the part that the finding is about is shown.

use spawnscope_data::units;

const MASK: &str = "***";

/// A list of paths, with assigned values (`name=...`) and everything after the scheme of a URL masked.
pub(super) fn without_secrets(value: &str) -> String {
    let masked = |path: &str| match path.split_once('=') {
        Some((name, _)) => format!("{name}={MASK}"),
        None => path.to_owned(),
    };
    let word = |word: &str| match word.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{MASK}"),
        None => word.split(':').map(masked).collect::<Vec<_>>().join(":"),
    };
    value.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The program of a command line, and the number of its arguments.
pub(super) fn program(command: &str) -> String {
    let mut words = command.split_whitespace();
    let program = without_secrets(words.next().unwrap_or_default());
    match words.count() {
        0 => program,
        others => format!("{program} and {}", units::counted(others as u64, "word", "words")),
    }
}

/// The words of a variable that load code by one of these options, and the number of other words.
pub(super) fn loading(value: &str, options: &[&str]) -> (Vec<String>, usize) {
    let mut words = value.split_whitespace();
    let (mut loading, mut others) = (Vec::new(), 0);
    while let Some(word) = words.next() {
        // The longest match: one option may be a prefix of another.
        let option = options
            .iter()
            .filter(|option| word.starts_with(*option))
            .max_by_key(|option| option.len());
        match option.map(|option| word.split_at(option.len())) {
            Some((option, "")) => loading.push(format!("{option} {}", file(words.next().unwrap_or_default()))),
            Some((option, rest)) => loading.push(format!("{option}{}", file_behind_sign(rest))),
            None => others += 1,
        }
    }
    (loading, others)
}

/// Masks `=FILE`, `:FILE`, or `FILE`.
fn file_behind_sign(text: &str) -> String {
    let is_sign = text.starts_with(['=', ':']);
    let (sign, name) = text.split_at(usize::from(is_sign));
    format!("{sign}{}", file(name))
}

/// The loaded file, without the options passed to it.
fn file(text: &str) -> String {
    if let Some((scheme, _)) = text.split_once("://") {
        return format!("{scheme}://{MASK}");
    }
    match text.find(['=', ',', '?', '@']) {
        Some(end) => format!("{}{MASK}", &text[..=end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_options_only_what_is_loaded_is_shown() {
        let java = ["-javaagent", "-agentlib", "-agentpath"];
        let value = "-javaagent:/a.jar=user,hunter2 -Ddb.password=hunter2 -Xmx1g";
        assert_eq!(loading(value, &java), (vec!["-javaagent:/a.jar=***".to_owned()], 2));
        let node = ["--require", "-r", "--import"];
        let value = "--require /opt/agent.js --import=https://me:hunter2@host/x.mjs --title hunter2";
        let shown = vec!["--require /opt/agent.js".to_owned(), "--import=https://***".to_owned()];
        assert_eq!(loading(value, &node), (shown, 2));
        assert_eq!(loading("-rdebug -w", &["-r"]), (vec!["-rdebug".to_owned()], 1));
    }

    #[test]
    fn of_a_command_only_its_program_is_shown() {
        assert_eq!(program("/x/monitor --token hunter2"), "/x/monitor and 2 words");
        assert_eq!(program("/x/monitor"), "/x/monitor");
    }

    #[test]
    fn of_places_only_their_names_are_shown() {
        assert_eq!(without_secrets("/opt/a:/opt/b /c"), "/opt/a:/opt/b /c");
        assert_eq!(without_secrets("/a.so:password=hunter2:/b"), "/a.so:password=***:/b");
        assert_eq!(without_secrets("https://me:hunter2@host/"), "https://***");
    }
}
