//! Children on a pseudo-terminal.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;

use vspawn::pty::{Pty, Size};
use vspawn::{Command, Stage, Stdio};

use crate::support::{Test, expect_error, kernel, shell, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("a_child_has_a_pseudo_terminal_as_its_controlling_terminal", controlling),
        test("a_pseudo_terminal_has_the_size_that_was_set", sizes),
        test("typed_text_reaches_the_child", typed),
        test("closing_a_pseudo_terminal_hangs_up_the_childs_session", hang_up),
        test("streams_that_the_command_sets_are_not_the_terminal", streams),
        test("without_a_free_descriptor_a_pseudo_terminal_is_refused", refused),
        #[cfg(feature = "tokio")]
        test("an_async_pseudo_terminal_is_read_and_written", asynchronous),
    ]
}

fn read(pty: &mut Pty) -> String {
    let mut text = String::new();
    pty.read_to_string(&mut text).unwrap();
    text.replace("\r\n", "\n")
}

fn controlling() {
    for close_others in [false, true] {
        let mut pty = Pty::open(Size::new(24, 80)).unwrap();
        // `stat` shows that the child leads its session, and that the pseudo-terminal is its
        // controlling terminal.
        let mut command = shell("echo to the terminal >/dev/tty; cat /proc/$$/stat; tty");
        let mut child = pty.spawn(command.close_others(close_others)).unwrap();
        let output = read(&mut pty);
        assert!(child.wait().unwrap().success());
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(lines[0], "to the terminal");
        let stat: Vec<&str> = lines[1].rsplit_once(')').unwrap().1.split_whitespace().collect();
        let id = child.id().to_string();
        assert_eq!((stat[2], stat[3], stat[5]), (&*id, &*id, &*id), "group, session, foreground group");
        assert_ne!(stat[4], "0", "the controlling terminal");
        assert!(lines[2].starts_with("/dev/pts/"));
    }
}

fn sizes() {
    let mut pty = Pty::open(Size::new(7, 33)).unwrap();
    assert_eq!(pty.size().unwrap(), Size::new(7, 33));
    let mut child = pty
        .spawn(shell("stty size; trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.01; done"))
        .unwrap();
    let mut output = String::new();
    while !output.contains("ready") {
        let mut bytes = [0; 100];
        let count = pty.read(&mut bytes).unwrap();
        output.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    assert!(output.starts_with("7 33"), "{output}");
    pty.resize(Size::new(8, 44)).unwrap();
    assert_eq!(read(&mut pty).trim(), "8 44");
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

fn typed() {
    let mut pty = Pty::open(Size::new(24, 80)).unwrap();
    let mut child = pty.spawn(shell("stty -echo; echo ready; read line; echo got $line; exec cat")).unwrap();
    let mut ready = [0; 7];
    pty.read_exact(&mut ready).unwrap();
    let mut writer = pty.try_clone().unwrap();
    writer.write_all(b"one two\n").unwrap();
    let mut line = [0; 13];
    pty.read_exact(&mut line).unwrap();
    assert_eq!(&line, b"got one two\r\n");
    // The interrupt character goes to the foreground group.
    writer.write_all(&[3]).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGINT));
}

fn hang_up() {
    let pty = Pty::open(Size::new(24, 80)).unwrap();
    let mut child = pty.spawn(Command::new("/bin/sleep").arg("1000")).unwrap();
    drop(pty);
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGHUP));
}

fn streams() {
    let mut pty = Pty::open(Size::new(24, 80)).unwrap();
    let mut command = shell("test -t 0 && test -t 2 && ! test -t 1 && echo piped");
    let child = pty.spawn(command.stdout(Stdio::piped())).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"piped\n");
    assert_eq!(read(&mut pty), "");
}

fn refused() {
    let limit = kernel::limit(libc::RLIMIT_NOFILE).0;
    let pty = Pty::open(Size::new(24, 80)).unwrap();
    kernel::set_soft_limit(libc::RLIMIT_NOFILE, 3);
    let (open, spawn) = (Pty::open(Size::new(1, 1)), pty.spawn(Command::new("/bin/true")));
    kernel::set_soft_limit(libc::RLIMIT_NOFILE, limit);
    expect_error(open, Stage::Pty, libc::EMFILE);
    expect_error(spawn, Stage::Pty, libc::EMFILE);
}

#[cfg(feature = "tokio")]
fn asynchronous() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(async {
        let pty = Pty::open(Size::new(24, 80)).unwrap();
        let mut child = pty.spawn(shell("stty -echo; echo ready; read line; echo got $line")).unwrap();
        let mut pty = vspawn::pty::AsyncPty::new(pty).unwrap();
        pty.read_exact(&mut [0; 7]).await.unwrap();
        pty.get_ref().resize(Size::new(1, 2)).unwrap();
        pty.write_all(b"text\n").await.unwrap();
        let mut rest = String::new();
        pty.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "got text\r\n");
        assert!(child.wait_async().await.unwrap().success());
    });
}
