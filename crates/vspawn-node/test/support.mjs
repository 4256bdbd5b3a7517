// Starts the same programs with child_process and with vspawn, and describes what a user would see of each.

import * as childProcess from "node:child_process";
import { createRequire } from "node:module";

export { childProcess };
export const vspawn = createRequire(import.meta.url)("../lib/index.js");
export const MODULES = { childProcess, vspawn };

// Waits for the end of a child, and returns its events in their order, its streams and its properties. Chunks of `input` are written.
export function outcome(child, input = []) {
  const seen = { events: [], stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) child[name]?.setEncoding("latin1").on("data", (data) => (seen[name] += data));
  for (const event of ["spawn", "exit", "close"]) child.on(event, (...values) => seen.events.push([event, ...values]));
  child.on("error", (error) => seen.events.push(["error", description(error)]));
  input.forEach((chunk) => child.stdin.write(chunk));
  child.stdin?.end();
  return new Promise((resolve) => {
    child.on("close", () => {
      const { exitCode, signalCode, killed, spawnfile, spawnargs, connected } = child;
      resolve({ ...seen, exitCode, signalCode, killed, spawnfile, spawnargs, connected, hasPid: child.pid > 0 });
    });
  });
}

// Returns what both modules have of an error. Texts differ where vspawn names the step that failed.
export function description(error) {
  const { name, code, errno, syscall, path, spawnargs, killed, signal, cmd } = error;
  return { name, code, errno, syscall, path, spawnargs, killed, signal, cmd };
}

// Calls a function with each module, and returns both results. An exception is a result.
export async function both(call) {
  const results = {};
  for (const [name, module] of Object.entries(MODULES)) {
    try {
      results[name] = await call(module);
    } catch (error) {
      results[name] = { thrown: description(error) };
    }
  }
  return results;
}
