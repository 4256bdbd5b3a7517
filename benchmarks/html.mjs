// Measures the page of `spawnscope html` in headless Chromium: its size, the time to write it, the time from opening it until it is ready, frames
// per second while panning and zooming, and memory. Prints medians of --runs openings and stores them in benchmarks/runs/<date>-<host>/html.json.
// Usage: node benchmarks/html.mjs RECORDING [--runs N] [--binary FILE] [--dry-run]; needs Chromium and `npm ci` in crates/spawnscope/html.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { cpus, hostname, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const { chromium } = await import(join(root, "crates/spawnscope/html/node_modules/playwright-core/index.mjs"));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: "string", default: "5" }, binary: { type: "string", default: join(root, "target/release/spawnscope") }, "dry-run": { type: "boolean" } },
});
const [recording] = positionals;
if (!recording) throw new Error("name a recording, such as one of `spawnscope record -o large.db -- CMD`");
const SECONDS_PER_MEASUREMENT = 2;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const directory = mkdtempSync(join(tmpdir(), "spawnscope-bench."));
const file = join(directory, "report.html");
const runs = [];
for (let run = 0; run < Number(values.runs); run++) {
  const begun = performance.now();
  execFileSync(values.binary, ["html", "-o", file, recording]);
  const written = (performance.now() - begun) / 1000;
  runs.push({ written_s: written, ...(await measurePage(pathToFileURL(file).href)) });
}
const median = (key) => runs.map((run) => run[key]).sort((a, b) => a - b)[runs.length >> 1];
const results = { recording_launches: runs[0].launches, page_bytes: statSync(file).size, cpus: cpus().length, load: loadavg()[0], runs: runs.length };
for (const key of ["written_s", "ready_s", "pan_fps", "zoom_fps", "slowest_frame_ms", "memory_mib"]) results[key] = median(key);
rmSync(directory, { recursive: true });
console.log(results);
if (!values["dry-run"]) {
  const resultsDirectory = join(root, "benchmarks/runs", `${new Date().toISOString().slice(0, 10)}-${hostname()}`);
  mkdirSync(resultsDirectory, { recursive: true });
  writeFileSync(join(resultsDirectory, "html.json"), `${JSON.stringify(results, null, 2)}\n`);
}

/** Opens the page in a new browser, zooms and pans, and returns what it measured. */
async function measurePage(address) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
  try {
    const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
    await page.goto(address);
    await page.waitForSelector("html[data-ready]", { timeout: 60_000 });
    const ready = Number(await page.getAttribute("html", "data-ready")) / 1000;
    const launches = Number((await page.textContent("#totals")).match(/([\d,]+) launch/)[1].replaceAll(",", ""));
    await page.focus("#canvas");
    await page.keyboard.press("w");
    const zoom = await measureFrames(page, ["w", "s"]);
    const pan = await measureFrames(page, ["d", "a"]);
    const memory = await memoryOf(browser);
    return { launches, ready_s: ready, pan_fps: pan.fps, zoom_fps: zoom.fps, slowest_frame_ms: Math.max(pan.slowest, zoom.slowest), memory_mib: memory };
  } finally {
    await browser.close();
  }
}

/** Presses one key in each frame, and returns the frames per second and the longest frame in milliseconds. */
function measureFrames(page, keys) {
  return page.evaluate(
    ([keys, seconds]) =>
      new Promise((resolve) => {
        const canvas = document.getElementById("canvas");
        const times = [];
        const step = (now) => {
          times.push(now);
          if (now - times[0] > seconds * 1000) {
            const spans = times.slice(1).map((time, index) => time - times[index]);
            resolve({ fps: spans.length / ((times.at(-1) - times[0]) / 1000), slowest: Math.max(...spans) });
            return;
          }
          const key = keys[Math.floor(times.length / 8) % keys.length];
          canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          requestAnimationFrame(step);
        };
        requestAnimationFrame(step);
      }),
    [keys, SECONDS_PER_MEASUREMENT],
  );
}

/** Returns the memory (Pss) of the browser's largest renderer process, in MiB. */
async function memoryOf(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const rollups = processInfo.filter((process) => process.type === "renderer").map((process) => readFileSync(`/proc/${process.id}/smaps_rollup`, "utf8"));
  return Math.max(...rollups.map((rollup) => Number(rollup.match(/^Pss:\s+(\d+)/m)[1]))) / 1024;
}
