'use strict';
// Reads a child's outputs for the callback of `exec` and `execFile`.

const { coded, outOfRange, signalNumber } = require('./errors.js');

const DEFAULTS = { encoding: 'utf8', maxBuffer: 1024 * 1024, killSignal: 'SIGTERM' };

// One output, up to a number of bytes.
class Output {
  #chunks = [];
  #bytes = 0;

  constructor(stream, encoding, limit, onLimit) {
    this.stream = stream;
    if (encoding) stream?.setEncoding(encoding);
    stream?.on('data', (chunk) => {
      const bytes = typeof chunk === 'string' ? Buffer.byteLength(chunk, stream.readableEncoding) : chunk.length;
      const room = limit - this.#bytes;
      this.#bytes += bytes;
      this.#chunks.push(bytes > room ? chunk.slice(0, room) : chunk);
      if (bytes > room) onLimit();
    });
  }

  content(encoding) {
    return encoding || this.stream?.readableEncoding ? this.#chunks.join('') : Buffer.concat(this.#chunks);
  }
}

function collect(spawn, file, args, given, callback) {
  const options = { ...DEFAULTS, ...given, stdio: 'pipe' };
  const { maxBuffer, timeout } = options;
  if (typeof maxBuffer !== 'number' || !(maxBuffer >= 0)) throw outOfRange('options.maxBuffer', maxBuffer);
  const killSignal = options.killSignal == null ? 'SIGTERM' : signalNumber(options.killSignal);
  const encoding = Buffer.isEncoding(options.encoding) ? options.encoding : null;
  const child = spawn(file, args, { ...options, killSignal, timeout: undefined });
  let failure = null;
  let killed = false;

  const stop = (reason) => {
    failure ??= reason;
    killed = true;
    outputs.forEach((output) => output.stream?.destroy());
    try {
      child.kill(killSignal);
    } catch (error) {
      failure = error;
      finish();
    }
  };
  const outputs = ['stdout', 'stderr'].map((name) => new Output(child[name], encoding, maxBuffer, () => {
    stop(coded(RangeError, 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER', `${name} maxBuffer length exceeded`));
  }));
  const timer = timeout > 0 ? setTimeout(stop, timeout, null) : null;

  let isFinished = false;
  function finish(code, signal) {
    if (isFinished) return;
    isFinished = true;
    clearTimeout(timer);
    if (!callback) return;
    const [stdout, stderr] = outputs.map((output) => output.content(encoding));
    if (!failure && code === 0 && signal === null) {
      callback(null, stdout, stderr);
      return;
    }
    const cmd = [file, ...args].join(' ');
    failure ??= Object.assign(new Error(`Command failed: ${cmd}\n${stderr}`), { code, killed: child.killed || killed, signal });
    callback(Object.assign(failure, { cmd }), stdout, stderr);
  }
  child.on('close', finish);
  child.on('error', (error) => {
    failure = error;
    outputs.forEach((output) => output.stream?.destroy());
    finish();
  });
  return child;
}

module.exports = { collect };
