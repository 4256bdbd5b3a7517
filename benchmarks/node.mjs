// Starts /bin/true with one module and prints the times in nanoseconds, as JSON: `blocked`, how long the call of spawn keeps the event loop from
// everything else; `wall`, until the child's end is reported; and `together`, the same for each of eight children that are started at once.
// A process has one module only: after a fork, Node copies each page that it writes, so child_process makes what runs next slower.
// Arguments: child_process or the directory of vspawn's package, the number of rounds, the MiB of V8's heap to fill first (with
// --max-old-space-size=4096).

import { createRequire } from "node:module";

const [name, rounds, mebibytes] = process.argv.slice(2);
const module = createRequire(import.meta.url)(name);
// Arrays of doubles have nothing to visit for the garbage collector.
const ballast = Array.from({ length: mebibytes * 16 }, () => new Array(8192).fill(1.5));

const TOGETHER = 8;
const times = { blocked: [], wall: [], together: [] };
const now = () => Number(process.hrtime.bigint());
const start = () => module.spawn("/bin/true", [], { stdio: "ignore" });
const end = (child) => new Promise((resolve) => child.on("close", resolve));
for (let round = 0; round < Number(rounds); round++) {
  const began = now();
  const child = start();
  times.blocked.push(now() - began);
  await end(child);
  times.wall.push(now() - began);
  const beganTogether = now();
  await Promise.all(Array.from({ length: TOGETHER }, () => end(start())));
  times.together.push((now() - beganTogether) / TOGETHER);
}
console.log(JSON.stringify({ resident: process.memoryUsage().rss, arrays: ballast.length, times }));
