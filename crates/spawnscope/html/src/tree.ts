// Shows the process tree as text, for keyboards and screen readers, and for selecting text. Branches are filled when they are opened.

import type { Data } from "./data";
import { button, byId, el } from "./dom";
import { count, outcome, time } from "./format";

const FIRST_ROWS = 50;
const MORE_ROWS = 500;

export class Tree {
  constructor(
    private readonly data: Data,
    private readonly onSelect: (row: number) => void,
  ) {
    const list = el("ul", { class: "tree" });
    this.fill(list, data.children(-1), 0, FIRST_ROWS);
    byId("tree-body").replaceChildren(list);
    byId("tree").hidden = false;
    const open = list.querySelectorAll<HTMLDetailsElement>("details");
    if (open.length === 1) open[0].open = true;
  }

  private fill(list: HTMLElement, rows: Int32Array, from: number, limit: number): void {
    for (const row of rows.subarray(from, from + limit)) list.append(this.item(row));
    const next = from + limit;
    if (next >= rows.length) return;
    const more = el("li");
    more.append(
      button(`show more (${count(rows.length - next)})`, () => {
        more.remove();
        this.fill(list, rows, next, MORE_ROWS);
      }),
    );
    list.append(more);
  }

  private item(row: number): HTMLLIElement {
    const children = this.data.children(row);
    if (!children.length) return el("li", { class: "leaf" }, this.button(row), this.line(row));
    const branch = el("details", {}, el("summary", {}, this.line(row), ` (${count(children.length)} below)`));
    branch.addEventListener("toggle", () => {
      if (!branch.open || branch.children.length > 1) return;
      const list = el("ul");
      this.fill(list, children, 0, FIRST_ROWS);
      branch.append(list);
    });
    // The button is beside the summary, because a summary must not contain another control.
    return el("li", {}, this.button(row), branch);
  }

  private line(row: number): HTMLElement {
    const { data } = this;
    const several = data.count[row] > 1 ? `${count(data.count[row])} x ` : "";
    const name = data.text(data.args[row]) || data.text(data.command[row]);
    const phases = data.header.phases
      .map((phase, index): [string, number] => [phase.name, data.phases[index][row]])
      .filter(([, span]) => span > 0)
      .sort((a, b) => b[1] - a[1])
      .slice(0, 3)
      .map(([phase, span]) => `${phase} ${time(span)}`);
    const ended = outcome(data.outcome[row]);
    const figures = [time(data.total[row]), ended, phases.join(", ")].filter((part) => part).join("; ");
    return el("span", {}, el("code", {}, several + name), ` ${figures}`);
  }

  private button(row: number): HTMLButtonElement {
    const name = this.data.text(this.data.args[row]) || this.data.text(this.data.command[row]);
    return button("details", () => this.onSelect(row), { class: "small", "aria-label": `details of ${name.slice(0, 80)}` });
  }
}
