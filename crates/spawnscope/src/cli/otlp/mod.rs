//! `record --otlp ENDPOINT`: sends requests to an OpenTelemetry collector over HTTP. A separate thread sends them, so that neither the
//! recording nor the metrics ever wait for the network. The number of queued requests is limited, and so is the time for sending them at the
//! end. `endpoint` checks the address and the headers.

mod endpoint;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use ureq::Agent;
use ureq::http::{Response, StatusCode};

pub use self::endpoint::Endpoint;
use super::output::{escape_line, print_message};

/// Maximum time of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time for sending after the end of the recording.
const FLUSH_TIME: Duration = Duration::from_secs(5);
/// Maximum number of queued requests with spans. Of metrics, only the newest are queued: they are cumulative.
const MAX_QUEUED_SPAN_REQUESTS: usize = 4;
/// Pauses before the second to fifth attempt, in seconds.
const RETRY_PAUSES: [u64; 4] = [1, 2, 4, 8];
/// Maximum pause before an attempt, even if the server asks for a longer one (Retry-After).
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The requests that have not been sent yet.
#[derive(Debug, Default)]
struct QueuedRequests {
    metrics: Option<Vec<u8>>,
    spans: VecDeque<Vec<u8>>,
    /// When to stop sending. `None` while recording.
    deadline: Option<Instant>,
}

#[derive(Debug, Default)]
struct Queue {
    queued: Mutex<QueuedRequests>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueuedRequests> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next request. Returns `None` at the end.
    fn next(&self) -> Option<Request> {
        let mut queued = self.lock();
        loop {
            if let Some(body) = queued.spans.pop_front() {
                return Some(Request { path: "/v1/traces", body });
            }
            if let Some(body) = queued.metrics.take() {
                return Some(Request { path: "/v1/metrics", body });
            }
            if queued.deadline.is_some() {
                return None;
            }
            queued = self.changed.wait(queued).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Pauses before another attempt. The pause also ends at the end of the recording. Returns whether there is time for the attempt.
    fn pause(&self, pause: Duration) -> bool {
        let queued = self.lock();
        let is_ending = queued.deadline.is_some();
        let pause =
            queued.deadline.map_or(pause, |deadline| pause.min(deadline.saturating_duration_since(Instant::now())));
        let paused = self.changed.wait_timeout_while(queued, pause, |queued| queued.deadline.is_some() == is_ending);
        let (queued, _) = paused.unwrap_or_else(PoisonError::into_inner);
        queued.deadline.is_none_or(|deadline| deadline > Instant::now())
    }

    /// Returns the maximum time of a request that starts now.
    fn time_left(&self) -> Duration {
        let deadline = self.lock().deadline;
        deadline
            .map_or(REQUEST_TIMEOUT, |deadline| REQUEST_TIMEOUT.min(deadline.saturating_duration_since(Instant::now())))
    }
}

struct Request {
    path: &'static str,
    body: Vec<u8>,
}

/// The thread that sends requests.
#[derive(Debug)]
pub struct Sender {
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

impl Sender {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(endpoint: Endpoint) -> Result<Sender> {
        let queue = Arc::<Queue>::default();
        let sending = SendingThread { agent: agent(), endpoint, queue: Arc::clone(&queue), has_warned: false };
        let thread = thread::Builder::new().name("otlp".into());
        let thread = thread.spawn(move || sending.run()).context("failed to start a thread for --otlp")?;
        Ok(Sender { queue, thread })
    }

    /// Queues metrics. They replace older ones that have not been sent yet.
    pub fn queue_metrics(&self, body: Vec<u8>) {
        self.queue.lock().metrics = Some(body);
        self.queue.changed.notify_all();
    }

    /// Queues a request with spans. If the queue is full, its oldest request is dropped.
    pub fn queue_spans(&self, body: Vec<u8>) {
        let mut queued = self.queue.lock();
        queued.spans.push_back(body);
        if queued.spans.len() > MAX_QUEUED_SPAN_REQUESTS {
            queued.spans.pop_front();
        }
        drop(queued);
        self.queue.changed.notify_all();
    }

    /// Sends the queued requests, for at most a few seconds.
    pub fn finish(self) {
        let deadline = Instant::now() + FLUSH_TIME;
        self.queue.lock().deadline = Some(deadline);
        self.queue.changed.notify_all();
        // Resolving a host name has no timeout, so the thread is not joined: that could take too long.
        while !self.thread.is_finished() && Instant::now() < deadline + Duration::from_millis(500) {
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

/// The data of the thread.
struct SendingThread {
    agent: Agent,
    endpoint: Endpoint,
    queue: Arc<Queue>,
    has_warned: bool,
}

/// Why a request failed.
struct Failure {
    why: String,
    /// `Some` if the server may accept the same request later, with the pause that it asked for, if any.
    retry: Option<Option<Duration>>,
    /// Whether the server answered at all.
    was_answered: bool,
}

impl SendingThread {
    fn run(mut self) {
        while let Some(request) = self.queue.next() {
            self.deliver(request);
        }
    }

    /// Sends a request, and repeats it after temporary failures, as the OTLP specification requires.
    fn deliver(&mut self, mut request: Request) {
        let mut pauses = RETRY_PAUSES.into_iter().map(Duration::from_secs);
        while let Err(failure) = self.attempt(&request) {
            let is_ending = self.queue.lock().deadline.is_some();
            let pause =
                failure.retry.and_then(|asked| Some(asked.unwrap_or_default().max(pauses.next()?).min(MAX_PAUSE)));
            // At the end, do not wait for a server that does not answer.
            let pause = pause.filter(|_| failure.was_answered || !is_ending);
            // No message if the server is only busy for a moment.
            if !failure.was_answered || pause.is_none() {
                self.warn(&failure);
            }
            if !pause.is_some_and(|pause| self.queue.pause(with_jitter(pause))) {
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
            was_answered: false,
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
            was_answered: true,
        })
    }

    /// Prints the first failure.
    fn warn(&mut self, failure: &Failure) {
        if std::mem::replace(&mut self.has_warned, true) {
            return;
        }
        print_message(&escape_line(format!(
            "failed to send to {}: {}; the recording is not affected, and later failures are not printed",
            self.endpoint.base(),
            failure.why
        )));
    }
}

/// Returns the pause that the server asks for, if it is given in seconds.
fn retry_after<B>(answer: &Response<B>) -> Option<Duration> {
    let seconds = answer.headers().get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Adds up to a quarter to the pause, so that recorders that were refused at the same time do not all retry at the same time.
fn with_jitter(pause: Duration) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    pause + pause * (now.subsec_micros() % 256) / 1024
}
