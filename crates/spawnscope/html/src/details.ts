// Shows the details of the selected row: what ran, how it ended, its phases and waits, its parent, and what removing its program would save.

import type { Data } from "./data";
import { button, byId, copyButton, el } from "./dom";
import { count, outcome, percent, time } from "./format";

export class Details {
  private readonly columns: Record<string, Float64Array>;

  constructor(
    private readonly data: Data,
    private readonly onSelect: (row: number) => void,
    private readonly onQuery: (query: string) => void,
  ) {
    const names = ["id", "pid", "cwd", "mechanism", "stack", "failed_execs"];
    this.columns = Object.fromEntries(names.map((name) => [name, data.numbers(name)]));
    for (const name of ["queued", "awaited"]) this.columns[name] = data.times(name);
    this.columns["parent_mib"] = data.numbers("known_parent_mib");
  }

  show(row: number): void {
    const { data } = this;
    const panel = byId("details");
    panel.hidden = row < 0;
    if (row < 0) return;
    const args = data.text(data.args[row]) || data.text(data.command[row]);
    const several = data.count[row];
    const heading = several > 1 ? `${count(several)} similar starts of ${data.text(data.command[row])}` : data.text(data.command[row]);
    byId("h-details").textContent = heading;
    byId("details-body").replaceChildren(
      el("div", { class: "fix" }, el("pre", { tabindex: "0", "aria-label": "Command line" }, copyButton(() => args), el("code", {}, args))),
      el("div", { class: "columns" }, this.facts(row), this.phases(row)),
      ...this.callers(row),
      ...this.removals(row),
      this.relatives(row),
    );
  }

  private facts(row: number): HTMLElement {
    const { data, columns } = this;
    const several = data.count[row] > 1;
    const ended = outcome(data.outcome[row]) || "success";
    const facts: [string, string][] = [
      ["launch", `${columns.id[row]}${several ? " and others" : ""}, pid ${columns.pid[row] || "-"}`],
      ["ended", several ? `${ended} (the first)` : ended],
      ["start", time(data.start[row])],
      ["total", time(data.total[row])],
      ["start-up", time(data.tax(row))],
      ["on the critical path", `${time(data.critical[row])}, ${percent(data.critical[row], data.header.wall_ns)} of the wall time`],
      ["waited for a CPU", time(columns.queued[row])],
      ["its parent waited for it", time(columns.awaited[row])],
      ["created by", data.text(columns.mechanism[row]) || "-"],
      ["memory of the parent", columns.parent_mib[row] ? `${count(columns.parent_mib[row] - 1)} MiB` : "-"],
      ["failed execs", count(columns.failed_execs[row])],
      ["working directory", data.text(columns.cwd[row]) || "-"],
    ];
    const list = el("dl");
    for (const [name, value] of facts) list.append(el("dt", {}, name), el("dd", {}, value));
    return list;
  }

  private phases(row: number): HTMLElement {
    const { data } = this;
    const body = data.header.phases.map((phase, index) => {
      const swatch = el("span", { class: `swatch phase-${phase.name}`, "aria-hidden": "true" });
      const span = data.phases[index][row];
      return el("tr", {}, el("th", { scope: "row", class: "name" }, swatch, phase.name), el("td", { class: "number" }, time(span)), el("td", {}, phase.causes));
    });
    const titles = el("tr", {}, el("th", { scope: "col" }, "phase"), el("th", { scope: "col", class: "number" }, "time"), el("th", { scope: "col" }, "long because of"));
    return el("table", { class: "figures" }, el("thead", {}, titles), el("tbody", {}, ...body));
  }

  private callers(row: number): HTMLElement[] {
    const { data } = this;
    const line = data.text(data.line[row]);
    const stack = data.text(this.columns.stack[row]);
    const elements: HTMLElement[] = [el("h3", {}, "Launched from"), el("p", {}, button(line || "-", () => this.onQuery(`line=${line}`), { class: "link" }))];
    if (stack.includes("\n")) {
      elements.push(el("details", {}, el("summary", {}, "call chain, innermost first"), el("pre", { tabindex: "0" }, stack)));
    }
    return elements;
  }

  /** Returns what it would save to remove all launches of the same program, or all launches from the same line. */
  private removals(row: number): HTMLElement[] {
    const { data } = this;
    const labels: Record<string, string> = { command: data.text(data.command[row]), line: data.text(data.line[row]) };
    const fitting = data.header.removals.filter((removal) => labels[removal.by] === removal.label);
    const items = fitting.map(({ by, label, launches, saving }) => {
      const [expected, least, most] = saving.map(time);
      const which = `${launches === 1 ? "the launch" : `all ${count(launches)} launches`} ${by === "line" ? "from" : "of"} ${label}`;
      return el("li", {}, `removing ${which} saves ${expected} (${least} to ${most}), ${percent(saving[0], data.header.unrecorded_ns)} of the wall time without recording overhead`);
    });
    if (!items.length && !labels.command) return [];
    const file = data.header.file === null ? "" : ` ${data.header.file}`;
    const command = `spawnscope whatif --remove ${quote(selector(labels.command))}${file}`;
    const snippet = el("div", { class: "fix" }, el("pre", { tabindex: "0" }, copyButton(() => command), el("code", {}, command)));
    return [el("h3", {}, "What if"), el("ul", {}, ...items), snippet];
  }

  private relatives(row: number): HTMLElement {
    const { data } = this;
    const paragraph = el("p");
    const parent = data.parent[row];
    if (parent >= 0) paragraph.append("parent: ", button(this.name(parent), () => this.onSelect(parent), { class: "link" }), " ");
    const children = data.children(row);
    if (children.length) {
      paragraph.append(`launched ${count(children.reduce((sum, child) => sum + data.count[child], 0))}: `);
      for (const child of children.slice(0, 12)) paragraph.append(button(this.name(child), () => this.onSelect(child), { class: "link" }), " ");
      if (children.length > 12) paragraph.append("… (all of them in the process tree)");
    }
    return paragraph;
  }

  private name(row: number): string {
    const several = this.data.count[row] > 1 ? `${count(this.data.count[row])} x ` : "";
    return several + this.data.text(this.data.command[row]);
  }
}

/** Returns a selector that matches only this name. */
function selector(name: string): string {
  return name.replace(/[*?[\]{}\\]/g, "\\$&").replaceAll(",", "?");
}

/** Quotes a word for a shell where necessary. */
function quote(word: string): string {
  return /^[\w=,./:+@%-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
