// The page of `spawnscope diff -o` in a real Chromium.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import axe from "axe-core";
import { difference, finish, open } from "./pages.mjs";

after(finish);

for (const view of [
  { width: 1400, colorScheme: "light" },
  { width: 360, colorScheme: "dark" },
]) {
  test(`${view.width} pixels, ${view.colorScheme}: opens without messages, fits, and axe finds nothing serious`, () =>
    open(difference, { ...view, ready: "#flame rect.less-4" }, async (page) => {
      assert.match(await page.textContent("#verdict"), /dirname 10 -> 0 at relocate\.sh:5/);
      const widths = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(widths[0] <= widths[1], `${widths}`);
      const found = await page.evaluate(`${axe.source}; axe.run(document)`);
      const serious = found.violations.filter((violation) => ["serious", "critical"].includes(violation.impact));
      assert.deepEqual(serious.map((violation) => violation.id), []);
    }));
}
