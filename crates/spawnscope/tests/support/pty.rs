//! Runs a program on its own pseudo-terminal, like a person at a keyboard.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{Termios, tcgetattr};

use super::run::await_some;

/// The keyboard's side of the terminal, and the program on the other side.
pub struct Session {
    keyboard: File,
    terminal: OwnedFd,
    child: Child,
    watcher: JoinHandle<()>,
    screen_bytes: Arc<Mutex<Vec<u8>>>,
}

impl Session {
    /// Starts a command as the leader of a session whose controlling terminal is a new
    /// pseudo-terminal. `setsid --ctty` does in its own process what would need unsafe code in
    /// ours.
    pub fn start(command: &Command) -> Session {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).expect("a pseudo-terminal");
        // If the program inherited the keyboard's side, it would never see the terminal hang up.
        for side in [&pty.master, &pty.slave] {
            fcntl(side, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("fcntl");
        }
        let [input, output, errors] = [(); 3].map(|()| Stdio::from(pty.slave.try_clone().expect("a descriptor")));
        let mut leader = Command::new("setsid");
        leader.arg("--ctty").arg("--wait").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => leader.env(name, value),
                None => leader.env_remove(name),
            };
        }
        let child = leader.stdin(input).stdout(output).stderr(errors).spawn().expect("setsid runs");
        let keyboard = File::from(pty.master);
        let screen_bytes = Arc::default();
        let watcher = watch(keyboard.try_clone().expect("a descriptor"), Arc::clone(&screen_bytes));
        Session { keyboard, terminal: pty.slave, child, watcher, screen_bytes }
    }

    pub fn settings(&self) -> Termios {
        tcgetattr(&self.terminal).expect("terminal settings")
    }

    pub fn type_keys(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("the terminal takes keys");
    }

    /// Returns the output on the screen so far.
    pub fn screen_so_far(&self) -> Vec<u8> {
        self.screen_bytes.lock().expect("the watcher does not panic").clone()
    }

    /// Waits until the screen shows these bytes.
    #[track_caller]
    pub fn await_output(&self, wanted: &[u8]) {
        await_some(&format!("{:?} on the terminal", String::from_utf8_lossy(wanted)), || {
            let screen_bytes = self.screen_so_far();
            screen_bytes.windows(wanted.len()).any(|bytes| bytes == wanted).then_some(())
        });
    }

    /// Waits until the program ends. Returns its status and all output on the screen.
    pub fn finish(self) -> (ExitStatus, Vec<u8>) {
        let (status, _, screen) = self.finish_with_settings();
        (status, screen)
    }

    /// Like `finish`, but also returns the final settings of the terminal.
    pub fn finish_with_settings(mut self) -> (ExitStatus, Termios, Vec<u8>) {
        let status = await_some("the end of the program", || self.child.try_wait().expect("wait"));
        let settings = self.settings();
        // This is the last descriptor of the program's side. Without it, the watcher's read fails
        // with EIO.
        drop(self.terminal);
        await_some("the end of the terminal", || self.watcher.is_finished().then_some(()));
        let screen_bytes = self.screen_bytes.lock().expect("the watcher does not panic").clone();
        (status, settings, screen_bytes)
    }
}

fn watch(mut screen: File, screen_bytes: Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = screen.read(&mut buffer) {
            screen_bytes.lock().expect("the test does not panic here").extend_from_slice(&buffer[..length]);
        }
    })
}
