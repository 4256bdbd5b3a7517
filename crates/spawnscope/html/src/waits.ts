// Shows the list of what programs waited for.

import type { Data } from "./data";
import { button, byId, el } from "./dom";
import { count, time } from "./format";

const FIRST_ROWS = 8;

export function showWaits(data: Data): void {
  const { waits, waits_omitted: omitted } = data.header;
  if (!waits.length) return;
  byId("waits").hidden = false;
  const body = byId("waits-body");
  const draw = (shown: number) => {
    const rows = waits.slice(0, shown).map((wait) =>
      el("tr", {}, el("td", { class: "number" }, time(wait.total)), el("td", { class: "number" }, count(wait.count)), el("td", {}, wait.sentence)),
    );
    const titles = el("tr", {}, el("th", { scope: "col", class: "number" }, "time"), el("th", { scope: "col", class: "number" }, "waits"), el("th", { scope: "col" }, "who, and for what"));
    const table = el("table", { class: "figures" }, el("thead", {}, titles), el("tbody", {}, ...rows));
    body.replaceChildren(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Waits" }, table), el("p", { class: "quiet" }, "Waits overlap: they do not add up to the wall time."));
    if (waits.length > shown) body.append(button(`show more (${count(waits.length - shown)})`, () => draw(waits.length)));
    else if (omitted) body.append(el("p", {}, `Shorter waits that are not on this page: ${count(omitted)}; see \`spawnscope report --json\`.`));
  };
  draw(FIRST_ROWS);
}
