//! Splits a shell line into its simple commands and their words, as far as documents need it:
//! quotes, comments, pipes, lists, redirections.

use std::iter::Peekable;
use std::str::Chars;

/// Returns the commands of a line, each as its words.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let mut splitter = Splitter::default();
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ' ' => splitter.end_word(),
            '#' if splitter.word.is_none() => break,
            '\'' | '"' => {
                let quoted: String = rest.by_ref().take_while(|inside| *inside != c).collect();
                splitter.word().push_str(&quoted);
            }
            '\\' => splitter.word().extend(rest.next()),
            '$' if rest.next_if_eq(&'(').is_some() => {
                let inside = substitution(&mut rest);
                splitter.word().push_str(&inside);
            }
            '|' | ';' | '&' => splitter.end_command(),
            '<' | '>' => splitter.redirect(&mut rest),
            c => splitter.word().push(c),
        }
    }
    splitter.end_command();
    splitter.commands
}

/// Consumes the rest of a `$(...)`, and returns a value that may stand for its output.
fn substitution(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut depth = 1;
    for c in rest.by_ref() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            break;
        }
    }
    "1".to_owned()
}

#[derive(Default)]
struct Splitter {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// Whether the next word is the file of a redirection.
    is_target: bool,
}

impl Splitter {
    fn word(&mut self) -> &mut String {
        self.word.get_or_insert_default()
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.is_target)
        {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        self.commands.extend((!words.is_empty()).then_some(words));
    }

    /// Handles the operator of a redirection. A number directly before the operator is a
    /// descriptor, and the word after it is a file.
    fn redirect(&mut self, rest: &mut Peekable<Chars<'_>>) {
        self.word = self.word.take().filter(|word| !word.chars().all(|c| c.is_ascii_digit()));
        self.end_word();
        while rest.next_if(|c| ">& ".contains(*c)).is_some() {}
        self.is_target = true;
    }
}

#[test]
fn lines_are_split_as_by_a_shell() {
    let line = "sudo a 'b c'\"d\" $(e f) 2>g | h >i --j; k\\ l # m";
    assert_eq!(commands(line), [vec!["sudo", "a", "b cd", "1"], vec!["h", "--j"], vec!["k l"]]);
    assert_eq!(commands("a 2>&1 >/dev/null b#c"), [["a", "b#c"]]);
    assert_eq!(commands("# only a comment"), Vec::<Vec<String>>::new());
}
