'use strict';
// Converts the arguments of `spawn` to a request for the Rust side (src/request.rs), and checks them like child_process.

const { fileURLToPath } = require('url');
const { isMainThread } = require('worker_threads');
const { invalidType, invalidValue, outOfRange, signalNumber } = require('./errors.js');

// The constants of src/start.rs.
const PIPE = -1;
const IGNORE = -2;
const TERMINAL = -3;

// The limits of setrlimit, in the kernel's order, by the names of prlimit(1).
const RESOURCES = ['cpu', 'fsize', 'data', 'stack', 'core', 'rss', 'nproc', 'nofile', 'memlock', 'as', 'locks', 'sigpending', 'msgqueue',
  'nice', 'rtprio', 'rttime'];

// The options whose values are passed on, by their type.
const OPTIONS = {
  argv0: 'string', cgroup: 'string', chroot: 'string', detached: 'boolean', noNewPrivs: 'boolean', windowsHide: 'boolean', uid: 'number',
  gid: 'number', umask: 'number', nice: 'number', processGroup: 'number',
};

function checkString(name, value) {
  if (typeof value !== 'string') throw invalidType(name, 'of type string', value);
  if (value.includes('\0')) throw invalidValue(name, value, 'must be a string without null bytes');
  return value;
}

function checkTypes(options) {
  for (const name in options) {
    const type = OPTIONS[name];
    const value = options[name];
    if (!type || value == null) continue;
    if (typeof value !== type) throw invalidType(`options.${name}`, `of type ${type}`, value);
    if (type === 'string') checkString(`options.${name}`, value);
    if (type === 'number' && (!Number.isInteger(value) || value < 0 && name !== 'nice')) throw outOfRange(`options.${name}`, value);
  }
  const { timeout, signal } = options;
  if (timeout != null && !(Number.isInteger(timeout) && timeout >= 0)) throw outOfRange('options.timeout', timeout);
  if (signal != null && typeof signal.addEventListener !== 'function') throw invalidType('options.signal', 'an instance of AbortSignal', signal);
}

// Returns names and values in turn, or undefined for those of the process, which the Rust side reads in a third of the time. A worker has an
// environment of its own. As with child_process, values of prototypes are included.
function environment(given) {
  if (isMainThread && given === process.env) return undefined;
  const variables = [];
  for (const name in given) {
    const value = given[name];
    if (value !== undefined) variables.push(checkString(`options.env['${name}']`, name), checkString(`options.env['${name}']`, `${value}`));
  }
  const coverage = process.env.NODE_V8_COVERAGE;
  if (coverage && !('NODE_V8_COVERAGE' in given)) variables.push('NODE_V8_COVERAGE', coverage);
  return variables;
}

// Returns the number of a stream's file. Node does not publish that of a socket.
function streamNumber(stream, index) {
  if (Number.isInteger(stream.fd)) return stream.fd;
  const handle = stream._handle ?? stream.handle;
  if (!Number.isInteger(handle?.fd) || handle.fd < 0) throw invalidValue(`stdio[${index}]`, stream);
  if (handle.readStop) {
    // The child reads from now on.
    handle.reading = false;
    handle.readStop();
    stream.pause?.();
  }
  return handle.fd;
}

function streamSource(value, index, fallback) {
  if (value == null) return index < 3 ? fallback : IGNORE;
  if (value === 'pipe' || value === 'overlapped') return PIPE;
  if (value === 'ignore') return IGNORE;
  if (value === 'inherit') return index;
  if (value === 'ipc') throw invalidValue('stdio', value, 'needs child_process.fork or child_process.spawn');
  if (Number.isInteger(value) && value >= 0) return value;
  if (typeof value === 'object') return streamNumber(value, index);
  throw invalidValue(`stdio[${index}]`, value);
}

function streamSources(stdio, fallback) {
  if (typeof stdio === 'string') {
    if (!['pipe', 'overlapped', 'ignore', 'inherit'].includes(stdio)) throw invalidValue('stdio', stdio);
    stdio = [stdio, stdio, stdio];
  }
  if (stdio != null && !Array.isArray(stdio)) throw invalidValue('stdio', stdio);
  const sources = Array.from(stdio ?? []);
  while (sources.length < 3) sources.push(undefined);
  return sources.map((value, index) => streamSource(value, index, fallback));
}

function limits(rlimits) {
  return Object.entries(rlimits ?? {}).map(([name, value]) => {
    const resource = RESOURCES.indexOf(name);
    const [soft, hard] = Array.isArray(value) ? value : [value, value];
    if (resource < 0 || !(soft >= 0 && hard >= 0)) throw invalidValue(`options.rlimits.${name}`, value);
    return [resource, soft, hard];
  });
}

// Returns the program and its arguments, which are a shell's if there is a text for one.
function words(file, args, { shell }) {
  checkString('file', file);
  if (file === '') throw invalidValue('file', file, 'cannot be empty');
  args = args.map((arg, index) => checkString(`args[${index}]`, `${arg}`));
  if (!shell) return { file, args, isShell: false };
  const program = typeof shell === 'string' ? checkString('options.shell', shell) : '/bin/sh';
  return { file: program, args: ['-c', [file, ...args].join(' ')], isShell: program === '/bin/sh' };
}

function request(file, args, options) {
  checkTypes(options);
  const { argv0, cwd, shell, pty, groups, cpus, pdeathsig } = options;
  if (shell != null && !['boolean', 'string'].includes(typeof shell)) throw invalidType('options.shell', 'of type boolean or string', shell);
  const command = words(file, args, options);
  return {
    ...command,
    isShell: command.isShell && argv0 == null && options.chroot == null,
    argv0,
    env: environment(options.env || process.env),
    cwd: cwd == null ? undefined : checkString('options.cwd', cwd instanceof URL ? fileURLToPath(cwd) : cwd),
    stdio: streamSources(options.stdio, pty ? TERMINAL : PIPE),
    detached: !!options.detached,
    uid: options.uid,
    gid: options.gid,
    groups,
    umask: options.umask,
    processGroup: options.processGroup,
    rlimits: limits(options.rlimits),
    nice: options.nice,
    cpus,
    cgroup: options.cgroup,
    pdeathsig: pdeathsig == null ? undefined : signalNumber(pdeathsig),
    chroot: options.chroot,
    noNewPrivs: !!options.noNewPrivs,
    pty: pty && [pty.rows, pty.columns],
  };
}

module.exports = { request };
