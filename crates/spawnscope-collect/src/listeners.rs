//! Finds the processes that listen at addresses of this machine, in the tables of /proc/net and the
//! descriptors of all processes.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use spawnscope_data::event::Pid;
use spawnscope_system::procfs;

/// A transport protocol whose sockets are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// A local address at which a process may listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Endpoint {
    /// Inode of the network namespace; 0 if the kernel has no such namespaces.
    pub network: u32,
    pub protocol: Protocol,
    pub address: SocketAddr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub pid: Pid,
    pub name: Vec<u8>,
}

/// Returns the process that listens at each endpoint; `None` if there is no such process, or it is
/// not visible.
pub(crate) fn find(endpoints: &[Endpoint]) -> Vec<Option<Listener>> {
    let mut tables = Tables::default();
    let inodes: Vec<Option<u64>> = endpoints.iter().map(|endpoint| tables.inode(endpoint)).collect();
    let wanted: Vec<u64> = inodes.iter().flatten().copied().collect();
    let owners = if wanted.is_empty() { HashMap::new() } else { owners(&wanted) };
    let listener = |pid| Some(Listener { pid, name: procfs::name(pid)? });
    inodes.into_iter().map(|inode| listener(*owners.get(&inode?)?)).collect()
}

struct Socket {
    address: SocketAddr,
    inode: u64,
}

/// The listening sockets of each network namespace, read when they are first needed.
#[derive(Default)]
struct Tables(HashMap<(u32, Protocol), Vec<Socket>>);

impl Tables {
    fn inode(&mut self, endpoint: &Endpoint) -> Option<u64> {
        let key = (endpoint.network, endpoint.protocol);
        let sockets = self.0.entry(key).or_insert_with(|| read_tables(key.0, key.1));
        let ip = endpoint.address.ip().to_canonical();
        let at_port = sockets.iter().filter(|socket| socket.address.port() == endpoint.address.port());
        let exact = at_port.clone().find(|socket| socket.address.ip() == ip);
        // A socket that is bound to all IPv6 addresses usually accepts IPv4 connections, too.
        let mut unspecified = at_port.filter(|socket| socket.address.ip().is_unspecified());
        let accepting = exact.or_else(|| unspecified.find(|socket| socket.address.is_ipv6() || ip.is_ipv4()));
        accepting.map(|socket| socket.inode)
    }
}

fn read_tables(network: u32, protocol: Protocol) -> Vec<Socket> {
    let Some(directory) = tables_of_namespace(network) else { return Vec::new() };
    let (files, state) = match protocol {
        Protocol::Tcp => (["tcp", "tcp6"], "0A"),
        // 07 (TCP_CLOSE) is the state of UDP sockets that are not connected.
        Protocol::Udp => (["udp", "udp6"], "07"),
    };
    let texts = files.map(|file| fs::read_to_string(directory.join(file)).unwrap_or_default());
    let sockets = texts.iter().flat_map(|text| text.lines().skip(1));
    sockets.filter_map(|line| parse_socket(line, state)).collect()
}

/// Returns a directory with the tables of a network namespace: that of the recorder, or that of a
/// process in the namespace.
fn tables_of_namespace(network: u32) -> Option<PathBuf> {
    let own = PathBuf::from("/proc/thread-self");
    if network == 0 || is_in_namespace(&own, network) {
        return Some(own.join("net"));
    }
    let mut others = procfs::processes().map(directory_of);
    others.find(|directory| is_in_namespace(directory, network)).map(|directory| directory.join("net"))
}

/// Whether the process with this directory in /proc is in a network namespace.
fn is_in_namespace(process: &Path, network: u32) -> bool {
    fs::metadata(process.join("ns/net")).is_ok_and(|found| found.ino() == u64::from(network))
}

/// Parses a line of /proc/net/tcp, tcp6, udp or udp6: number, local address, remote address, state,
/// queues, timers, retransmissions, user, timeout, inode.
fn parse_socket(line: &str, wanted_state: &str) -> Option<Socket> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (ip, port) = fields.next()?.split_once(':')?;
    if fields.nth(1)? != wanted_state {
        return None;
    }
    let address = SocketAddr::new(parse_ip(ip)?, u16::from_str_radix(port, 16).ok()?);
    let inode = fields.nth(5)?.parse().ok().filter(|inode| *inode != 0)?;
    Some(Socket { address, inode })
}

/// Parses an address, which consists of 32-bit words in the byte order of the machine.
fn parse_ip(hex: &str) -> Option<IpAddr> {
    if hex.len() == 8 {
        return Some(Ipv4Addr::from(parse_word(hex, 0)?).into());
    }
    let words = [parse_word(hex, 0)?, parse_word(hex, 8)?, parse_word(hex, 16)?, parse_word(hex, 24)?];
    let bytes: [u8; 16] = words.concat().try_into().ok()?;
    Some(IpAddr::from(Ipv6Addr::from(bytes)).to_canonical())
}

fn parse_word(hex: &str, at: usize) -> Option<[u8; 4]> {
    Some(u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?.to_ne_bytes())
}

/// Returns, for each of these sockets, the process that has it open. If there are several, returns
/// the one with the lowest pid other than 1: init opens sockets for the services that it starts.
fn owners(inodes: &[u64]) -> HashMap<u64, Pid> {
    let mut owners: HashMap<u64, Pid> = HashMap::new();
    for pid in procfs::processes() {
        let descriptors = fs::read_dir(directory_of(pid).join("fd")).into_iter().flatten().flatten();
        for target in descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()) {
            let inode = target.to_str().and_then(|target| {
                let number = target.strip_prefix("socket:[")?.strip_suffix(']')?;
                number.parse::<u64>().ok()
            });
            if let Some(inode) = inode.filter(|inode| inodes.contains(inode)) {
                let owner = owners.entry(inode).or_insert(pid);
                if owner.0 == 1 || (pid.0 != 1 && pid < *owner) {
                    *owner = pid;
                }
            }
        }
    }
    owners
}

fn directory_of(process: Pid) -> PathBuf {
    PathBuf::from(format!("/proc/{}", process.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    fn listener(protocol: Protocol, address: SocketAddr) -> Option<Pid> {
        let network = fs::metadata("/proc/thread-self/ns/net").unwrap().ino() as u32;
        let endpoint = Endpoint { network, protocol, address };
        find(&[endpoint]).remove(0).map(|found| found.pid)
    }

    #[test]
    fn a_process_is_found_while_it_listens() {
        let own = Some(Pid(std::process::id().cast_signed()));
        let exact = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = exact.local_addr().unwrap();
        assert_eq!(listener(Protocol::Tcp, address), own);
        let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
        assert_eq!(listener(Protocol::Tcp, SocketAddr::new(mapped.into(), address.port())), own);
        drop(exact);
        assert_eq!(listener(Protocol::Tcp, address), None);
        let any = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = any.local_addr().unwrap().port();
        assert_eq!(listener(Protocol::Tcp, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port)), own);
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(listener(Protocol::Udp, datagrams.local_addr().unwrap()), own);
    }

    #[test]
    fn a_line_with_another_state_or_a_damaged_line_is_no_listener() {
        let line = "   0: 0100007F:2631 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0";
        let found = parse_socket(line, "0A").unwrap();
        assert_eq!((found.address.port(), found.inode), (9777, 4711));
        assert!(parse_socket(&line.replace(" 0A ", " 01 "), "0A").is_none());
        for length in 0..80 {
            assert!(parse_socket(&line[..length], "0A").is_none(), "{length}");
        }
    }
}
