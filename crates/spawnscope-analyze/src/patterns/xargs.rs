//! The options of `xargs`.

/// What the options in a command line of `xargs` say.
#[derive(Default)]
pub(crate) struct XargsOptions {
    /// The positions of the words that restrict it to one input.
    pub(crate) single: Vec<usize>,
    /// The text that stands for an input.
    pub(crate) placeholder: Option<Vec<u8>>,
    /// The number of parallel processes, as it is written.
    pub(crate) parallel: Option<Vec<u8>>,
    /// Whether the options say what is between inputs.
    pub(crate) has_separator: bool,
    pub(crate) other: Option<usize>,
    /// The position of the program.
    pub(crate) command: usize,
}

/// Long options and their letters.
const LONG: [(&[u8], u8); 7] = [
    (b"--max-args", b'n'),
    (b"--max-lines", b'L'),
    (b"--max-procs", b'P'),
    (b"--replace", b'i'),
    (b"--delimiter", b'd'),
    (b"--null", b'0'),
    (b"--no-run-if-empty", b'r'),
];

impl XargsOptions {
    /// Reads the options. The first word is the program itself.
    pub(crate) fn of(words: &[&[u8]]) -> XargsOptions {
        let mut options = XargsOptions { command: 1, ..XargsOptions::default() };
        while let Some(word) = words.get(options.command).filter(|word| word.starts_with(b"-")) {
            let at = options.command;
            let (option, joined) = split(word);
            let has_next = joined.is_empty() && word.len() == 2 && b"nLPIdsEa".contains(&option);
            let value = if has_next { words.get(at + 1).copied().unwrap_or_default() } else { joined };
            options.command += 1 + usize::from(has_next);
            match option {
                b'n' | b'L' if value == b"1" => options.single.extend(at..options.command),
                b'I' | b'i' => {
                    options.placeholder = Some(if value.is_empty() { b"{}".to_vec() } else { value.to_vec() });
                    options.single.extend(at..options.command);
                }
                b'P' => options.parallel = Some(value.to_vec()),
                b'0' | b'd' => options.has_separator = true,
                b'r' if matches!(value, b"" | b"0") => options.has_separator |= value == b"0",
                _ => options.other = options.other.or(Some(at)),
            }
        }
        options
    }
}

/// Returns the letter of an option, and its value in the same word.
fn split(word: &[u8]) -> (u8, &[u8]) {
    if !word.starts_with(b"--") {
        return (word.get(1).copied().unwrap_or_default(), word.get(2..).unwrap_or_default());
    }
    let end = word.iter().position(|byte| *byte == b'=').unwrap_or(word.len());
    let letter = LONG.iter().find(|(long, _)| *long == &word[..end]).map_or(0, |(_, letter)| *letter);
    (letter, word.get(end + 1..).unwrap_or_default())
}
