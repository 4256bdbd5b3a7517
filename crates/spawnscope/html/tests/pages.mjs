// Creates the pages that the tests open, from recordings in SQL, and starts the browser.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const binary = resolve(process.env.SPAWNSCOPE ?? join(root, "target/debug/spawnscope"));
const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const directory = mkdtempSync(join(tmpdir(), "spawnscope-html."));

/** Strings that would run if one of them became markup or code. */
export const ATTACKS = [
  "</script><script>window.owned=1</script>",
  "<img src=x onerror=window.owned=2>",
  "'\"><svg onload=window.owned=3>",
  "]]><!--",
  "javascript:window.owned=4",
];

const FROM_SQL = `
import sqlite3, sys
schema, rows, out, hostile, directory = sys.argv[1:6]
db = sqlite3.connect(out)
for file in (schema, rows):
    db.executescript(open(file).read().replace("/srv/package", directory))
if hostile:
    attacks = hostile.split("\\n")
    for number, (text, data) in enumerate(db.execute("SELECT * FROM text").fetchall()):
        attack = attacks[number % len(attacks)].encode()
        db.execute("UPDATE text SET bytes = ? WHERE id = ?", (bytes(data).replace(b"parcel", attack).replace(b"/mv", b"/" + attack).replace(b"unpack.sh", attack), text))
    db.execute("UPDATE recording SET command = CAST(? AS BLOB)", ("\\0".join(attacks) + "\\0",))
db.commit()
`;

// The script that unpack.sql is of, as old as one that was not edited since: pages show its lines.
const script = join(directory, "examples/unpack.sh");
cpSync(join(root, "examples/unpack.sh"), script);
utimesSync(script, 0, 0);

/** Creates a recording from its rows in SQL and returns its name in the directory. */
function recording(name, rows, attacks = "") {
  const database = `${name}.db`;
  const schema = join(root, "crates/spawnscope-recording/src/schema.sql");
  const rowsFile = join(root, `crates/spawnscope/tests/recordings/${rows}.sql`);
  execFileSync("python3", ["-c", FROM_SQL, schema, rowsFile, join(directory, database), attacks, directory]);
  return database;
}

/** Writes the page of a verb about recordings and returns its address. */
function page(name, verb, ...recordings) {
  const out = join(directory, `${name}.html`);
  execFileSync(binary, [verb, "-o", out, ...recordings], { cwd: directory, stdio: ["ignore", "ignore", "inherit"] });
  return pathToFileURL(out).href;
}

/** Writes the page of the difference of two recordings and returns its address. */
function differencePage(...sides) {
  const name = sides.join("_");
  return page(name, "diff", ...sides.map((side) => recording(`${name}.${side}`, side)));
}

export const unpack = page("unpack", "html", recording("spawnscope", "unpack"));
export const difference = differencePage("relocate_before", "relocate_after");
/** The difference between two programs that have little in common, so its tables are long. */
export const unrelated = differencePage("relocate_before", "unpack");
export const hostile = page("hostile", "html", recording("hostile", "unpack", ATTACKS.join("\n")));

// Debian's Chromium, which the tests run as root: hence `--no-sandbox`. Most other options keep it from using the network.
export const browser = await chromium.launch({
  executablePath: browserPath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

export async function finish() {
  await browser.close();
  rmSync(directory, { recursive: true });
}

/** Opens an address, waits until the page is ready, and calls a test. Fails on messages of the console, errors, and requests. */
export async function open(address, options, test) {
  const { width = 1400, colorScheme = "light" } = options;
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" });
  const opened = await context.newPage();
  const problems = [];
  // Tests read pixels from the canvas, about which Chromium prints this message.
  const isExpected = (text) => text.startsWith("Canvas2D: Multiple readback");
  opened.on("console", (message) => isExpected(message.text()) || problems.push(`console: ${message.text()}`));
  opened.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  opened.on("dialog", (dialog) => problems.push(`dialog: ${dialog.message()}`));
  opened.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(address.split("#")[0]) && !url.startsWith("data:") && !url.startsWith("blob:")) problems.push(`request: ${url}`);
  });
  try {
    await opened.goto(address);
    await opened.waitForSelector("html[data-ready]", { timeout: 20_000 });
    await test(opened);
    if (problems.length) throw new Error(problems.join("\n"));
  } finally {
    await context.close();
  }
}

/** Returns the fragment of the address, once it has been written. */
export async function fragment(opened) {
  await opened.waitForTimeout(350);
  return new URLSearchParams(new URL(opened.url()).hash.slice(1));
}
