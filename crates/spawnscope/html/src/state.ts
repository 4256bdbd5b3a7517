// The view: which part of the data the page shows. The fragment of the address has it too, so that links can lead to a view.

import type { Data } from "./data";

export interface View {
  /** The shown time, in nanoseconds. */
  from: number;
  to: number;
  /** The first shown lane. */
  lane: number;
  /** The search: a part of a command line; a whole name after `command=`, `line=` or `parent=`; or a row of the table of arguments after `args=`. */
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

  get fullTime(): { from: number; to: number } {
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

  /** Shows this span of time, clipped to the recording. */
  zoom(from: number, to: number): void {
    const fullTime = this.fullTime;
    const width = Math.min(Math.max(to - from, 1000), fullTime.to - fullTime.from);
    const start = Math.min(Math.max(from, fullTime.from), fullTime.to - width);
    this.set({ from: start, to: start + width });
  }

  private read(): View {
    const parameters = new URLSearchParams(location.hash.slice(1));
    const number = (name: string, fallback: number) => {
      const value = Number(parameters.get(name) ?? NaN);
      return Number.isFinite(value) && value >= 0 ? value : fallback;
    };
    const fullTime = this.fullTime;
    const from = Math.min(number("from", fullTime.from), fullTime.to);
    const to = Math.min(number("to", fullTime.to), fullTime.to);
    const table = parameters.get("table") ?? "command";
    return {
      from: to - from >= 1000 ? from : fullTime.from,
      to: to - from >= 1000 ? to : fullTime.to,
      lane: number("lane", 0),
      query: parameters.get("q") ?? "",
      selected: number("launch", 0),
      onlyCritical: parameters.has("critical"),
      table: Object.hasOwn(this.data.header.tables, table) ? table : "command",
      sort: parameters.get("sort") ?? "",
      flame: parameters.get("flame") ?? "",
    };
  }

  private write(): void {
    const { view, fullTime } = this;
    const parameters = new URLSearchParams();
    if (view.from > fullTime.from || view.to < fullTime.to) {
      parameters.set("from", String(Math.round(view.from)));
      parameters.set("to", String(Math.round(view.to)));
    }
    if (view.lane > 0) parameters.set("lane", String(Math.round(view.lane)));
    if (view.query) parameters.set("q", view.query);
    if (view.selected) parameters.set("launch", String(view.selected));
    if (view.onlyCritical) parameters.set("critical", "");
    if (view.table !== "command") parameters.set("table", view.table);
    if (view.sort) parameters.set("sort", view.sort);
    if (view.flame) parameters.set("flame", view.flame);
    const fragment = parameters.toString();
    history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
  }
}
