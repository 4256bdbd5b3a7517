// Tests what the page looks like: themes, widths, print, accessibility, and screenshots, which are compared with a tolerance.
// GOLDEN=overwrite updates the expected screenshots.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, test } from "node:test";
import axe from "axe-core";
import pixelmatch from "pixelmatch";
import { PNG } from "pngjs";
import { browser, finish, open, unpack } from "./pages.mjs";

after(finish);

/** Maximum share of pixels that differ, since fonts differ between machines. */
const TOLERANCE = 0.05;
const VIEWS = [
  { name: "wide-light", width: 1400, colorScheme: "light" },
  { name: "wide-dark", width: 1400, colorScheme: "dark" },
  { name: "phone-light", width: 360, colorScheme: "light" },
  { name: "phone-dark", width: 360, colorScheme: "dark" },
];

for (const view of VIEWS) {
  test(`${view.name}: the timeline looks like the expected screenshot`, () =>
    open(`${unpack}#from=20000000&to=60000000&q=dirname`, view, async (page) => {
      compare(`timeline-${view.name}`, await page.locator("#lanes").screenshot());
      // The height of what is above it decides where in a pixel the bar begins.
      await page.evaluate(() => { for (const above of document.querySelectorAll("header, #advice, #timeline")) above.hidden = true; });
      compare(`bar-${view.name}`, await page.locator(".bar").screenshot());
    }));

  test(`${view.name}: nothing is wider than the page`, () =>
    open(unpack, view, async (page) => {
      const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(widths[0] <= widths[1], widths.join(" > "));
    }));

  test(`${view.name}: axe finds no serious violation`, () =>
    open(`${unpack}#launch=5`, view, async (page) => {
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
      const serious = violations.filter((found) => ["serious", "critical"].includes(found.impact));
      const messages = serious.map((found) => `${found.id}: ${found.nodes.map((node) => `${node.html} ${node.failureSummary}`).join("; ")}`);
      assert.deepEqual(messages, []);
    }));
}

test("the picture in the documents shows this page", () =>
  open(unpack, { width: 1100 }, async (page) => {
    // Of the fixes, the picture has the one with lines of the script.
    await page.locator("#advice details[open] > summary").click();
    await page.locator("#advice details", { hasText: "+ directory=" }).locator("summary").first().click();
    const bottom = await page.locator("#lanes").evaluate((lanes) => lanes.getBoundingClientRect().bottom + scrollY);
    const part = { x: 0, y: 0, width: 1100, height: Math.ceil(bottom) };
    compare("../../../../../docs/images/html", await page.screenshot({ clip: part, fullPage: true }));
    // The share of pixels that differ does not show which words differ.
    compareText("picture", (await page.innerText("body")).split("Timeline")[0]);
  }));

test("the themes differ, and the page follows a change", () =>
  open(unpack, {}, async (page) => {
    const corner = () => page.$eval("#canvas", (canvas) => [...canvas.getContext("2d").getImageData(3, canvas.height - 2, 1, 1).data]);
    const light = await corner();
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForTimeout(100);
    const dark = await corner();
    assert.ok(light[0] > 200 && dark[0] < 80, `${light} ${dark}`);
  }));

test("the printed page has the tables and no buttons", () =>
  open(unpack, {}, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.ok(await page.isVisible("#tables table"));
    assert.ok(!(await page.isVisible("#reset")));
    assert.ok((await page.pdf({ format: "A4" })).length > 20_000);
  }));

test("text can be selected", () =>
  open(unpack, {}, async (page) => {
    await page.locator("#verdict").selectText();
    assert.match(await page.evaluate(() => String(getSelection())), /starting and ending/);
  }));

test("without scripts, the verdict, the phases and the advice can be read", async () => {
  const page = await browser.newPage({ javaScriptEnabled: false });
  await page.goto(unpack);
  const text = await page.innerText("body");
  for (const part of ["starting and ending", "teardown", "bash launches", "Scripts are off"]) assert.ok(text.includes(part), part);
  await page.close();
});

function compareText(name, text) {
  const file = new URL(`golden/${name}.txt`, import.meta.url);
  if (process.env.GOLDEN === "overwrite") writeFileSync(file, text);
  assert.equal(text, readFileSync(file, "utf8"));
}

function compare(name, screenshot) {
  const file = new URL(`golden/${name}.png`, import.meta.url);
  if (process.env.GOLDEN === "overwrite") {
    writeFileSync(file, screenshot);
    return;
  }
  const [actual, expected] = [PNG.sync.read(screenshot), PNG.sync.read(readFileSync(file))];
  assert.deepEqual([actual.width, actual.height], [expected.width, expected.height], name);
  const differing = pixelmatch(actual.data, expected.data, null, actual.width, actual.height, { threshold: 0.2 });
  const share = differing / (actual.width * actual.height);
  if (share > TOLERANCE) {
    writeFileSync(new URL(`golden/${name}.seen.png`, import.meta.url), screenshot);
  }
  assert.ok(share <= TOLERANCE, `${name}: ${(100 * share).toFixed(1)} % of the pixels differ: see ${name}.seen.png`);
}
