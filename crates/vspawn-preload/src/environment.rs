//! The environment that a shell passes to its only command. dash and bash set PWD; bash also sets
//! `_` and SHLVL; dash drops entries whose name is not a valid variable name. If a variable changes
//! what a shell does, the shell is used. All of this was measured with dash 0.5.12 and bash 5.2.15.
//!
//! Only the order of the variables differs: shells pass them on in the order of their hash tables,
//! which has no meaning for a program.

use libc::c_char;

use crate::shell::Shell;
use crate::strings::{PATH_LIMIT, PathBuffer, bytes, entries, is_directory, is_same_file, status_of};

/// The largest number of variables. With more, the shell is used.
pub const VARIABLES_MAX: usize = 512;
/// The size of the table of names that were seen, in bits.
const SEEN_BITS: usize = 1024;

/// Variables that both shells treat in a special way.
const SPECIAL: [&[u8]; 7] = [b"OPTIND", b"PPID", b"LINENO", b"ENV", b"BASH_ENV", b"HISTSIZE", b"ATTY"];
/// Variables that bash sets, reads at its start, or does not pass on. Those that begin with BASH
/// are all special.
const SPECIAL_TO_BASH: &[u8] = b"CHILD_MAX COMP_WORDBREAKS COPROC DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID EXECIGNORE \
    FIGNORE FUNCNAME FUNCNEST GLOBIGNORE GROUPS HISTCMD HISTCONTROL HISTIGNORE HOSTTYPE \
    IGNOREEOF ignoreeof LOCPATH MACHTYPE OPTARG OPTERR OSTYPE PIPESTATUS POSIXLY_CORRECT \
    POSIX_PEDANTIC PS1 PS2 PS4 RANDOM SECONDS SHELLOPTS SRANDOM SSH2_CLIENT SSH_CLIENT \
    TEXTDOMAIN TEXTDOMAINDIR UID";
/// The value of IFS that both shells start with, whatever their environment says. They pass it on
/// if their environment has IFS.
const INITIAL_IFS: &[u8] = b" \t\n";
/// Locales that exist everywhere. For any other locale, bash prints a warning if it is not
/// installed.
const LOCALES: [&[u8]; 5] = [b"", b"C", b"POSIX", b"C.UTF-8", b"C.utf8"];

/// The environment of a command, on the stack.
pub struct Environment {
    /// The variables, ended by NULL.
    variables: [*const c_char; VARIABLES_MAX + 5],
    count: usize,
    /// A bit for each hash of a name. Names are compared only if the bit was set before.
    seen: [bool; SEEN_BITS],
    /// The variable PWD, if it has to be set.
    working_directory: PathBuffer,
    /// bash's variable `_`.
    last_command: PathBuffer,
}

/// Properties of the environment that decide whether the shell can be skipped.
pub struct ShellConditions<'a> {
    pub path: Option<&'a [u8]>,
    /// Whether SHLVL is unset or 0. If, in addition, standard input is a socket, bash assumes that
    /// rshd or sshd started it, and reads start-up files.
    pub is_first_level: bool,
}

impl Environment {
    pub const fn new() -> Environment {
        Environment {
            variables: [core::ptr::null(); VARIABLES_MAX + 5],
            count: 0,
            seen: [false; SEEN_BITS],
            working_directory: PathBuffer::new(),
            last_command: PathBuffer::new(),
        }
    }

    pub fn as_ptr(&self) -> *const *const c_char {
        self.variables.as_ptr()
    }

    /// Reads the environment that a shell would get. Returns `None` if only the shell can treat it
    /// correctly.
    ///
    /// # Safety
    /// `environment` is an array of C strings that ends with NULL, and outlives this value.
    pub unsafe fn read<'a>(&mut self, shell: Shell, environment: *const *const c_char) -> Option<ShellConditions<'a>> {
        let mut conditions = ShellConditions { path: None, is_first_level: true };
        let (mut has_level, mut has_directory) = (false, false);
        // SAFETY: as the caller promises.
        for mut variable in unsafe { entries(environment) } {
            // SAFETY: each entry is a C string.
            let text: &'a [u8] = unsafe { bytes(variable) };
            let equals = text.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
            let (name, value) = (text.get(..equals)?, text.get(equals + 1..)?);
            let is_valid = is_valid_name(name);
            // bash keeps entries with other names in a separate list; dash ignores them.
            if is_special(shell, name, value) || !is_valid && shell == Shell::Bash {
                return None;
            }
            if !is_valid {
                continue;
            }
            match name {
                b"PATH" => conditions.path = Some(value),
                b"PWD" => {
                    has_directory = true;
                    if !is_working_directory(value)? {
                        variable = self.set_working_directory()?;
                    }
                }
                b"SHLVL" if shell == Shell::Bash => {
                    has_level = true;
                    conditions.is_first_level = !is_level_positive(value)?;
                }
                // `finish` sets it.
                b"_" if shell == Shell::Bash => continue,
                _ => {}
            }
            self.add(variable, name)?;
        }
        self.add_missing(has_directory, has_level || shell != Shell::Bash)?;
        Some(conditions)
    }

    /// Adds what a shell sets itself.
    fn add_missing(&mut self, has_directory: bool, has_level: bool) -> Option<()> {
        if !has_directory {
            let variable = self.set_working_directory()?;
            self.add(variable, b"PWD")?;
        }
        if has_level { Some(()) } else { self.add(c"SHLVL=0".as_ptr(), b"SHLVL") }
    }

    /// Sets bash's `_`.
    pub fn finish(&mut self, shell: Shell, program: &[u8]) -> Option<()> {
        if shell == Shell::Bash {
            self.last_command.set(&[b"_=", program]).then_some(())?;
            self.add(self.last_command.as_ptr(), b"_")?;
        }
        Some(())
    }

    /// Adds a variable. Returns `None` for a duplicate variable, or too many variables.
    fn add(&mut self, variable: *const c_char, name: &[u8]) -> Option<()> {
        let hash = name.iter().fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        let was_seen = core::mem::replace(self.seen.get_mut(hash % SEEN_BITS)?, true);
        let has_name = |other: &*const c_char| {
            // SAFETY: all variables are C strings.
            let other = unsafe { bytes(*other) };
            other.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&b'='))
        };
        // The last entry stays NULL.
        if self.count > VARIABLES_MAX + 3 || was_seen && self.variables.iter().take(self.count).any(has_name) {
            return None;
        }
        *self.variables.get_mut(self.count)? = variable;
        self.count += 1;
        Some(())
    }

    /// Sets PWD to the path of the working directory. Returns `None` if the directory has no path.
    fn set_working_directory(&mut self) -> Option<*const c_char> {
        let buffer = self.working_directory.as_mut_slice();
        buffer.get_mut(..4)?.copy_from_slice(b"PWD=");
        let room = buffer.get_mut(4..)?;
        // SAFETY: the buffer has that size. This is the raw system call because libc's getcwd may
        // allocate.
        let length = unsafe { libc::syscall(libc::SYS_getcwd, room.as_mut_ptr(), PATH_LIMIT - 4) };
        // A directory outside of the root is "(unreachable)/...".
        (length > 0 && room.first() == Some(&b'/')).then(|| self.working_directory.as_ptr())
    }
}

fn is_special(shell: Shell, name: &[u8], value: &[u8]) -> bool {
    let is_special_to_both = match name {
        b"IFS" => value != INITIAL_IFS,
        b"SPAWNSCOPE_ACCEL" => value == b"0",
        _ => SPECIAL.contains(&name),
    };
    if is_special_to_both {
        return true;
    }
    if shell == Shell::Dash {
        return false;
    }
    name.starts_with(b"BASH")
        || SPECIAL_TO_BASH.split(|byte| *byte == b' ').any(|special| special == name)
        || (name.starts_with(b"LC_") && !LOCALES.contains(&value))
        || (name == b"OLDPWD" && !is_kept_as_oldpwd(value))
}

/// Whether bash would keep OLDPWD.
fn is_kept_as_oldpwd(path: &[u8]) -> bool {
    let mut buffer = PathBuffer::new();
    path.first() == Some(&b'/') && buffer.set(&[path]) && is_directory(buffer.as_ptr())
}

fn is_valid_name(name: &[u8]) -> bool {
    !matches!(name.first(), None | Some(b'0'..=b'9'))
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Returns whether PWD names the working directory, or `None` if the shells may change its
/// spelling.
fn is_working_directory(value: &[u8]) -> Option<bool> {
    if value.first() != Some(&b'/') {
        return Some(false);
    }
    let mut parts = value.split(|byte| *byte == b'/').skip(1);
    if value != b"/" && parts.any(|part| matches!(part, b"" | b"." | b"..")) {
        return None;
    }
    let mut path = PathBuffer::new();
    if !path.set(&[value]) {
        return None;
    }
    let here = status_of(c".".as_ptr()).ok()?;
    Some(status_of(path.as_ptr()).is_ok_and(|named| is_same_file(&named, &here)))
}

/// Returns whether SHLVL is above 0, or `None` if bash would rewrite it. (bash adds 1 and subtracts
/// 1, so only a plain number stays the same.)
fn is_level_positive(value: &[u8]) -> Option<bool> {
    let is_number =
        matches!(value, [b'0'..=b'9'] | [b'1'..=b'9', b'0'..=b'9'] | [b'1'..=b'8', b'0'..=b'9', b'0'..=b'9']);
    is_number.then_some(value != b"0")
}
