// Shows the process tree as text, for keyboards and screen readers, and for selecting text. Branches are filled when they are opened.

import type { Data } from "./data";
import { button, byId, el } from "./dom";
import { count, outcome, time } from "./format";

const FIRST_ROWS = 50;
const MORE_ROWS = 500;
/** Maximum number of characters of a command line. The details have all of it. */
const MAX_NAME = 120;
/** Further children with the same program are folded. */
const ALIKE_ROWS = 3;

export class Tree {
  constructor(
    private readonly data: Data,
    private readonly onSelect: (row: number) => void,
  ) {
    const list = el("ul", { class: "tree" });
    this.fill(list, data.children(-1));
    byId("tree-body").replaceChildren(list);
    byId("tree").hidden = false;
    const open = list.querySelectorAll<HTMLDetailsElement>("details");
    if (open.length === 1) open[0].open = true;
  }

  /** Shows the first children of each program, and the others when they are asked for. */
  private fill(list: HTMLElement, rows: Int32Array): void {
    const counts = new Map<number, number>();
    const shown: number[] = [];
    const others: number[] = [];
    for (const row of rows) {
      const command = this.data.command[row];
      const alike = (counts.get(command) ?? 0) + 1;
      counts.set(command, alike);
      (alike <= ALIKE_ROWS && shown.length < FIRST_ROWS ? shown : others).push(row);
    }
    for (const row of shown) list.append(this.item(row));
    this.offer(list, others);
  }

  private offer(list: HTMLElement, rows: number[]): void {
    if (!rows.length) return;
    const more = el("li");
    more.append(
      button(`show more: ${this.summary(rows)}`, () => {
        more.remove();
        for (const row of rows.slice(0, MORE_ROWS)) list.append(this.item(row));
        this.offer(list, rows.slice(MORE_ROWS));
      }),
    );
    list.append(more);
  }

  /** Lists the programs of rows, the most frequent first: `37 x dirname, 37 x mv`. */
  private summary(rows: number[]): string {
    const counts = new Map<number, number>();
    for (const row of rows) counts.set(this.data.command[row], (counts.get(this.data.command[row]) ?? 0) + this.data.count[row]);
    const sorted = [...counts].sort((a, b) => b[1] - a[1]);
    const named = sorted.slice(0, 4).map(([command, times]) => `${count(times)} x ${this.data.text(command)}`);
    return named.join(", ") + (sorted.length > 4 ? ", \u2026" : "");
  }

  private item(row: number): HTMLLIElement {
    const children = this.data.children(row);
    if (!children.length) return el("li", { class: "leaf" }, this.button(row), this.line(row));
    const branch = el("details", {}, el("summary", {}, this.line(row), ` (${count(children.length)} below)`));
    branch.addEventListener("toggle", () => {
      if (!branch.open || branch.children.length > 1) return;
      const list = el("ul");
      this.fill(list, children);
      branch.append(list);
    });
    // The button is beside the summary, because a summary must not contain another control.
    return el("li", {}, this.button(row), branch);
  }

  private line(row: number): HTMLElement {
    const { data } = this;
    const several = data.count[row] > 1 ? `${count(data.count[row])} x ` : "";
    const name = data.text(data.args[row]) || data.text(data.command[row]);
    const shown = name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name;
    const phases = data.header.phases
      .map((phase, index): [string, number] => [phase.name, data.phases[index][row]])
      .filter(([, span]) => span > 0)
      .sort((a, b) => b[1] - a[1])
      .slice(0, 3)
      .map(([phase, span]) => `${phase} ${time(span)}`);
    const ended = outcome(data.outcome[row]);
    const figures = [time(data.total[row]), ended, phases.join(", ")].filter((part) => part).join("; ");
    return el("span", {}, el("code", {}, several + shown), ` ${figures}`);
  }

  private button(row: number): HTMLButtonElement {
    const name = this.data.text(this.data.args[row]) || this.data.text(this.data.command[row]);
    return button("details", () => this.onSelect(row), { class: "small", "aria-label": `details of ${name.slice(0, 80)}` });
  }
}
