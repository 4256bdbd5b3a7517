// Uses the package in the ways that its types allow. tsc checks it; nothing runs it.

import { promisify } from "node:util";
import * as child_process from "node:child_process";
import { type ChildProcess, exec, execFile, promises, spawn, type SpawnError } from "../index.js";

const piped = spawn("cat", ["a"], { cwd: "/", rlimits: { nofile: [64, 128], core: 0 } });
piped.stdin.end("text");
piped.stdout.on("data", (data: Buffer) => data.length);
const ignored: ChildProcess = spawn("cat", [], { stdio: "ignore", pdeathsig: "SIGTERM" });
ignored.stdin?.end();
ignored.killTree();
const asNodes: child_process.ChildProcess = ignored;
asNodes.on("error", (error) => (error as SpawnError).stage.length);
const terminal = spawn("vi", [], { pty: { rows: 24, columns: 80 } });
terminal.pty?.resize({ rows: 30, columns: 90 });

exec("ls", (error, stdout) => error?.code ?? stdout.trim());
execFile("ls", ["-l"], { encoding: "buffer" }, (_error, stdout) => stdout.readInt8(0));
export const later: Promise<string> = promises.exec("ls").then(({ stdout }) => stdout.trim());
export const bytes: Promise<Buffer> = promises.execFile("ls", [], { encoding: null }).then(({ stdout }) => stdout);
export const promised: Promise<string> = promisify(exec)("ls").then(({ stdout }) => stdout);

// @ts-expect-error: no such limit
spawn("true", [], { rlimits: { files: 5 } });
// @ts-expect-error: `stdin` may be null
spawn("true", [], { stdio: "inherit" }).stdin.end();
