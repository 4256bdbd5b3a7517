'use strict';
// Errors with the names, codes and properties of child_process.

const os = require('os');
const { getSystemErrorName, inspect } = require('util');

function coded(Class, code, text) {
  return Object.assign(new Class(text), { code });
}

function invalidType(name, expected, value) {
  return coded(TypeError, 'ERR_INVALID_ARG_TYPE', `The "${name}" argument must be ${expected}. Received ${inspect(value)}`);
}

function invalidValue(name, value, reason = 'is invalid') {
  return coded(TypeError, 'ERR_INVALID_ARG_VALUE', `The argument '${name}' ${reason}. Received ${inspect(value)}`);
}

function outOfRange(name, value) {
  return coded(RangeError, 'ERR_OUT_OF_RANGE', `The value of "${name}" is out of range. Received ${inspect(value)}`);
}

// The error of a system call. `details` are further properties.
function systemError(errno, syscall, details) {
  const code = getSystemErrorName(-errno);
  return Object.assign(new Error(`${syscall} ${code}`), { errno: -errno, code, syscall }, details);
}

class AbortError extends Error {
  code = 'ABORT_ERR';
  name = 'AbortError';
}

function abortError({ reason }) {
  return new AbortError('The operation was aborted', { cause: reason });
}

function signalNumber(signal) {
  const { signals } = os.constants;
  const number = typeof signal === 'number' ? signal : signals[String(signal).toUpperCase()];
  if (Object.values(signals).includes(number)) return number;
  throw coded(TypeError, 'ERR_UNKNOWN_SIGNAL', `Unknown signal: ${signal}`);
}

const signalNames = Object.fromEntries(Object.entries(os.constants.signals).reverse().map(([name, number]) => [number, name]));

module.exports = { abortError, coded, invalidType, invalidValue, outOfRange, signalNames, signalNumber, systemError };
