// Tells `spawnscope record --node-lines` where a program launches: before each launch, it asks whether a file exists whose name is the call
// stack. There is no such file; the recorder sees the question. Nothing here may change what the program does or throw.
'use strict';
const PREFIX = '/dev/null/spawnscope-node-lines/';
// The innermost four are of this file.
const MAX_FRAMES = 20;
const MAX_BYTES = 4000;

const { existsSync } = require('fs');
const childProcess = require('child_process');

function frames(_, sites) {
  let text = PREFIX;
  for (const site of sites) {
    const file = site.getFileName();
    if (!file || file === __filename || file.startsWith('node:')) continue;
    const name = site.getFunctionName() || '';
    const next = `${site.getLineNumber() || 0}\n${file}\n${name.includes('\n') ? '' : name}\n`;
    if (file.includes('\n') || Buffer.byteLength(text) + Buffer.byteLength(next) > MAX_BYTES) break;
    text += next;
  }
  return text;
}

function ask() {
  const { prepareStackTrace, stackTraceLimit } = Error;
  const hadOwn = Object.hasOwn(Error, 'prepareStackTrace');
  try {
    Error.prepareStackTrace = frames;
    Error.stackTraceLimit = MAX_FRAMES;
    const holder = {};
    Error.captureStackTrace(holder);
    const text = holder.stack;
    if (typeof text === 'string' && text !== PREFIX) existsSync(text);
  } finally {
    if (hadOwn) Error.prepareStackTrace = prepareStackTrace;
    else delete Error.prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function tell() {
  try {
    ask();
  } catch {
    // The call site stays unknown.
  }
}

function telling(call) {
  return new Proxy(call, {
    apply(target, self, given) {
      tell();
      return Reflect.apply(target, self, given);
    },
  });
}

try {
  const { prototype } = childProcess.ChildProcess;
  prototype.spawn = telling(prototype.spawn);
  for (const name of ['spawnSync', 'execSync', 'execFileSync']) childProcess[name] = telling(childProcess[name]);
  require('module').syncBuiltinESMExports();
} catch {
  // The lines stay unknown.
}
