//! Call chains and their frames.

crate::named_enum! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Language {
        /// Machine code of any source language.
        #[default]
        Native = "native",
        Kernel = "kernel",
        Bash = "bash",
        Dash = "dash",
        Python = "python",
        Perl = "perl",
        /// A makefile of GNU make. The function of its frames is the target.
        Make = "make",
        Node = "node",
        Zsh = "zsh",
    }
}

impl Language {
    /// Whether an interpreter runs this language from source lines.
    pub fn is_script(self) -> bool {
        !matches!(self, Language::Native | Language::Kernel)
    }
}

/// One frame of a call chain. A field whose value is unknown is `None`; no value is guessed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    pub language: Language,
    /// The function; in a makefile, the target. Also `None` at the top level of a script.
    pub function: Option<Vec<u8>>,
    pub file: Option<Vec<u8>>,
    /// The line in `file`, counted from 1.
    pub line: Option<u32>,
    /// For machine code, the ELF file that contains it; for a makefile, the template that it was
    /// generated from.
    pub module: Option<Vec<u8>>,
    /// The virtual address in `module`, or the file offset if that file could not be read; without
    /// `module`, the address in the process's memory. In all frames but the innermost, this is the
    /// return address.
    pub address: Option<u64>,
    /// Whether the compiler inlined the function into the next frame outwards.
    pub is_inlined: bool,
}

impl Frame {
    /// Returns a frame of which only the language is known.
    pub fn unknown(language: Language) -> Frame {
        Frame { language, function: None, file: None, line: None, module: None, address: None, is_inlined: false }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    /// The frames, the innermost first.
    pub frames: Vec<Frame>,
    /// Whether there are further outer frames, which could not be read.
    pub is_truncated: bool,
}
