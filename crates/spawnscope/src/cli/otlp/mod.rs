//! `record --otlp ENDPOINT`: sends requests to an OpenTelemetry collector by HTTP. One thread sends, so that neither the recording nor the
//! metrics ever wait for the network; what waits for it is bounded, and so is the time at the end. `endpoint` checks where to.

mod endpoint;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use ureq::Agent;
use ureq::http::{Response, StatusCode};

pub use self::endpoint::Endpoint;
use super::output::{line, print_message};
use crate::present::live_metrics::Undelivered;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How long sending may continue after the end of the recording.
const FLUSH: Duration = Duration::from_secs(5);
/// Requests with spans that may wait. Of metrics, the newest are enough: they are cumulative.
const MAX_WAITING: usize = 4;
/// Pauses before the second to fifth attempt, in seconds.
const PAUSES: [u64; 4] = [1, 2, 4, 8];
/// The longest pause that a server may ask for.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The requests that have not been sent yet.
#[derive(Debug, Default)]
struct Waiting {
    metrics: Option<Vec<u8>>,
    /// Requests, each with its number of spans.
    spans: VecDeque<(Vec<u8>, u64)>,
    undelivered: Undelivered,
    /// When to stop. `None` while recording.
    until: Option<Instant>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next request. `None` at the end.
    fn next(&self) -> Option<Request> {
        let mut waiting = self.lock();
        loop {
            if let Some((body, spans)) = waiting.spans.pop_front() {
                return Some(Request {
                    path: "/v1/traces",
                    body,
                    spans,
                });
            }
            if let Some(body) = waiting.metrics.take() {
                return Some(Request {
                    path: "/v1/metrics",
                    body,
                    spans: 0,
                });
            }
            if waiting.until.is_some() {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits before another attempt. The end of the recording ends the pause. Returns whether there is time for the attempt.
    fn pause(&self, pause: Duration) -> bool {
        let waiting = self.lock();
        let is_ending = waiting.until.is_some();
        let pause = waiting.until.map_or(pause, |until| {
            pause.min(until.saturating_duration_since(Instant::now()))
        });
        let paused = self
            .changed
            .wait_timeout_while(waiting, pause, |waiting| waiting.until.is_some() == is_ending);
        let (waiting, _) = paused.unwrap_or_else(PoisonError::into_inner);
        waiting.until.is_none_or(|until| until > Instant::now())
    }

    /// Returns how long a request may take now.
    fn time_left(&self) -> Duration {
        let until = self.lock().until;
        until.map_or(TIMEOUT, |until| {
            TIMEOUT.min(until.saturating_duration_since(Instant::now()))
        })
    }
}

struct Request {
    path: &'static str,
    body: Vec<u8>,
    spans: u64,
}

/// The thread that sends.
#[derive(Debug)]
pub struct Sender {
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

impl Sender {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub fn start(endpoint: Endpoint) -> Result<Sender> {
        let queue = Arc::<Queue>::default();
        let sending = Sending {
            agent: agent(),
            endpoint,
            queue: Arc::clone(&queue),
            has_warned: false,
        };
        let thread = thread::Builder::new().name("otlp".into());
        let thread = thread
            .spawn(move || sending.run())
            .context("failed to start a thread for --otlp")?;
        Ok(Sender { queue, thread })
    }

    /// Sends metrics when it can, in place of older ones that still wait.
    pub fn metrics(&self, body: Vec<u8>) {
        self.queue.lock().metrics = Some(body);
        self.queue.changed.notify_all();
    }

    /// Sends spans when it can. The oldest that wait make room.
    pub fn spans(&self, body: Vec<u8>, spans: u64, skipped: u64) {
        let mut waiting = self.queue.lock();
        waiting.undelivered.spans += skipped;
        if spans > 0 {
            waiting.spans.push_back((body, spans));
        }
        if waiting.spans.len() > MAX_WAITING {
            let dropped = waiting.spans.pop_front().map_or(0, |(_, spans)| spans);
            waiting.undelivered.spans += dropped;
        }
        drop(waiting);
        self.queue.changed.notify_all();
    }

    /// Returns what was not delivered so far.
    pub fn undelivered(&self) -> Undelivered {
        self.queue.lock().undelivered
    }

    /// Sends what waits, for a few seconds at most.
    pub fn finish(self) {
        let until = Instant::now() + FLUSH;
        self.queue.lock().until = Some(until);
        self.queue.changed.notify_all();
        // A look-up of a name has no time limit of its own, so the thread is not joined without one.
        while !self.thread.is_finished() && Instant::now() < until + Duration::from_millis(500) {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn agent() -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .user_agent(concat!("spawnscope/", env!("CARGO_PKG_VERSION")));
    config.build().new_agent()
}

/// The state of the thread.
struct Sending {
    agent: Agent,
    endpoint: Endpoint,
    queue: Arc<Queue>,
    has_warned: bool,
}

/// Why a request failed.
struct Failure {
    why: String,
    /// Whether the server may accept the same request later, and when it said to try again.
    retry: Option<Option<Duration>>,
    /// Whether the server answered at all.
    is_answer: bool,
}

impl Sending {
    fn run(mut self) {
        while let Some(request) = self.queue.next() {
            self.deliver(request);
        }
    }

    /// Sends a request, if need be several times, as the specification of OTLP demands.
    fn deliver(&mut self, mut request: Request) {
        let mut pauses = PAUSES.into_iter().map(Duration::from_secs);
        while let Err(failure) = self.attempt(&request) {
            let is_ending = self.queue.lock().until.is_some();
            let pause = failure
                .retry
                .and_then(|asked| Some(asked.unwrap_or_default().max(pauses.next()?).min(MAX_PAUSE)));
            // At the end, a server that is not there is not waited for.
            let pause = pause.filter(|_| failure.is_answer || !is_ending);
            // A server that is busy for a moment is no news.
            if !failure.is_answer || pause.is_none() {
                self.warn(&failure);
            }
            if !pause.is_some_and(|pause| self.queue.pause(with_jitter(pause))) {
                let mut waiting = self.queue.lock();
                waiting.undelivered.requests += 1;
                waiting.undelivered.spans += request.spans;
                return;
            }
            if request.path == "/v1/metrics"
                && let Some(newer) = self.queue.lock().metrics.take()
            {
                request.body = newer;
            }
        }
    }

    fn attempt(&self, request: &Request) -> Result<(), Failure> {
        let url = format!("{}{}", self.endpoint.base(), request.path);
        let mut post = self.agent.post(url).content_type("application/x-protobuf");
        for (name, value) in self.endpoint.headers() {
            post = post.header(name, value);
        }
        let post = post.config().timeout_global(Some(self.queue.time_left())).build();
        let answer = post.send(&request.body[..]).map_err(|error| Failure {
            why: error.to_string(),
            retry: Some(None),
            is_answer: false,
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(());
        }
        let is_temporary = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        Err(Failure {
            why: format!("{} answered {status}", request.path),
            retry: is_temporary.then(|| retry_after(&answer)),
            is_answer: true,
        })
    }

    /// Prints a failure, the first time.
    fn warn(&mut self, failure: &Failure) {
        if std::mem::replace(&mut self.has_warned, true) {
            return;
        }
        print_message(&line(format!(
            "failed to send to {}: {}; the recording is not affected, and later failures are not printed",
            self.endpoint.base(),
            failure.why
        )));
    }
}

fn retry_after<B>(answer: &Response<B>) -> Option<Duration> {
    let seconds = answer
        .headers()
        .get("retry-after")?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds))
}

/// Recorders that were refused together must not come back together: up to a quarter is added.
fn with_jitter(pause: Duration) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    pause + pause * (now.subsec_micros() % 256) / 1024
}
