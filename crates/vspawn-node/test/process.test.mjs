// Many children, and what they leave behind in this process.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { both, childProcess, outcome, vspawn } from "./support.mjs";

const index = JSON.stringify(new URL("../lib/index.js", import.meta.url).pathname);
const descriptors = () => readdirSync("/proc/self/fd").length;
const signals = () => readFileSync("/proc/self/status", "utf8").match(/^Sig(Blk|Ign|Cgt):.*$/gm);

async function settled(count) {
  // Closing a stream takes a turn of the event loop.
  for (let turn = 0; turn < 100 && descriptors() > count; turn++) await new Promise(setImmediate);
  return descriptors();
}

test("200 children at once, with their outputs in the right hands", async () => {
  const started = Array.from({ length: 200 }, (_, number) => vspawn.spawn("sh", ["-c", `echo ${number}; exit ${number % 100}`]));
  const outcomes = await Promise.all(started.map((child) => outcome(child)));
  outcomes.forEach(({ stdout, exitCode }, number) => assert.deepEqual([stdout, exitCode], [`${number}\n`, number % 100]));
});

test("no descriptor, child or signal is left", async () => {
  const before = [descriptors(), signals()];
  for (let round = 0; round < 20; round++) {
    await Promise.all([
      outcome(vspawn.spawn("cat", [], { stdio: ["pipe", "pipe", "pipe", "pipe"] }), ["text"]),
      outcome(vspawn.spawn("no-such-program")),
      outcome(vspawn.spawn("true", [], { stdio: "ignore" })),
      outcome(vspawn.spawn("true", [], { pty: { rows: 24, columns: 80 } })),
      vspawn.promises.exec("no-such-program").catch(() => {}),
    ]);
    assert.throws(() => vspawn.spawn("true", [], { stdio: ["pipe", "pipe", 999] }), { code: "EBADF" });
  }
  assert.deepEqual([await settled(before[0]), signals()], before);
  assert.equal(childProcess.execFileSync("sh", ["-c", `cat /proc/${process.pid}/task/*/children`], { encoding: "utf8" }).trim().split(" ").length, 1);
});

test("a full table of descriptors is an error, and nothing is left", async () => {
  const text = `
    const { spawn } = require(${index});
    const { openSync, readdirSync } = require("fs");
    spawn("true").on("close", () => {
      try { for (;;) openSync("/dev/null"); } catch {}
      spawn("true").on("error", ({ code, syscall }) => console.log(code, syscall));
    });`;
  const { stdout } = await outcome(vspawn.spawn(process.execPath, ["-e", text], { rlimits: { nofile: 64 } }));
  assert.equal(stdout, "EMFILE spawn true\n");
});

test("input that the child does not read is an EPIPE of the stream", async () => {
  const results = await both(async (module) => {
    const child = module.spawn("sh", ["-c", "exec <&-; sleep 0.2"]);
    child.stdin.on("error", () => {});
    const failed = once(child.stdin, "error");
    child.stdin.write("x".repeat(1_000_000));
    await failed.catch(() => {});
    return child.stdin.errored?.code;
  });
  assert.deepEqual(results.vspawn, results.childProcess);
});

test("workers: each has its own children, and one that ends leaves no zombie", async () => {
  const text = `
    const { parentPort } = require("worker_threads");
    const { exec, spawn } = require(${index});
    exec("echo $NAME", { env: { NAME: "of a worker" } }, (error, stdout) => {
      parentPort.postMessage([stdout, spawn("sleep", ["60"], { stdio: "ignore" }).pid]);
    });`;
  const workers = Array.from({ length: 4 }, () => new Worker(text, { eval: true }));
  const messages = await Promise.all(workers.map((worker) => once(worker, "message")));
  await Promise.all(workers.map((worker) => worker.terminate()));
  for (const [[stdout, pid]] of messages) {
    assert.equal(stdout, "of a worker\n");
    process.kill(pid, "SIGKILL");
    // The watcher waits for it, although its worker is gone.
    while (true) {
      try {
    process.kill(pid, 0);
      } catch {
        break;
      }
      await new Promise(setImmediate);
    }
  }
});

test("children of both modules do not disturb each other", async () => {
  const all = Array.from({ length: 40 }, (_, number) => (number % 2 ? vspawn : childProcess).spawn("sh", ["-c", `exit ${number}`]));
  const outcomes = await Promise.all(all.map((child) => outcome(child)));
  assert.deepEqual(outcomes.map(({ exitCode }) => exitCode), all.map((_, number) => number));
});
