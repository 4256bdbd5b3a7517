//! Decides whether one `sh -c TEXT` needs its shell. If not, the plan has the program, its
//! arguments and its environment.

use core::mem::MaybeUninit;

use libc::{c_char, c_int, sigset_t};
use vspawn_shell::Refusal;

use crate::environment::Environment;
use crate::program::find;
use crate::redirect::{ErrorDestination, error_destination, will_succeed};
use crate::settings::{Counter, count, settings};
use crate::shell::{Shell, is_named_as_shell, shell_at};
use crate::strings::{PathBuffer, bytes};
use crate::text::{WORDS_MAX, Words};

/// The launch that replaces a shell. Its 20 KiB are on the stack of the caller, so it is filled in
/// place.
pub struct Plan {
    words: Words,
    arguments: [*const c_char; WORDS_MAX + 1],
    program: PathBuffer,
    environment: Environment,
}

/// The conditions in which the launched process would start, as far as the caller determines them.
#[derive(Clone, Copy)]
pub struct Start {
    /// The signal mask. `None` means that of this thread.
    pub mask: Option<sigset_t>,
    /// Whether the process inherits standard input from this one.
    pub inherits_input: bool,
    pub redirections: Redirections,
}

/// Which redirections the caller can carry out as the shell does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Redirections {
    None,
    /// Those that leave standard error unchanged or send it to `/dev/null`, so that the shell's
    /// message about a killed command can be printed, or omitted.
    WithKnownMessage,
    All,
}

impl Start {
    pub const INHERITED: Start = Start { mask: None, inherits_input: true, redirections: Redirections::All };
}

impl Plan {
    pub const fn new() -> Plan {
        Plan {
            words: Words::new(),
            arguments: [core::ptr::null(); WORDS_MAX + 1],
            program: PathBuffer::new(),
            environment: Environment::new(),
        }
    }

    pub fn program(&self) -> *const c_char {
        self.program.as_ptr()
    }

    /// Returns the command's words, and its redirections, which the caller carries out.
    pub fn words(&self) -> &Words {
        &self.words
    }

    pub fn arguments(&self) -> *const *const c_char {
        self.arguments.as_ptr()
    }

    pub fn environment(&self) -> *const *const c_char {
        self.environment.as_ptr()
    }

    /// Decides whether an exec needs its shell, and counts the reason if so. Returns the shell if
    /// it is not needed.
    ///
    /// # Safety
    /// The arguments are valid for `execve`, and outlive this value.
    pub unsafe fn decide(
        &mut self,
        path: *const c_char,
        argv: *const *const c_char,
        environment: *const *const c_char,
        start: Start,
    ) -> Option<Shell> {
        if !settings().is_on || path.is_null() || argv.is_null() || environment.is_null() {
            return None;
        }
        // SAFETY: as the caller promises.
        let text = unsafe { is_named_as_shell(path).then(|| command_text(argv)).flatten() }?;
        // SAFETY: as the caller promises.
        match unsafe { self.fill(path, text, environment, start) } {
            Ok(shell) => Some(shell),
            Err(counter) => {
                count(counter);
                None
            }
        }
    }

    unsafe fn fill(
        &mut self,
        path: *const c_char,
        text: &[u8],
        environment: *const *const c_char,
        start: Start,
    ) -> Result<Shell, Counter> {
        self.words.read(text).map_err(|refusal| match refusal {
            Refusal::Builtin => Counter::Builtin,
            Refusal::TooLong | Refusal::Syntax => Counter::Syntax,
        })?;
        let shell = shell_at(path).ok_or(Counter::UnknownShell)?;
        if settings().is_strict && shell == Shell::Dash {
            return Err(Counter::Strict);
        }
        // bash executes a simple command without a fork, but forks for one with redirections, and
        // then reports how it ended with a message of its own.
        if !self.words.redirections().is_empty() && (shell == Shell::Bash || !self.can_redirect(start.redirections)) {
            return Err(Counter::Redirection);
        }
        if !start.mask.is_none_or(|mask| is_empty(&mask)) || !is_ordinary_process(start.mask.is_none()) {
            return Err(Counter::Process);
        }
        // SAFETY: as the caller promises.
        let conditions = unsafe { self.environment.read(shell, environment) }.ok_or(Counter::Environment)?;
        if shell == Shell::Bash && conditions.is_first_level && (!start.inherits_input || is_input_a_socket()) {
            return Err(Counter::Process);
        }
        if !find(self.words.get(0), conditions.path, &mut self.program) {
            return Err(Counter::Program);
        }
        self.environment.finish(shell, self.program.as_bytes()).ok_or(Counter::Environment)?;
        for (index, argument) in self.arguments.iter_mut().take(self.words.count()).enumerate() {
            *argument = self.words.get(index).as_ptr().cast();
        }
        Ok(shell)
    }

    fn can_redirect(&self, redirections: Redirections) -> bool {
        let is_possible = match redirections {
            Redirections::None => false,
            Redirections::WithKnownMessage => error_destination(&self.words) != ErrorDestination::Elsewhere,
            Redirections::All => true,
        };
        is_possible && will_succeed(&self.words)
    }
}

/// Returns the TEXT of `sh -c TEXT`, or `None` for other arguments.
unsafe fn command_text<'a>(argv: *const *const c_char) -> Option<&'a [u8]> {
    let mut arguments = [core::ptr::null(); 3];
    for (index, argument) in arguments.iter_mut().enumerate() {
        // SAFETY: the array ends with NULL, at which this loop ends.
        *argument = unsafe { *argv.add(index) };
        if argument.is_null() {
            return None;
        }
    }
    let [shell, option, text] = arguments;
    // SAFETY: three arguments are there, so that a fourth entry is; arguments are C strings.
    unsafe {
        let is_command = (*argv.add(3)).is_null() && bytes(option) == b"-c";
        // A shell whose argv[0] begins with a hyphen is a login shell.
        (is_command && is_named_as_shell(shell) && !bytes(shell).starts_with(b"-")).then(|| bytes(text))
    }
}

fn is_empty(mask: &sigset_t) -> bool {
    // SAFETY: signals from 1 to 64 are valid.
    (1..=64).all(|signal: c_int| unsafe { libc::sigismember(mask, signal) } != 1)
}

/// Whether a shell would pass on its signals and ids unchanged: dash empties the signal mask, and
/// both shells change their behaviour if SIGCHLD is ignored or the real and effective ids differ.
pub fn is_ordinary_process(checks_mask: bool) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let mut mask = 0_u64;
    // SAFETY: both buffers are what the calls fill; the ids are only read. The kernel's mask has 8
    // bytes.
    unsafe {
        if libc::sigaction(libc::SIGCHLD, core::ptr::null(), action.as_mut_ptr()) != 0
            || action.assume_init().sa_sigaction == libc::SIG_IGN
        {
            return false;
        }
        if checks_mask {
            let no_new_mask: *const u64 = core::ptr::null();
            let failed = libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, no_new_mask, &raw mut mask, 8_usize);
            if failed != 0 || mask != 0 {
                return false;
            }
        }
        libc::getuid() == libc::geteuid() && libc::getgid() == libc::getegid()
    }
}

/// Whether standard input is a socket. bash then assumes that rshd or sshd started it, and reads
/// start-up files.
fn is_input_a_socket() -> bool {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the buffer is a stat, and zero if the call fails.
    unsafe {
        libc::fstat(0, status.as_mut_ptr());
        status.assume_init().st_mode & libc::S_IFMT == libc::S_IFSOCK
    }
}
