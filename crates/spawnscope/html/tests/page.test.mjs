// Tests in a real Chromium what a user can do with the page, with a pointer and with keys.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ATTACKS, finish, fragment, hostile, open, unpack } from "./pages.mjs";

after(finish);

const LAUNCHES = 85;

test("opens without messages, errors or requests, and shows the report", () =>
  open(unpack, {}, async (page) => {
    assert.match(await page.textContent("#verdict"), / went into start-up \(starting and ending programs\)/);
    assert.match(await page.textContent("#totals"), /85 programs started/);
    for (const part of ["#timeline", "#advice", "#tables", "#flame", "#waits", "#tree"]) assert.ok(await page.isVisible(part), part);
    const drawn = await page.$eval("#canvas", (canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size;
    });
    assert.ok(drawn > 8, `${drawn} colours in the timeline`);
  }));

test("wheel, keys and buttons zoom and move, and 0 shows everything", () =>
  open(unpack, {}, async (page) => {
    const canvas = page.locator("#canvas");
    await canvas.scrollIntoViewIfNeeded();
    await canvas.hover({ position: { x: 400, y: 40 } });
    await page.mouse.wheel(0, -400);
    const wheel = await fragment(page);
    const width = Number(wheel.get("to")) - Number(wheel.get("from"));
    assert.ok(width > 0 && width < 400e6, `${width} ns after the wheel`);
    await canvas.focus();
    await page.keyboard.press("w");
    await page.keyboard.press("d");
    const keys = await fragment(page);
    assert.ok(Number(keys.get("to")) - Number(keys.get("from")) < width);
    await page.keyboard.press("a");
    assert.ok(Number((await fragment(page)).get("from")) < Number(keys.get("from")));
    await page.click("#zoom-out");
    await canvas.focus();
    await page.keyboard.press("0");
    assert.equal((await fragment(page)).get("from"), null);
  }));

test("a drag moves the view and does not select", () =>
  open(`${unpack}#from=20000000&to=60000000`, {}, async (page) => {
    await drag(page, 600, 300);
    const moved = await fragment(page);
    assert.ok(Number(moved.get("from")) > 20e6, moved.toString());
    assert.equal(moved.get("launch"), null);
  }));

test("a search finds launches, Enter selects them, and the address restores the view", () =>
  open(unpack, {}, async (page) => {
    await page.fill("#search", "dirname");
    await page.waitForFunction(() => document.getElementById("matches").textContent.startsWith("40 launches"));
    await page.press("#search", "Enter");
    assert.equal(await page.textContent("#h-details"), "dirname");
    assert.match(await page.textContent("#details-body"), /usr\/share\/doc\/section0\/file0/);
    const address = `${unpack}#${await fragment(page)}`;
    await open(address, {}, async (again) => {
      assert.equal(await again.inputValue("#search"), "dirname");
      assert.equal(await again.textContent("#h-details"), "dirname");
    });
  }));

test("details show phases, callers, predictions and relatives", () =>
  open(`${unpack}#q=command%3Dmv`, {}, async (page) => {
    await page.press("#search", "Enter");
    const details = await page.textContent("#details-body");
    for (const part of ["create", "teardown", "waited for a CPU", "unpack.sh:21", "removing all 40 launches of mv", "parent: bash"]) {
      assert.ok(details.includes(part), `${part} in ${details}`);
    }
    await page.click("#details-body button:has-text('bash')");
    assert.equal(await page.textContent("#h-details"), "bash");
  }));

test("advice comes before the phases, and details are beside the timeline", () =>
  open(`${unpack}#q=command%3Dmv`, {}, async (page) => {
    await page.press("#search", "Enter");
    const parts = ["#advice", "#timeline", ".bar", "#lanes", "#details"];
    const [advice, timeline, bar, lanes, details] = await Promise.all(parts.map((part) => page.locator(part).boundingBox()));
    assert.ok(advice.y < timeline.y && timeline.y < bar.y);
    assert.ok(lanes.x + lanes.width <= details.x && details.y < lanes.y + lanes.height);
    assert.equal(await page.locator("#advice details[open]").count(), 1, "only the first is open");
  }));

test("Shift and drag sum the launches in a box", () =>
  open(unpack, {}, async (page) => {
    await page.keyboard.down("Shift");
    await drag(page, 2, 1300, 28, 400);
    await page.keyboard.up("Shift");
    const sums = await page.textContent("#box");
    assert.match(sums, new RegExp(`^${LAUNCHES} launches`), sums);
    assert.match(sums, /40 x mv/);
    const [startUp] = (await page.textContent("#totals")).match(/start-up [\d.]+ \w+/);
    assert.ok(sums.includes(`${startUp},`), `${startUp} in ${sums}`);
  }));

test("tables sort, filter, and find their launches", () =>
  open(unpack, {}, async (page) => {
    const first = () => page.textContent("#tables tbody tr:first-child th");
    assert.equal(await first(), "mv", "the largest saving comes first");
    await page.click("#tables thead button:has-text('saved')");
    const savings = await page.$$eval("#tables tbody tr", (rows) => rows.map((row) => row.children[2].textContent));
    assert.ok(savings[0] !== "-" && savings.at(-1) === "-", `unknown values come last: ${savings}`);
    await page.click("#tables thead button:has-text('mean')");
    const means = await page.$$eval("#tables tbody tr", (rows) => rows.map((row) => row.children[4].textContent));
    const inUs = means.map((mean) => Number.parseFloat(mean) * { us: 1, ms: 1e3, s: 1e6 }[mean.split(" ")[1]]);
    assert.deepEqual(inUs, inUs.toSorted((a, b) => b - a), means.join(", "));
    assert.equal(means.length, 6);
    await page.click("#tables thead button:has-text('program')");
    assert.equal(await first(), "bash");
    await page.fill("#tables input[type=search]", "dirn");
    assert.equal(await first(), "dirname");
    await page.click("#tables tbody button:has-text('dirname')");
    await page.waitForFunction(() => document.getElementById("matches").textContent.startsWith("40 launches"));
    await page.fill("#tables input[type=search]", "");
    await page.click("[role=tab]:has-text('line')");
    assert.match(await first(), /unpack\.sh:\d+/);
    await page.click("[role=tab]:has-text('arguments')");
    await page.click("#tables tbody tr:first-child button");
    await page.waitForFunction(() => /^\d+ launch/.test(document.getElementById("matches").textContent));
    assert.equal((await fragment(page)).get("table"), "args");
  }));

test("fixes can be copied, and their launches can be shown", () =>
  open(unpack, {}, async (page) => {
    await page.click("#advice li:first-child button:has-text('show in the timeline')");
    assert.match(await page.textContent("#matches"), /^4\d launches/);
    assert.ok((await page.locator("#advice pre button").count()) >= 2);
    assert.ok((await page.locator("#advice .interval line").count()) >= 2);
  }));

test("a box of the flame graph zooms and finds its program", () =>
  open(unpack, {}, async (page) => {
    await page.click("#flame button:has-text('processes: wall time')");
    const canvas = page.locator("#flame canvas");
    await canvas.focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"]) await page.keyboard.press(key);
    await page.waitForTimeout(50);
    const about = await page.textContent("#flame [role=status]");
    assert.match(about, /: .* %/);
    await canvas.click({ position: { x: 700, y: 27 } });
    assert.match(await page.inputValue("#search"), /^command=/);
    assert.equal((await fragment(page)).get("flame"), "flame_tree_wall");
  }));

test("the process tree lists every launch as text", () =>
  open(unpack, {}, async (page) => {
    while (await page.locator("#tree button:has-text('show more')").count()) await page.click("#tree button:has-text('show more')");
    assert.equal(await page.locator("#tree code").count(), LAUNCHES);
    await page.locator("#tree .leaf button").nth(3).click();
    assert.ok(await page.isVisible("#details"));
  }));

test("with the keyboard alone, a user can reach the timeline, select in it and leave it", () =>
  open(unpack, {}, async (page) => {
    await page.focus("#reset");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.id), "canvas");
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Shift+ArrowRight");
    assert.ok(await page.isVisible("#details"));
    await page.keyboard.press("Tab");
    assert.notEqual(await page.evaluate(() => document.activeElement.id), "canvas");
  }));

test("hostile strings of a recording are only text", () =>
  open(hostile, {}, async (page) => {
    const shown = await page.textContent("body");
    for (const attack of ATTACKS.slice(0, 3)) assert.ok(shown.includes(attack.replace(/'/g, "").slice(0, 8)), attack);
    await page.fill("#search", "owned");
    await page.waitForFunction(() => /launches/.test(document.getElementById("matches").textContent));
    await page.press("#search", "Enter");
    for (const tab of ["line", "arguments", "parent"]) await page.click(`[role=tab]:has-text('${tab}')`);
    await page.locator("#canvas").hover({ position: { x: 700, y: 30 } });
    assert.equal(await page.evaluate(() => window.owned), undefined);
    assert.equal(await page.locator("img, svg[onload], iframe").count(), 0);
    assert.equal(await page.locator("script").count(), 2);
  }));

test("the Content-Security-Policy forbids requests and other code", () =>
  open(unpack, {}, async (page) => {
    const policy = await page.getAttribute("meta[http-equiv=Content-Security-Policy]", "content");
    assert.match(policy, /^default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; img-src data:; base-uri 'none'; form-action 'none'$/);
    const foreign = await page.content();
    assert.ok(!/(?:src|href)=["']?(?:https?:)?\/\//.test(foreign.replace(/<script[\s\S]*?<\/script>/g, "")));
  }));

async function drag(page, from, to, top = 60, bottom = top) {
  const canvas = page.locator("#canvas");
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const low = Math.min(bottom, box.height - 2);
  await page.mouse.move(box.x + from, box.y + Math.min(top, box.height - 4));
  await page.mouse.down();
  await page.mouse.move(box.x + (from + to) / 2, box.y + low, { steps: 3 });
  await page.mouse.move(box.x + to, box.y + low, { steps: 3 });
  await page.mouse.up();
}
