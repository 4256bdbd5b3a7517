// What users see of a child is the same as with child_process.

import assert from "node:assert/strict";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { both, outcome } from "./support.mjs";

const directory = mkdtempSync(join(tmpdir(), "vspawn node "));
after(() => rmSync(directory, { recursive: true }));
const script = join(directory, "a script");
writeFileSync(script, '#!/bin/sh\nprintf "%s\\n" "$@"\n', { mode: 0o755 });
const locked = join(directory, "locked");
writeFileSync(locked, "no program");
const aborted = AbortSignal.abort("a reason");

// Each: what `spawn` is called with, and the input.
const SPAWNS = {
  "a path and arguments with spaces": [[script, ["one word", "", "ünïcode"]]],
  "a program in PATH, its streams and its status": [["sh", ["-c", "cat; echo error >&2; exit 7"]], ["some ", "input"]],
  "a missing program": [["no-such-program", ["an argument"]]],
  "a file without permission": [[locked]],
  "a missing directory": [["true", [], { cwd: join(directory, "none") }]],
  "a file as directory": [["true", [], { cwd: locked }]],
  "a directory": [["pwd", { cwd: directory }]],
  "a directory as URL": [["pwd", [], { cwd: pathToFileURL(directory) }]],
  "an argument list that is too long": [["true", ["x".repeat(200_000)]]],
  "an environment": [["sh", ["-c", "echo $NAME, $NUMBER, ${NONE-none}, ${HOME-none}"], { env: { NAME: "a value", NONE: undefined, NUMBER: 5 } }]],
  "a program that is only in the PATH of the child": [["a script", ["x"], { env: { PATH: directory } }]],
  "argv0": [["sh", ["-c", "tr '\\0' ' ' < /proc/self/cmdline > /dev/null; cat /proc/$$/cmdline"], { argv0: "another name" }]],
  "the end by a signal": [["sh", ["-c", "kill -9 $$"]]],
  "signals have their default effects": [["grep", ["^Sig\\(Blk\\|Ign\\)", "/proc/self/status"]]],
  "a shell": [["echo $((1 + 1)); exit 3", { shell: true }]],
  "a shell with arguments": [["printf", ["%s,", "a b", "c"], { shell: true }]],
  "another shell": [["echo ${BASH_VERSION:+bash}", [], { shell: "/bin/bash" }]],
  "streams that are ignored": [["sh", ["-c", "cat; echo lost"], { stdio: "ignore" }]],
  "a session": [["sh", ["-c", "read -r _ _ _ _ _ session _ < /proc/$$/stat; test $session = $$"], { detached: true }]],
  "a further descriptor": [["sh", ["-c", "ls /proc/$$/fd; test -S /proc/self/fd/3"], { stdio: ["pipe", "pipe", "pipe", "pipe"] }]],
  "a descriptor that is closed": [["true", [], { stdio: ["ignore", 999, "ignore"] }]],
  "a timeout": [["sleep", ["60"], { timeout: 20 }]],
  "a timeout with another signal": [["sleep", ["60"], { timeout: 20, killSignal: "SIGKILL" }]],
  "an abort before the start": [["sleep", ["60"], { signal: aborted }]],
  "10 MB of output": [["sh", ["-c", "head -c 10000000 /dev/zero; echo end"]]],
  "NUL in an argument": [["true", ["a\0b"]]],
  "no program": [[""]],
  "a number as program": [[5]],
  "an invalid signal": [["true", [], { killSignal: "SIGNONE" }]],
  "an invalid list of streams": [["true", [], { stdio: "unknown" }]],
  "an invalid timeout": [["true", [], { timeout: -1 }]],
};
if (process.getuid() === 0) {
  SPAWNS["another user and group"] = [["sh", ["-c", "id -u; id -g"], { uid: 65534, gid: 65534 }]];
} else {
  SPAWNS["a user that is refused"] = [["true", [], { uid: 0 }]];
}

for (const [name, [args, input]] of Object.entries(SPAWNS)) {
  test(`spawn: ${name}`, async () => {
    const results = await both((module) => outcome(module.spawn(...args), input));
    assert.deepEqual(results.vspawn, results.childProcess);
  });
}

// Each: what `exec` is called with.
const EXECS = {
  "simple words": ["printf '%s-' one 'two words'"],
  "a builtin": ["echo out; echo error >&2; exit 4"],
  "a missing program": ["no-such-program --flag"],
  "a file without permission": [`'${locked}'`],
  "a status": ["sh -c 'exit 3'"],
  "too much output": ["head -c 3000 /dev/zero", { maxBuffer: 1000 }],
  "as much output as allowed": ["head -c 1000 /dev/zero", { maxBuffer: 1000 }],
  "an encoding": ["printf abc", { encoding: "hex" }],
  "bytes": ["printf abc", { encoding: "buffer" }],
  "characters of several bytes": ["printf '\\303\\244\\303'"],
  "a timeout": ["sleep 60", { timeout: 20 }],
  "a timeout of a shell": ["exec sleep 60; :", { timeout: 20, killSignal: "SIGKILL" }],
  "an abort": ["sleep 60", { signal: aborted }],
  "an environment": ["printenv A HOME", { env: { PATH: process.env.PATH, A: "1" } }],
  "another shell": ["echo ${BASH_VERSION:+bash}", { shell: "/bin/bash" }],
  "a directory": ["/bin/pwd", { cwd: directory }],
};

for (const [name, args] of Object.entries(EXECS)) {
  test(`exec: ${name}`, async () => {
    const withCallback = (module) => new Promise((resolve) => {
      module.exec(...args, (error, stdout, stderr) => resolve({ error: error && { ...error, stack: 0 }, message: error?.message, stdout, stderr }));
    });
    const results = await both(withCallback);
    assert.deepEqual(results.vspawn, results.childProcess);
    const awaited = await both((module) => promisify(module.exec)(...args));
    assert.deepEqual(awaited.vspawn, awaited.childProcess);
  });
}

test("execFile: its forms of arguments, and its errors", async () => {
  const forms = [["true"], ["printf", ["%s", "a b"]], ["pwd", { cwd: directory }], ["no-such-program", ["x"]], ["false", [], {}]];
  for (const form of forms) {
    const results = await both((module) => promisify(module.execFile)(...form));
    assert.deepEqual(results.vspawn, results.childProcess, form[0]);
  }
});

test("a child inherits descriptors and streams, and keeps none of Node's", async () => {
  const results = await both(async (module) => {
    const path = join(directory, "output");
    const output = openSync(path, "w+");
    const child = module.spawn("sh", ["-c", "echo to a file; ls /proc/self/fd | wc -l"], { stdio: ["inherit", output, 2] });
    const { exitCode } = await outcome(child);
    closeSync(output);
    return [exitCode, child.stdio.length, readFileSync(path, "utf8")];
  });
  assert.deepEqual(results.vspawn, results.childProcess);
});

test("a child reads from the output of another one", async () => {
  const results = await both(async (module) => {
    const first = module.spawn("printf", ["b\\na\\n"], { stdio: ["ignore", "pipe", "ignore"] });
    return (await outcome(module.spawn("sort", [], { stdio: [first.stdout, "pipe", "inherit"] }))).stdout;
  });
  assert.deepEqual(results.vspawn, results.childProcess);
  assert.equal(results.vspawn, "a\nb\n");
});

test("kill, and kill after the end", async () => {
  const results = await both(async (module) => {
    const child = module.spawn("sleep", ["60"]);
    const seen = [child.kill(0), child.killed, child.kill("SIGTERM"), child.killed];
    const ended = await outcome(child);
    return [...seen, ended.events, child.kill(), child.kill(0)];
  });
  assert.deepEqual(results.vspawn, results.childProcess);
});

test("an exception of a listener is an uncaught exception", async () => {
  const program = (name) => `
    const { spawn } = ${name === "vspawn" ? `require(${JSON.stringify(new URL("../lib/index.js", import.meta.url).pathname)})` : "require('child_process')"};
    process.on("uncaughtException", (error) => console.log("uncaught", error.message));
    spawn("true").on("exit", () => { throw new Error("of the listener"); }).on("close", () => console.log("closed"));
    spawn("no-such-program");
    const left = spawn("sleep", ["60"], { stdio: "ignore" });
    left.unref();
    console.log("started");`;
  const outputs = await both(async (module) => {
    const name = module.fork ? "childProcess" : "vspawn";
    return outcome(module.spawn(process.execPath, ["-e", program(name)]));
  });
  const lines = ({ stdout }) => stdout.split("\n").sort();
  assert.deepEqual(lines(outputs.vspawn), lines(outputs.childProcess));
  assert.equal(outputs.vspawn.exitCode, 0, outputs.vspawn.stderr);
});
