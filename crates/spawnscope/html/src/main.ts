// Unpacks the data, shows the parts of the page, and connects them through the state.

import "uplot/dist/uPlot.min.css";
import "./page.css";
import { enrichAdvice } from "./advice";
import { showCurve } from "./curve";
import { type Data, unpack } from "./data";
import { Details } from "./details";
import { byId, el } from "./dom";
import { Flame } from "./flame";
import { launches } from "./format";
import { type Matches, search } from "./search";
import { showBox } from "./selection";
import { State } from "./state";
import { Tables } from "./tables";
import { Timeline } from "./timeline";
import { Tree } from "./tree";
import { showWaits } from "./waits";

const SEARCH_DELAY_MS = 120;

function showLegend(data: Data): void {
  const items = data.header.phases.map((phase) => el("span", {}, el("span", { class: `swatch phase-${phase.name}` }), phase.name));
  byId("legend").replaceChildren(...items, el("span", {}, el("span", { class: "swatch critical" }), "critical path"),
    el("span", { class: "quiet" }, `curve: threads (the line is at ${data.header.cpus} CPUs) `), el("span", {}, el("span", { class: "swatch on-cpu" }), "on a CPU"), el("span", {}, el("span", { class: "swatch off-cpu" }), "waiting for one"));
}

function listenToSearch(data: Data, state: State, timeline: Timeline): void {
  const input = byId<HTMLInputElement>("search");
  const show = (matches: Matches) => {
    timeline.show(matches);
    byId("matches").textContent = matches.flags ? `${launches(matches.launches)} (n: next)` : "";
  };
  const apply = () => show(search(data, state.view.query));
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => state.set({ query: input.value }), SEARCH_DELAY_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    clearTimeout(timer);
    state.set({ query: input.value });
    timeline.next();
  });
  state.listen((view, changed) => {
    if (!changed.has("query")) return;
    if (input.value !== view.query) input.value = view.query;
    apply();
  });
  input.value = state.view.query;
  apply();
  enrichAdvice(data, (rows) => {
    const flags = new Uint8Array(data.rows);
    let sum = 0;
    for (const row of rows) {
      flags[row] = 1;
      sum += data.count[row];
    }
    state.set({ query: "" });
    show({ flags, launches: sum });
    byId("timeline").scrollIntoView({ block: "start" });
  });
}

async function main(): Promise<void> {
  const data = await unpack("data");
  const state = new State(data);
  const ids = data.numbers("id");
  const rowOf = new Map<number, number>();
  ids.forEach((id, row) => rowOf.set(id, row));
  byId("timeline").hidden = false;
  const select = (row: number) => state.set({ selected: ids[row] });
  const timeline = new Timeline(data, state, rowOf, select, (box) => showBox(data, box));
  showLegend(data);
  showCurve(data, state);
  const details = new Details(data, select, (query) => state.set({ query }));
  const showSelected = () => details.show(rowOf.get(state.view.selected) ?? -1);
  state.listen((view, changed) => {
    if (!changed.has("selected")) return;
    showSelected();
    const row = rowOf.get(view.selected);
    if (row !== undefined) timeline.reveal(row);
  });
  const onlyCritical = byId<HTMLInputElement>("only-critical");
  onlyCritical.checked = state.view.onlyCritical;
  onlyCritical.disabled = !data.header.has_path;
  onlyCritical.addEventListener("change", () => state.set({ onlyCritical: onlyCritical.checked }));
  listenToSearch(data, state, timeline);
  showSelected();
  new Tables(data, state);
  new Flame(data, state);
  showWaits(data);
  new Tree(data, select);
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

main().catch((error: unknown) => {
  byId("status").textContent = `This page cannot show its data (${error}). A current browser with DecompressionStream is needed.`;
  throw error;
});
