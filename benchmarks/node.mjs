// Starts /bin/true with child_process and vspawn in turn, and prints the times in nanoseconds, as JSON: `blocked`, how long the call of spawn
// keeps the event loop from everything else; `wall`, until the child's end is reported; and `together`, the same for each of eight children
// that are started at once. Arguments: the directory of vspawn's package, the number of rounds, the MiB of V8's heap to fill first (with
// --max-old-space-size=4096).

import childProcess from "node:child_process";
import { createRequire } from "node:module";

const [directory, rounds, mebibytes] = process.argv.slice(2);
const vspawn = createRequire(import.meta.url)(directory);
// Arrays of doubles have nothing to visit for the garbage collector.
const ballast = Array.from({ length: mebibytes * 16 }, () => new Array(8192).fill(1.5));

const TOGETHER = 8;
const empty = () => ({ blocked: [], wall: [], together: [] });
const times = { child_process: empty(), vspawn: empty() };
const now = () => Number(process.hrtime.bigint());
const start = (module) => module.spawn("/bin/true", [], { stdio: "ignore" });
const end = (child) => new Promise((resolve) => child.on("close", resolve));
const modules = [["child_process", childProcess], ["vspawn", vspawn]];
for (let round = 0; round < Number(rounds); round++) {
  modules.reverse();
  for (const [name, module] of modules) {
    const began = now();
    const child = start(module);
    times[name].blocked.push(now() - began);
    await end(child);
    times[name].wall.push(now() - began);
    const beganTogether = now();
    await Promise.all(Array.from({ length: TOGETHER }, () => end(start(module))));
    times[name].together.push((now() - beganTogether) / TOGETHER);
  }
}
console.log(JSON.stringify({ resident: process.memoryUsage().rss, arrays: ballast.length, times }));
