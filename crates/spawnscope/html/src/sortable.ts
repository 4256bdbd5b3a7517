// Tables of the page itself, sortable by a click on a title, with one filter for all of them. Cells sort by `data-value` if they have it.

import { button, byId, el } from "./dom";
import { count } from "./format";

/** Replaces the titles by buttons. Texts ascend first, figures descend. */
export function sortable(table: HTMLTableElement): void {
  const titles = [...(table.tHead?.rows[0].cells ?? [])];
  titles.forEach((title, column) => {
    const name = title.textContent ?? "";
    const first = title.classList.contains("number") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const sorts = button(name, () => {
      const direction = title.ariaSort === first ? other : first;
      for (const each of titles) mark(each, each === title ? direction : "none");
      sort(table.tBodies[0], column, direction === "ascending" ? 1 : -1);
    });
    sorts.dataset.name = name;
    title.replaceChildren(sorts);
    mark(title, "none");
  });
}

function mark(title: HTMLTableCellElement, direction: string): void {
  title.ariaSort = direction;
  const sorts = title.querySelector("button");
  if (sorts) sorts.textContent = `${sorts.dataset.name}${{ ascending: " ▲", descending: " ▼" }[direction] ?? ""}`;
}

function sort(body: HTMLTableSectionElement, column: number, sign: number): void {
  const rows = [...body.rows].map((row) => ({ row, value: valueOf(row.cells[column]) }));
  rows.sort((a, b) => compare(a.value, b.value, sign));
  body.append(...rows.map(({ row }) => row));
}

/** Returns the figure or the text of a cell; null if it is unknown. */
function valueOf(cell: HTMLTableCellElement): number | string | null {
  const { value } = cell.dataset;
  if (value === undefined) return cell.textContent ?? "";
  return value === "" ? null : Number(value);
}

/** Unknown values come last in both directions. */
function compare(a: number | string | null, b: number | string | null, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a < b ? -sign : a > b ? sign : 0;
}

/** Adds an input that hides the rows without its text. */
export function filterable(tables: HTMLTableElement[]): void {
  const tools = byId("filter");
  const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
  if (!rows.length) return;
  const shown = el("span", { role: "status", class: "quiet" });
  const input = el("input", { type: "search", placeholder: "filter the rows", autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    for (const row of rows) row.hidden = !(row.textContent ?? "").toLowerCase().includes(wanted);
    shown.textContent = wanted ? `${count(rows.filter((row) => !row.hidden).length)} of ${count(rows.length)} rows` : "";
  });
  tools.append(el("label", { class: "search" }, "Filter ", input), shown);
  tools.hidden = false;
}
