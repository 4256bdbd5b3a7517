// The view: the shown part of the page. It is also the fragment of the address, so that a view can be linked.

import type { Data } from "./data";

export interface View {
  /** The shown time, in nanoseconds. */
  from: number;
  to: number;
  /** The first shown lane. */
  lane: number;
  /** The search: a part of a command line, or `command=`, `line=`, `parent=` with a whole name, or `args=` with a row of that table. */
  query: string;
  /** The id of the selected launch, or 0. */
  selected: number;
  onlyCritical: boolean;
  table: string;
  /** A column of the table, with `-` before it for descending order. */
  sort: string;
  flame: string;
}

type Listener = (view: View, changed: Set<keyof View>) => void;

export class State {
  view: View;
  private readonly listeners: Listener[] = [];
  private timer = 0;

  constructor(private readonly data: Data) {
    this.view = this.read();
    addEventListener("hashchange", () => this.set(this.read(), false));
  }

  get full(): { from: number; to: number } {
    return { from: 0, to: this.data.header.end_ns };
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  set(part: Partial<View>, writes = true): void {
    const changed = new Set<keyof View>();
    for (const key of Object.keys(part) as (keyof View)[]) {
      if (part[key] !== this.view[key]) changed.add(key);
    }
    if (!changed.size) return;
    this.view = { ...this.view, ...part };
    for (const listener of this.listeners) listener(this.view, changed);
    if (writes) {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.write(), 200);
    }
  }

  /** Shows this part of the time, kept within the recording. */
  zoom(from: number, to: number): void {
    const full = this.full;
    const width = Math.min(Math.max(to - from, 1000), full.to - full.from);
    const start = Math.min(Math.max(from, full.from), full.to - width);
    this.set({ from: start, to: start + width });
  }

  private read(): View {
    const given = new URLSearchParams(location.hash.slice(1));
    const number = (name: string, otherwise: number) => {
      const value = Number(given.get(name) ?? NaN);
      return Number.isFinite(value) && value >= 0 ? value : otherwise;
    };
    const full = this.full;
    const from = Math.min(number("from", full.from), full.to);
    const to = Math.min(number("to", full.to), full.to);
    const table = given.get("table") ?? "command";
    return {
      from: to - from >= 1000 ? from : full.from,
      to: to - from >= 1000 ? to : full.to,
      lane: number("lane", 0),
      query: given.get("q") ?? "",
      selected: number("launch", 0),
      onlyCritical: given.has("critical"),
      table: Object.hasOwn(this.data.header.tables, table) ? table : "command",
      sort: given.get("sort") ?? "",
      flame: given.get("flame") ?? "",
    };
  }

  private write(): void {
    const { view, full } = this;
    const written = new URLSearchParams();
    if (view.from > full.from || view.to < full.to) {
      written.set("from", String(Math.round(view.from)));
      written.set("to", String(Math.round(view.to)));
    }
    if (view.lane > 0) written.set("lane", String(Math.round(view.lane)));
    if (view.query) written.set("q", view.query);
    if (view.selected) written.set("launch", String(view.selected));
    if (view.onlyCritical) written.set("critical", "");
    if (view.table !== "command") written.set("table", view.table);
    if (view.sort) written.set("sort", view.sort);
    if (view.flame) written.set("flame", view.flame);
    const fragment = written.toString();
    history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
  }
}
