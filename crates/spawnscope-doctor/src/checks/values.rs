//! Formats values of environment variables for display. They may contain secrets, so only the part that matters for the finding is shown.

use spawnscope_data::units;

const MASK: &str = "***";

/// Returns a list of paths, in which assigned values (`name=...`) and everything after the scheme of a URL are masked.
pub(super) fn without_secrets(value: &str) -> String {
    value.split(' ').map(mask_word).collect::<Vec<_>>().join(" ")
}

fn mask_word(word: &str) -> String {
    match word.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{MASK}"),
        None => word.split(':').map(mask_assignment).collect::<Vec<_>>().join(":"),
    }
}

fn mask_assignment(text: &str) -> String {
    match text.split_once('=') {
        Some((name, _)) => format!("{name}={MASK}"),
        None => text.to_owned(),
    }
}

/// Returns the program of a command line, and the number of its arguments.
pub(super) fn program(command: &str) -> String {
    let mut words = command.split_whitespace();
    let program = without_secrets(words.next().unwrap_or_default());
    match words.count() {
        0 => program,
        others => format!("{program} with {}", units::counted(others as u64, "argument", "arguments")),
    }
}

/// Returns the words of a value that load code through one of `options`, and the number of other words.
pub(super) fn loading_words(value: &str, options: &[&str]) -> (Vec<String>, usize) {
    let mut words = value.split_whitespace();
    let (mut loading, mut others) = (Vec::new(), 0);
    while let Some(word) = words.next() {
        // The longest match counts, because one option may be a prefix of another.
        let option = options.iter().filter(|option| word.starts_with(*option)).max_by_key(|option| option.len());
        match option.map(|option| word.split_at(option.len())) {
            Some((option, "")) => loading.push(format!("{option} {}", file(words.next().unwrap_or_default()))),
            Some((option, rest)) => loading.push(format!("{option}{}", file_after_separator(rest))),
            None => others += 1,
        }
    }
    (loading, others)
}

/// Returns `=FILE`, `:FILE` or `FILE`, without the options passed to the file.
fn file_after_separator(text: &str) -> String {
    let has_separator = text.starts_with(['=', ':']);
    let (separator, name) = text.split_at(usize::from(has_separator));
    format!("{separator}{}", file(name))
}

/// Returns the file that is loaded; the options passed to it are masked.
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
    fn only_options_that_load_code_are_shown() {
        let java = ["-javaagent", "-agentlib", "-agentpath"];
        let value = "-javaagent:/a.jar=user,hunter2 -Ddb.password=hunter2 -Xmx1g";
        assert_eq!(loading_words(value, &java), (vec!["-javaagent:/a.jar=***".to_owned()], 2));
        let node = ["--require", "-r", "--import"];
        let value = "--require /opt/agent.js --import=https://me:hunter2@host/x.mjs --title hunter2";
        let shown = vec!["--require /opt/agent.js".to_owned(), "--import=https://***".to_owned()];
        assert_eq!(loading_words(value, &node), (shown, 2));
        assert_eq!(loading_words("-rdebug -w", &["-r"]), (vec!["-rdebug".to_owned()], 1));
    }

    #[test]
    fn only_the_program_of_a_command_is_shown() {
        assert_eq!(program("/x/monitor --token hunter2"), "/x/monitor with 2 arguments");
        assert_eq!(program("/x/monitor"), "/x/monitor");
    }

    #[test]
    fn paths_are_shown_without_assigned_values_and_url_contents() {
        assert_eq!(without_secrets("/opt/a:/opt/b /c"), "/opt/a:/opt/b /c");
        assert_eq!(without_secrets("/a.so:password=hunter2:/b"), "/a.so:password=***:/b");
        assert_eq!(without_secrets("https://me:hunter2@host/"), "https://***");
    }
}
