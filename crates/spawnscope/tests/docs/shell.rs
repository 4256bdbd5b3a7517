//! Splits a shell line into its simple commands and their words, as far as documents need it:
//! quotes, comments, pipes, lists, redirections.

/// Returns the commands of a line, each as its words.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words) = (vec![Vec::new()], shlex::Shlex::new(line));
    while let Some(word) = words.next() {
        let last = commands.last_mut().unwrap();
        let operator = word.trim_start_matches(|c: char| c.is_ascii_digit());
        if operator.starts_with(['<', '>']) {
            // The file is in this word or the next one.
            let _file = operator.ends_with(['<', '>']).then(|| words.next());
        } else if word.starts_with("$(") {
            let _rest = (!word.ends_with(')')).then(|| words.find(|word| word.ends_with(')')));
            // A value that may stand for its output.
            last.push("1".to_owned());
        } else if ["|", "||", "&&", "&", ";"].contains(&word.as_str()) {
            commands.push(Vec::new());
        } else if let Some(end) = word.strip_suffix(';') {
            last.push(end.to_owned());
            commands.push(Vec::new());
        } else {
            last.push(word);
        }
    }
    commands.retain(|words| !words.is_empty());
    commands
}

#[test]
fn lines_are_split_as_by_a_shell() {
    let line = "sudo a 'b c'\"d\" $(e f) 2>g | h >i --j; k\\ l # m";
    assert_eq!(commands(line), [vec!["sudo", "a", "b cd", "1"], vec!["h", "--j"], vec!["k l"]]);
    assert_eq!(commands("a 2>&1 >/dev/null b#c"), [["a", "b#c"]]);
    assert_eq!(commands("# only a comment"), Vec::<Vec<String>>::new());
}
