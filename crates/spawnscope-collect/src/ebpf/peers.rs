//! The peers of internet sockets that threads wait for: their addresses and, for addresses of this
//! machine, the processes that listen there. A separate thread looks for the processes, because
//! this takes milliseconds. They must be found while they are running.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use zerocopy::FromBytes;

use crate::listeners::{Endpoint, Listener, Protocol, find};
use crate::wire::{KIND_PEER_NAMED, WireHeader, WirePeerNamed};
use spawnscope_data::event::{Event, EventKind, LaunchId, Nanos, TaskId};

/// How long an answer is valid. Later, another program may listen at the same port.
const VALIDITY: Duration = Duration::from_secs(10);
/// Maximum number of endpoints whose answers are stored.
const MAX_STORED: usize = 4096;
/// How long to wait for the last answers at the end of a recording.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// The peer of one socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    at: Nanos,
    launch: LaunchId,
    task: TaskId,
    device: u32,
    inode: u64,
    address: SocketAddr,
    /// Where a process of this machine may listen; `None` if the address is not one of this
    /// machine.
    local: Option<Endpoint>,
}

impl Peer {
    /// Decodes a record. Returns `None` if it is of another kind.
    pub(super) fn decode(record: &[u8]) -> Option<Peer> {
        let (header, _) = WireHeader::read_from_prefix(record).ok()?;
        if header.kind != KIND_PEER_NAMED {
            return None;
        }
        let (wire, _) = WirePeerNamed::read_from_prefix(record).ok()?;
        let (peer, own) = (parse_ip(wire.family, wire.address), parse_ip(wire.family, wire.own_address));
        let address = SocketAddr::new(peer, u16::from_be_bytes(wire.port));
        let protocol = match i32::from(wire.protocol) {
            libc::IPPROTO_TCP => Some(Protocol::Tcp),
            libc::IPPROTO_UDP => Some(Protocol::Udp),
            _ => None,
        };
        Some(Peer {
            at: Nanos(header.at),
            launch: LaunchId(header.launch),
            task: TaskId(header.task),
            device: wire.device,
            inode: wire.inode,
            address,
            local: protocol.filter(|_| peer.is_loopback() || peer == own).map(|protocol| Endpoint {
                network: wire.network,
                protocol,
                address,
            }),
        })
    }

    /// Returns the event that gives the socket its name. It precedes the slice with the wait.
    pub(super) fn named_event(&self) -> Event {
        self.event(EventKind::FileNamed {
            device: self.device,
            inode: self.inode,
            path: self.address.to_string().into_bytes(),
        })
    }

    fn found_event(&self, listener: &Listener) -> Event {
        self.event(EventKind::PeerFound {
            device: self.device,
            inode: self.inode,
            pid: listener.pid,
            name: listener.name.clone(),
        })
    }

    fn event(&self, kind: EventKind) -> Event {
        Event { at: self.at, launch: self.launch, task: self.task, kind }
    }
}

fn parse_ip(family: u16, bytes: [u8; 16]) -> IpAddr {
    let [a, b, c, d, ..] = bytes;
    if i32::from(family) == libc::AF_INET {
        Ipv4Addr::new(a, b, c, d).into()
    } else {
        IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
    }
}

enum Answer {
    /// The question has been asked on behalf of these sockets.
    Pending(Vec<Peer>),
    /// The listener, if one was found, and the time of the answer.
    Known(Option<Listener>, Instant),
}

/// Finds the processes that listen at the addresses of local peers.
pub(super) struct Peers {
    questions: Option<Sender<Endpoint>>,
    answers: Receiver<(Endpoint, Option<Listener>)>,
    stored: HashMap<Endpoint, Answer>,
    /// Number of questions without an answer.
    open_questions: usize,
}

impl Peers {
    /// Starts the thread that looks for processes.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn start() -> io::Result<Peers> {
        let (questions, asked) = channel::<Endpoint>();
        let (answer, answers) = channel();
        thread::Builder::new().name("peers".to_owned()).spawn(move || answer_all(&asked, &answer))?;
        Ok(Peers { questions: Some(questions), answers, stored: HashMap::new(), open_questions: 0 })
    }

    /// Asks which process listens at a peer's address, or adds the event if the answer is known.
    pub(super) fn ask(&mut self, peer: Peer, events: &mut Vec<Event>) {
        let Some(endpoint) = peer.local else { return };
        match self.stored.get_mut(&endpoint) {
            Some(Answer::Pending(waiting)) => return waiting.push(peer),
            Some(Answer::Known(listener, at)) if at.elapsed() < VALIDITY => {
                return events.extend(listener.as_ref().map(|listener| peer.found_event(listener)));
            }
            _ => {}
        }
        if self.stored.len() >= MAX_STORED {
            self.stored.retain(|_, answer| matches!(answer, Answer::Pending(_)));
        }
        let is_asked = self.questions.as_ref().is_some_and(|questions| questions.send(endpoint).is_ok());
        if is_asked {
            self.open_questions += 1;
            self.stored.insert(endpoint, Answer::Pending(vec![peer]));
        }
    }

    /// Adds the events of the answers that have arrived.
    pub(super) fn drain(&mut self, events: &mut Vec<Event>) {
        while let Ok(answer) = self.answers.try_recv() {
            self.handle_answer(answer, events);
        }
    }

    /// Waits for all answers and adds their events. No question may be asked after this.
    pub(super) fn finish(&mut self, events: &mut Vec<Event>) {
        self.questions = None;
        let end = Instant::now() + END_TIMEOUT;
        while self.open_questions > 0 {
            match self.answers.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(answer) => self.handle_answer(answer, events),
                Err(_) => return,
            }
        }
    }

    fn handle_answer(&mut self, (endpoint, listener): (Endpoint, Option<Listener>), events: &mut Vec<Event>) {
        self.open_questions = self.open_questions.saturating_sub(1);
        if let (Some(Answer::Pending(waiting)), Some(listener)) = (self.stored.get(&endpoint), &listener) {
            events.extend(waiting.iter().map(|peer| peer.found_event(listener)));
        }
        self.stored.insert(endpoint, Answer::Known(listener, Instant::now()));
    }
}

/// Answers questions until their channel is closed. Questions that arrive in the meantime are
/// answered together, by one search through all processes.
fn answer_all(asked: &Receiver<Endpoint>, answer: &Sender<(Endpoint, Option<Listener>)>) {
    while let Ok(first) = asked.recv() {
        let endpoints: Vec<Endpoint> = std::iter::once(first).chain(asked.try_iter()).collect();
        let found = find(&endpoints);
        for pair in endpoints.into_iter().zip(found) {
            if answer.send(pair).is_err() {
                return;
            }
        }
    }
}
