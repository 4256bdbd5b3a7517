// What vspawn has and child_process has not.

import assert from "node:assert/strict";
import { getPriority } from "node:os";
import { test } from "node:test";
import { outcome, vspawn } from "./support.mjs";

async function output(file, args, options) {
  const { stdout, stderr, exitCode } = await outcome(vspawn.spawn(file, args, options));
  assert.equal(exitCode, 0, stderr);
  return stdout.trim();
}

test("limits, niceness, CPUs, mask and signal at the parent's death", async () => {
  const status = (name) => `grep -o '^${name}.*' /proc/self/status | cut -f 2`;
  assert.equal(await output("sh", ["-c", "ulimit -Sn; ulimit -Hn; ulimit -c"], { rlimits: { nofile: [64, 128], core: 0 } }), "64\n128\n0");
  assert.equal(await output("sh", ["-c", "ulimit -Ss"], { rlimits: { stack: [Infinity, Infinity] } }), "unlimited");
  assert.equal(Number(await output("nice", [], { nice: 3 })), Math.min(getPriority() + 3, 19));
  assert.equal(await output("sh", ["-c", status("Cpus_allowed_list")], { cpus: [0] }), "0");
  assert.equal(await output("sh", ["-c", "umask"], { umask: 0o27 }), "0027");
  assert.equal(await output("sh", ["-c", status("NoNewPrivs")], { noNewPrivs: true }), "1");
  assert.equal(await output("sh", ["-c", "ps -o pgid= -p $$ | grep -q $$"], { processGroup: 0 }), "");
});

test("a signal at the parent's death", async () => {
  const path = JSON.stringify(new URL("../lib/index.js", import.meta.url).pathname);
  const text = `console.log(require(${path}).spawn("sleep", ["60"], { pdeathsig: "SIGKILL", stdio: "ignore" }).pid); process.exit()`;
  const pid = Number(await output(process.execPath, ["-e", text]));
  // The child may be a zombie of another process, or gone.
  assert.match(await output("sh", ["-c", `cat /proc/${pid}/stat 2>/dev/null || echo gone`]), /gone|\) Z /);
});

test("root directory and groups", { skip: process.getuid() !== 0 && "needs root" }, async () => {
  assert.equal(await output("id", ["-G"], { uid: 65534, gid: 65534, groups: [4, 27] }), "65534 4 27");
});

test("an error names the step that failed", async () => {
  const failure = (options, file = "true") => new Promise((resolve) => vspawn.spawn(file, [], options).on("error", resolve));
  const directory = await failure({ cwd: "/no/such" });
  assert.deepEqual([directory.stage, directory.action], ["chdir", "chdir to /no/such"]);
  assert.equal(directory.message, "spawn true ENOENT (failed to chdir to /no/such)");
  const program = await failure({}, "no-such-program");
  assert.deepEqual([program.stage, program.message], ["exec", "spawn no-such-program ENOENT"]);
  assert.equal((await failure({ chroot: "/no/such" })).stage, "chroot");
  assert.equal((await failure({ cgroup: "/no/such" })).stage, "cgroup");
  assert.throws(() => vspawn.spawn("true", [], { stdio: [999] }), { code: "EBADF", syscall: "spawn", stage: "dup" });
  assert.throws(() => vspawn.spawn("true", [], { detached: true, processGroup: 0 }), { code: "EINVAL", stage: "prepare" });
  assert.throws(() => vspawn.spawn("true", [], { rlimits: { files: 1 } }), { code: "ERR_INVALID_ARG_VALUE" });
  assert.throws(() => vspawn.spawn("true", [], { stdio: ["ipc"] }), /child_process.fork/);
});

test("simple text runs without a shell", async () => {
  const parent = "readlink /proc/self/exe";
  const { stdout } = await vspawn.promises.exec(parent);
  assert.match(stdout, /readlink|coreutils/);
  const ids = async (text) => {
    const child = vspawn.exec(text);
    let shown = "";
    child.stdout.on("data", (data) => (shown += data));
    await outcome(child);
    return [child.pid, Number(shown.split(" ")[0])];
  };
  const [pid, own] = await ids("cat /proc/self/stat");
  assert.equal(pid, own);
  // The shell's variables may change the meaning of a text.
  const { stdout: shells } = await vspawn.promises.exec("cat /proc/self/stat", { env: { PATH: process.env.PATH, ENV: "/dev/null" } });
  assert.match(shells, /^\d+ \(cat\)/);
});

test("killTree ends the descendants", async () => {
  const child = vspawn.spawn("sh", ["-c", "sleep 60 & echo $!; wait"]);
  const pid = await new Promise((resolve) => child.stdout.once("data", (data) => resolve(Number(data))));
  assert.equal(child.killTree(), true);
  // `close` comes after the last process has closed the pipe.
  const { signalCode } = await outcome(child);
  assert.equal(signalCode, "SIGKILL");
  assert.match(await output("sh", ["-c", `cat /proc/${pid}/stat 2>/dev/null || echo gone`]), /gone|\) Z /);
});

test("a pseudo-terminal: its size, its input and its end", async () => {
  const child = vspawn.spawn("sh", ["-c", "tty > /dev/null && stty size; trap 'stty size; exit 5' WINCH; echo ready; read line; read line"],
    { pty: { rows: 30, columns: 100 } });
  let shown = "";
  let isReady = false;
  child.pty.on("data", (data) => {
    shown += data;
    if (!isReady && shown.includes("ready")) {
      isReady = true;
      child.pty.resize({ rows: 40, columns: 120 });
      child.pty.write("typed\n");
    }
  });
  const ended = new Promise((resolve) => child.pty.on("end", resolve));
  const { exitCode, stdout } = await outcome(child);
  await ended;
  assert.deepEqual([exitCode, stdout, child.stdin], [5, "", null]);
  assert.match(shown, /^30 100\r\nready\r\n/);
  assert.match(shown, /40 120\r\n/);
});

test("a pseudo-terminal takes and gives more than its buffers", async () => {
  const child = vspawn.spawn("sh", ["-c", "stty raw -echo; echo ready; head -c 300000 | tr a b"], { pty: { rows: 24, columns: 80 } });
  let bytes = 0;
  child.pty.once("data", () => {
    child.pty.on("data", (data) => (bytes += data.length));
    child.pty.write("a".repeat(300_000));
  });
  await outcome(child);
  assert.equal(bytes, 300_000);
});
