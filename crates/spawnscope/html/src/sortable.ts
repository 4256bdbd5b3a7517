// Makes tables of the page sortable by a click on a title, and adds one filter for all of them. Cells that have a `data-value` are sorted by it.

import { button, byId, el } from "./dom";
import { count } from "./format";

/** Replaces the titles with buttons. The first click sorts texts in ascending order, figures in descending order. */
export function makeSortable(table: HTMLTableElement): void {
  const titles = [...(table.tHead?.rows[0].cells ?? [])];
  titles.forEach((title, column) => {
    const name = title.textContent ?? "";
    const first = title.classList.contains("number") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const sortButton = button(name, () => {
      const direction = title.ariaSort === first ? other : first;
      for (const each of titles) showDirection(each, each === title ? direction : "none");
      sort(table.tBodies[0], column, direction === "ascending" ? 1 : -1);
    });
    sortButton.dataset.name = name;
    title.replaceChildren(sortButton);
    showDirection(title, "none");
  });
}

function showDirection(title: HTMLTableCellElement, direction: string): void {
  title.ariaSort = direction;
  const sortButton = title.querySelector("button");
  if (sortButton) sortButton.textContent = `${sortButton.dataset.name}${{ ascending: " ▲", descending: " ▼" }[direction] ?? ""}`;
}

function sort(body: HTMLTableSectionElement, column: number, sign: number): void {
  const rows = [...body.rows].map((row) => ({ row, value: valueOf(row.cells[column]) }));
  rows.sort((a, b) => compare(a.value, b.value, sign));
  body.append(...rows.map(({ row }) => row));
}

/** Returns the figure or the text of a cell, or null if it is unknown. */
function valueOf(cell: HTMLTableCellElement): number | string | null {
  const { value } = cell.dataset;
  if (value === undefined) return cell.textContent ?? "";
  return value === "" ? null : Number(value);
}

/** Compares two values. Unknown values come last in both directions. */
export function compare(a: number | string | null, b: number | string | null, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return a < b ? -sign : a > b ? sign : 0;
}

/** Adds an input field that hides the rows without its text. */
export function makeFilterable(tables: HTMLTableElement[]): void {
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
