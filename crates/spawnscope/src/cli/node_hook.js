// Reports to `spawnscope record --node-lines` where a program launches: before each launch, it calls existsSync with a path that contains the
// call stack. No such file exists, but the recorder sees the path in the system call. This code must neither throw nor change what the program
// does.
'use strict';
const PREFIX = '/dev/null/spawnscope-node-lines/';
// Includes the innermost four frames, which are in this file.
const MAX_FRAMES = 20;
const MAX_BYTES = 4000;

const { existsSync } = require('fs');
const childProcess = require('child_process');

function formatFrames(_, sites) {
  let text = PREFIX;
  for (const site of sites) {
    const file = site.getFileName();
    if (!file || file === __filename || file.startsWith('node:')) continue;
    const name = site.getFunctionName() || '';
    const frame = `${site.getLineNumber() || 0}\n${file}\n${name.includes('\n') ? '' : name}\n`;
    if (file.includes('\n') || Buffer.byteLength(text) + Buffer.byteLength(frame) > MAX_BYTES) break;
    text += frame;
  }
  return text;
}

function reportCallStack() {
  const { prepareStackTrace, stackTraceLimit } = Error;
  const wasSet = Object.hasOwn(Error, 'prepareStackTrace');
  try {
    Error.prepareStackTrace = formatFrames;
    Error.stackTraceLimit = MAX_FRAMES;
    const holder = {};
    Error.captureStackTrace(holder);
    const text = holder.stack;
    if (typeof text === 'string' && text !== PREFIX) existsSync(text);
  } finally {
    if (wasSet) Error.prepareStackTrace = prepareStackTrace;
    else delete Error.prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function reportWithoutThrowing() {
  try {
    reportCallStack();
  } catch {
    // The call site stays unknown.
  }
}

function withReport(call) {
  return new Proxy(call, {
    apply(target, self, args) {
      reportWithoutThrowing();
      return Reflect.apply(target, self, args);
    },
  });
}

try {
  const { prototype } = childProcess.ChildProcess;
  prototype.spawn = withReport(prototype.spawn);
  for (const name of ['spawnSync', 'execSync', 'execFileSync']) childProcess[name] = withReport(childProcess[name]);
  require('module').syncBuiltinESMExports();
} catch {
  // The lines stay unknown.
}
