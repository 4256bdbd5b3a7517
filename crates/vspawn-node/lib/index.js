'use strict';
// The public functions, with the names and arguments of child_process.

const { promisify } = require('util');
const { ChildProcess } = require('./child.js');
const { abortError, invalidType, signalNumber } = require('./errors.js');
const { collect } = require('./collect.js');
const { request } = require('./options.js');

// Returns [args, options, callback], each of which may have been left out.
function optional(args, options, callback) {
  if (typeof args === 'function') return [[], {}, args];
  if (args != null && !Array.isArray(args)) {
    if (typeof args !== 'object') throw invalidType('args', 'an instance of Array', args);
    return [[], args, options];
  }
  if (typeof options === 'function') return [args ?? [], {}, options];
  if (options != null && typeof options !== 'object') throw invalidType('options', 'of type object', options);
  return [args ?? [], options ?? {}, callback];
}

function tryToKill(child, signal) {
  try {
    return child.kill(signal);
  } catch (error) {
    child.emit('error', error);
    return false;
  }
}

function spawn(file, ...rest) {
  const [args, options] = optional(...rest);
  const killSignal = options.killSignal == null ? 'SIGTERM' : signalNumber(options.killSignal);
  const { timeout, signal, argv0 } = options;
  const child = new ChildProcess(request(file, args, options), argv0);
  if (timeout > 0 && child.pid) {
    const timer = setTimeout(tryToKill, timeout, child, killSignal);
    child.once('exit', () => clearTimeout(timer));
  }
  if (signal && child.pid) {
    const abort = () => tryToKill(child, killSignal) && child.emit('error', abortError(signal));
    if (signal.aborted) {
      process.nextTick(abort);
    } else {
      signal.addEventListener('abort', abort, { once: true });
      child.once('exit', () => signal.removeEventListener('abort', abort));
    }
  }
  return child;
}

function execFile(file, ...rest) {
  const [args, options, callback] = optional(...rest);
  if (callback != null && typeof callback !== 'function') throw invalidType('callback', 'of type function', callback);
  return collect(spawn, file, args, options, callback);
}

function exec(command, options, callback) {
  if (typeof options === 'function') [options, callback] = [{}, options];
  const shell = typeof options?.shell === 'string' ? options.shell : true;
  return execFile(command, { ...options, shell }, callback);
}

// The form for `await`. The promise has the child as a property.
function promised(start) {
  const form = (...args) => {
    let child;
    const promise = new Promise((resolve, reject) => {
      child = start(...args, (error, stdout, stderr) => (error ? reject(Object.assign(error, { stdout, stderr })) : resolve({ stdout, stderr })));
    });
    return Object.assign(promise, { child });
  };
  Object.defineProperty(start, promisify.custom, { value: form });
  return form;
}

const promises = { exec: promised(exec), execFile: promised(execFile) };

module.exports = { ChildProcess, exec, execFile, promises, spawn };
