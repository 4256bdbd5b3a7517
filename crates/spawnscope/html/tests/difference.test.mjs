// Tests the page of `spawnscope diff -o` in a real Chromium.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import axe from "axe-core";
import { difference, finish, open, unrelated } from "./pages.mjs";

after(finish);

for (const view of [
  { width: 1400, colorScheme: "light" },
  { width: 360, colorScheme: "dark" },
]) {
  test(`${view.width} pixels, ${view.colorScheme}: opens without messages, fits, and axe finds nothing serious`, () =>
    open(difference, view, async (page) => {
      assert.match(await page.textContent("#verdict"), /dirname 10 -> 0 launches at relocate\.sh:5/);
      const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(widths[0] <= widths[1], `${widths}`);
      const found = await page.evaluate(`${axe.source}; axe.run(document)`);
      const serious = found.violations.filter((violation) => ["serious", "critical"].includes(violation.impact));
      assert.deepEqual(serious.map((violation) => violation.id), []);
    }));
}

test("a click on a title sorts by the numbers of changes, not by their texts, and the filter hides rows", () =>
  open(unrelated, {}, async (page) => {
    const table = page.getByRole("region", { name: "Launches: Added" }).locator("table");
    const values = () => table.locator("tbody tr").evaluateAll((rows) => rows.map((row) => Number(row.cells[2].dataset.value)));
    const unsorted = await values();
    assert.ok(new Set(unsorted).size > 1, `${unsorted}`);
    await table.getByRole("button", { name: "launches", exact: true }).click();
    assert.deepEqual(await values(), [...unsorted].sort((a, b) => b - a));
    await table.getByRole("button", { name: /^launches .$/ }).click();
    assert.deepEqual(await values(), [...unsorted].sort((a, b) => a - b));
    assert.equal(await table.locator("th").nth(2).getAttribute("aria-sort"), "ascending");
    await page.fill("#filter input", "dirname");
    const shown = await page.locator("table[data-sortable] tbody tr:visible").allTextContents();
    assert.ok(shown.length > 0 && shown.every((text) => text.includes("dirname")), `${shown}`);
    assert.match(await page.textContent("#filter [role=status]"), /^\d of \d+ rows$/);
  }));

test("a click on a box zooms, and a key shows the whole graph again", () =>
  open(difference, {}, async (page) => {
    const box = page.locator("svg.difference g", { hasText: /^dirname/ }).first();
    const width = () => box.locator("rect").evaluate((rect) => Number(rect.getAttribute("width")));
    const before = await width();
    const visible = () => page.locator("svg.difference g:visible").count();
    const boxes = await visible();
    await box.click();
    assert.equal(await width(), 1200);
    assert.ok((await visible()) < boxes);
    assert.match(await page.textContent("#flame-about"), /^dirname: 10 -> 0/);
    await box.focus();
    await page.keyboard.press("Escape");
    assert.ok(Math.abs((await width()) - before) < 0.01);
    assert.equal(await visible(), boxes);
    await page.keyboard.press("ArrowUp");
    assert.notEqual(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), await box.getAttribute("aria-label"));
  }));

test("a printed page keeps the titles of its tables", () =>
  open(difference, {}, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.ok(await page.getByRole("button", { name: "failed execs" }).first().isVisible());
    assert.ok(!(await page.getByRole("button", { name: "whole graph" }).isVisible()));
  }));
