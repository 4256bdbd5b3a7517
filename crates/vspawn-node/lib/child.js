'use strict';
// A child, with the events and properties of child_process.ChildProcess.

const child_process = require('child_process');
const EventEmitter = require('events');
const net = require('net');
const os = require('os');
const { signalNames, signalNumber, systemError } = require('./errors.js');
const { Starter } = require('./native.js');

const { EACCES, EAGAIN, EINVAL, EMFILE, ENFILE, ENOENT, ESRCH } = os.constants.errno;
// As with child_process, these failures are events; others are thrown by `spawn`.
const REPORTED = [EACCES, EAGAIN, EMFILE, ENFILE, ENOENT];

// The children whose end was not reported yet, by id.
const running = new Map();
const starter = new Starter((id, code, signal, errno) => running.get(id)?._ended(code, signal, errno));

// The event loop runs while there is a child that was not unreferenced: the Rust side does not hold it.
let held = 0;
let timer;
function hold(change) {
  held += change;
  if (held === 0) clearInterval(timer);
  else if (held === change) timer = setInterval(() => {}, 0x7fffffff);
}

class ChildProcess extends EventEmitter {
  exitCode = null;
  signalCode = null;
  killed = false;
  connected = false;
  #id = 0;
  #isReferenced = false;
  // The streams that have not been closed, and the process itself.
  #open = 1;

  constructor(request, argv0) {
    super();
    this.spawnfile = request.file;
    this.spawnargs = [argv0 ?? request.file, ...request.args];
    const started = starter.start(request);
    this.stdio = started.fds.map((fd, index) => (fd < 0 ? null : this.#stream(fd, index)));
    [this.stdin = null, this.stdout = null, this.stderr = null] = this.stdio;
    if (started.errno) {
      this.#failed(started);
      return;
    }
    this.pid = started.pid;
    this.#id = started.id;
    if (started.pty != null) this.pty = this.#terminal(started.pty);
    running.set(this.#id, this);
    this.ref();
    process.nextTick(() => this.emit('spawn'));
  }

  #stream(fd, index) {
    const stream = new net.Socket({ fd, readable: index > 0, writable: index === 0 || index > 2 });
    return index > 0 ? this.#count(stream) : stream;
  }

  #terminal(fd) {
    const terminal = this.#count(new net.Socket({ fd, readable: true, writable: true }));
    return Object.assign(terminal, { resize: ({ rows, columns }) => starter.resize(this.#id, rows, columns) });
  }

  #count(stream) {
    this.#open++;
    return stream.on('close', () => this.#closed());
  }

  #closed() {
    if (--this.#open === 0) this.emit('close', this.exitCode, this.signalCode);
  }

  #failed({ errno, stage, action }) {
    const step = { stage: stage.replace(/\B[A-Z]/g, '_$&').toLowerCase(), action };
    const program = { path: this.spawnfile, spawnargs: this.spawnargs.slice(1) };
    const isReported = REPORTED.includes(errno);
    const error = systemError(errno, isReported ? `spawn ${this.spawnfile}` : 'spawn', isReported ? { ...program, ...step } : step);
    // Node's text names the program, whatever failed.
    if (stage !== 'Exec' && action) error.message += ` (failed to ${action})`;
    if (!isReported) {
      this.stdio.forEach((stream) => stream?.destroy());
      throw error;
    }
    process.nextTick(() => this.#end(-errno, null, error));
  }

  // Called by the Rust side.
  _ended(code, signal, errno) {
    running.delete(this.#id);
    this.unref();
    const error = errno ? systemError(errno, 'wait') : null;
    this.#end(errno || signal ? null : code, signalNames[signal] ?? null, error);
  }

  #end(code, signal, error) {
    this.exitCode = code;
    this.signalCode = signal;
    this.stdin?.destroy();
    // Streams that nobody reads have to end for `close`, after the user's last chance to read them.
    process.nextTick(() => {
      for (const stream of [...this.stdio, this.pty]) if (stream?.readable && stream.readableFlowing === null) stream.resume();
    });
    if (error) this.emit('error', error);
    else this.emit('exit', code, signal);
    this.#closed();
  }

  #control(call, syscall) {
    const errno = running.has(this.#id) ? call(this.#id) : ESRCH;
    if (errno === EINVAL) throw systemError(errno, syscall);
    if (errno === 0) this.killed = true;
    else if (errno !== ESRCH) this.emit('error', systemError(errno, syscall));
    return errno === 0;
  }

  kill(signal = 'SIGTERM') {
    const number = signal === 0 ? 0 : signalNumber(signal);
    return this.#control((id) => starter.signal(id, number), 'kill');
  }

  // Kills the child and all its descendants.
  killTree() {
    return this.#control((id) => starter.killTree(id), 'kill');
  }

  ref() {
    if (!this.#isReferenced && running.has(this.#id)) hold(+1);
    this.#isReferenced = running.has(this.#id);
  }

  unref() {
    if (this.#isReferenced) hold(-1);
    this.#isReferenced = false;
  }
}

if (Symbol.dispose) {
  ChildProcess.prototype[Symbol.dispose] = function dispose() {
    if (!this.killed) this.kill();
  };
}
// For `instanceof`. Nothing is used from there.
Object.setPrototypeOf(ChildProcess.prototype, child_process.ChildProcess.prototype);

module.exports = { ChildProcess };
