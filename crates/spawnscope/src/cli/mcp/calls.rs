//! Runs each call of a tool in its own process, which is spawnscope with the verb of the tool. A
//! call can thus be cancelled at any time and frees its memory at its end, and a recorded command
//! never has the client's standard input and output.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, PipeReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags};
use serde_json::{Value, json};

use super::{DIRECTORY, Failure, Kind, Tool, send, send_result};
use crate::cli::output::escape_lines;
use crate::event::Pid;
use crate::held::inheritance::restore_dispositions;
use crate::process::{die_with_parent, pidfd, wait_until};

/// Maximum length of all texts in an answer. Clients limit characters or bytes; there are never
/// more characters than bytes.
const MAX_ANSWER_BYTES: usize = 19_900;
/// Maximum length of the messages in an answer: those of spawnscope, and the end of what a recorded
/// command printed.
const MAX_MESSAGE_BYTES: usize = 8_000;
/// Maximum length of the messages that are kept in memory.
const MAX_LOG_BYTES: usize = 64 * 1024;
/// The time between two reports of progress to the client.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum length of the last message, which a report of progress quotes.
const MAX_PROGRESS_BYTES: usize = 200;
/// How long a cancelled call may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(3);
const REFUSAL: &str = "refused: this server may not run commands. Ask the user to start it as `spawnscope mcp --allow-record`, or to run \
                       `spawnscope record -- CMD` and tell you where the recording is";

pub struct Calls {
    allow_record: bool,
    running: Arc<Mutex<BTreeMap<String, Running>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A running call. While it is in `Calls::running`, its process has not been reaped, so the id of
/// its process group is valid.
struct Running {
    group: libc::pid_t,
    cancelled: Option<Instant>,
}

struct Call {
    id: Value,
    progress_token: Value,
    tool: &'static Tool,
    child: Child,
    /// The standard output of a verb that prints JSON.
    json: File,
    /// The messages: standard error, and standard output if it is not JSON.
    log: PipeReader,
    running: Arc<Mutex<BTreeMap<String, Running>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Calls {
    pub fn new(allow_record: bool) -> Calls {
        Calls { allow_record, running: Arc::default(), threads: Mutex::default() }
    }

    /// Starts a call, which will send its result. Only the main thread may do so, because the
    /// process of the call is killed when the thread that started it ends.
    pub fn start(&self, id: &Value, params: &Value) -> Result<(), Failure> {
        let name = params["name"].as_str().unwrap_or_default();
        let invalid = |message: String| Failure::new(Failure::INVALID_PARAMETERS, message);
        let tool = Tool::find(name).ok_or_else(|| invalid(format!("there is no tool {name}")))?;
        let key = id.to_string();
        if locked(&self.running).contains_key(&key) {
            return Err(invalid(format!("request {key} is still running")));
        }
        if tool.kind == Kind::Runs && !self.allow_record {
            send_result(id, result(vec![REFUSAL.to_owned()], true));
            return Ok(());
        }
        match self.spawn(id, params, tool) {
            Ok(call) => {
                let group = call.child.id().cast_signed();
                locked(&self.running).insert(key, Running { group, cancelled: None });
                let mut threads = locked(&self.threads);
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread::spawn(move || call.finish()));
            }
            Err(error) => send_result(id, result(vec![format!("{error:#}")], true)),
        }
        Ok(())
    }

    fn spawn(&self, id: &Value, params: &Value, tool: &'static Tool) -> Result<Call> {
        let arguments = params["arguments"].as_object().cloned().unwrap_or_default();
        let (log, written) = io::pipe()?;
        rustix::io::ioctl_fionbio(&log, true)?;
        let json = tempfile::tempfile().context("failed to create a temporary file")?;
        // This is the running program, even if its file was replaced.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("spawnscope").args(tool.command_line(&arguments)?).stdin(Stdio::null()).process_group(0);
        command.stderr(written.try_clone()?);
        match tool.kind {
            Kind::Reads => command.stdout(json.try_clone()?),
            Kind::Writes | Kind::Runs => command.stdout(written),
        };
        let directory = arguments.get(DIRECTORY).and_then(Value::as_str).unwrap_or(".");
        // SAFETY: the closure only makes system calls.
        unsafe {
            command.current_dir(directory).pre_exec(|| {
                die_with_parent(libc::SIGTERM);
                restore_dispositions();
                Ok(())
            })
        };
        let child = command.spawn().with_context(|| format!("failed to start in the directory {directory}"))?;
        let progress_token = params["_meta"]["progressToken"].clone();
        Ok(Call { id: id.clone(), progress_token, tool, child, json, log, running: Arc::clone(&self.running) })
    }

    /// Cancels a call. It will have no result.
    pub fn cancel(&self, id: &Value) {
        if let Some(running) = locked(&self.running).get_mut(&id.to_string()) {
            running.cancelled.get_or_insert_with(Instant::now);
            signal(running.group, libc::SIGTERM);
        }
    }

    /// Cancels all calls, and waits for their ends.
    pub fn end(self) {
        let ids: Vec<String> = locked(&self.running).keys().cloned().collect();
        ids.iter().filter_map(|id| serde_json::from_str(id).ok()).for_each(|id| self.cancel(&id));
        for thread in locked(&self.threads).drain(..) {
            // A thread that panicked has printed why.
            let _ = thread.join();
        }
    }
}

/// Sends a signal to the process of a call and to the other processes of its group.
fn signal(group: libc::pid_t, signal: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(-group, signal) };
}

impl Call {
    /// Waits for the end of the call, and sends its result unless it was cancelled.
    fn finish(mut self) {
        let log = self.follow();
        let entry = locked(&self.running).remove(&self.id.to_string());
        let status = self.child.wait();
        if entry.is_some_and(|running| running.cancelled.is_none()) {
            let texts = self.texts(&log);
            send_result(&self.id, result(texts, status.map_or(true, |status| self.has_failed(status))));
        }
    }

    /// Reads messages until the process has ended, and reports progress meanwhile.
    fn follow(&mut self) -> Vec<u8> {
        let mut log = Vec::new();
        let Ok(process) = pidfd(Pid(self.child.id().cast_signed())) else { return log };
        let mut seconds = 0;
        let mut due = Instant::now() + PROGRESS_INTERVAL;
        let (mut has_ended, mut is_open) = (false, true);
        while !has_ended {
            let mut watched = vec![PollFd::new(&process, PollFlags::IN)];
            // The pipe may be closed before the process ends. Processes that a command leaves
            // running may keep it open for longer.
            watched.extend(is_open.then(|| PollFd::new(&self.log, PollFlags::IN)));
            wait_until(&mut watched, due);
            has_ended = !watched[0].revents().is_empty();
            is_open = is_open && read_available(&mut self.log, &mut log);
            if Instant::now() >= due {
                due += PROGRESS_INTERVAL;
                seconds += 1;
                self.send_progress(seconds, &log);
                self.kill_if_overdue();
            }
        }
        log
    }

    fn send_progress(&self, seconds: u64, log: &[u8]) {
        if self.progress_token.is_null() {
            return;
        }
        let line = log.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = escape_lines(&String::from_utf8_lossy(&line[..line.len().min(MAX_PROGRESS_BYTES)]));
        let message = format!("spawnscope {} has been running for {seconds} s: {line}", self.tool.verb);
        let params = json!({ "progressToken": self.progress_token, "progress": seconds, "message": message });
        send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
    }

    fn kill_if_overdue(&self) {
        if let Some(Running { group, cancelled: Some(since) }) = locked(&self.running).get(&self.id.to_string())
            && since.elapsed() >= GRACE
        {
            signal(*group, libc::SIGKILL);
        }
    }

    /// Returns the JSON, and the end of the messages, as far as it fits.
    fn texts(&mut self, log: &[u8]) -> Vec<String> {
        let mut json = String::new();
        // If there is no JSON, the call has failed, and its messages say why.
        let _ = self.json.rewind().and_then(|()| self.json.read_to_string(&mut json));
        let json = json.trim_ascii_end().to_owned();
        let messages = escape_lines(String::from_utf8_lossy(log).trim_ascii_end());
        let room = MAX_MESSAGE_BYTES.min(MAX_ANSWER_BYTES.saturating_sub(json.len()));
        let skipped = messages.len().saturating_sub(room);
        let start = (skipped..=messages.len()).find(|at| messages.is_char_boundary(*at)).unwrap_or_default();
        let messages = format!("{}{}", if start > 0 { "…" } else { "" }, &messages[start..]);
        [json, messages].into_iter().filter(|text| !text.is_empty()).collect()
    }

    /// Whether spawnscope itself has failed. A recorded command may fail.
    fn has_failed(&self, status: ExitStatus) -> bool {
        match (self.tool.kind, status.code()) {
            (Kind::Runs, code) => code.is_some_and(|code| (125..=127).contains(&code)),
            (_, code) => code != Some(0),
        }
    }
}

/// Reads what is in a pipe, at most four buffers, and keeps the end. Returns whether more may come.
fn read_available(pipe: &mut PipeReader, log: &mut Vec<u8>) -> bool {
    let mut buffer = [0; MAX_LOG_BYTES];
    for _ in 0..4 {
        match pipe.read(&mut buffer) {
            Ok(0) => return false,
            Ok(read) => {
                log.extend_from_slice(&buffer[..read]);
                let excess = log.len().saturating_sub(MAX_LOG_BYTES);
                log.drain(..excess);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
    true
}

fn result(texts: Vec<String>, is_error: bool) -> Value {
    let content: Vec<Value> = texts.into_iter().map(|text| json!({ "type": "text", "text": text })).collect();
    json!({ "content": content, "isError": is_error })
}
