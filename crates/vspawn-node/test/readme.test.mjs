// The first program of the README prints what is shown below it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { outcome, vspawn } from "./support.mjs";

test("the program of the README", async () => {
  const text = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const [program, printed] = text.match(/^(?: {4}.*\n|\n(?= {4}))+/gm).map((block) => block.replace(/^ {4}/gm, "").trim());
  const index = JSON.stringify(new URL("../lib/index.js", import.meta.url).pathname);
  const { stdout, stderr } = await outcome(vspawn.spawn(process.execPath, ["-e", program.replace('"vspawn"', index)]));
  assert.deepEqual([stdout.trim(), stderr], [printed, ""]);
});
