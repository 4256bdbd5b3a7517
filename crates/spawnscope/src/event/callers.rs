//! Places in programs: the frames of a call chain, from the innermost outwards.

/// What a frame is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    /// Machine code, whatever it was compiled from.
    Native,
    /// The kernel's own code.
    Kernel,
    /// A script of bash.
    Bash,
    /// A script of dash.
    Dash,
    /// A program in Python.
    Python,
}

impl Language {
    /// Every language, in the order of their numbers in a recording.
    pub const ALL: [Language; 5] = [
        Language::Native,
        Language::Kernel,
        Language::Bash,
        Language::Dash,
        Language::Python,
    ];

    /// The name in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Language::Native => "native",
            Language::Kernel => "kernel",
            Language::Bash => "bash",
            Language::Dash => "dash",
            Language::Python => "python",
        }
    }

    /// Whether an interpreter runs it from source lines.
    #[must_use]
    pub fn is_script(self) -> bool {
        matches!(self, Language::Bash | Language::Dash | Language::Python)
    }
}

/// One place in a program. What is not known is `None`, and never guessed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// What it is written in.
    pub language: Language,
    /// The function; `None` also outside of all functions of a script.
    pub function: Option<Vec<u8>>,
    /// The source file.
    pub file: Option<Vec<u8>>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// The ELF file that holds the machine code.
    pub module: Option<Vec<u8>>,
    /// Where in that file's own numbering of addresses, or, when it could not be read, how far into it; without `module`,
    /// in the process's memory. Of all but the innermost frame, where the call returns to.
    pub address: Option<u64>,
    /// Whether the compiler put it into the next frame outwards.
    pub is_inlined: bool,
}

impl Frame {
    /// A frame of which nothing is known but its language.
    #[must_use]
    pub fn unknown(language: Language) -> Frame {
        Frame {
            language,
            function: None,
            file: None,
            line: None,
            module: None,
            address: None,
            is_inlined: false,
        }
    }
}

/// A call chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    /// From the innermost outwards.
    pub frames: Vec<Frame>,
    /// Whether more frames follow outwards that could not be read.
    pub is_truncated: bool,
}
