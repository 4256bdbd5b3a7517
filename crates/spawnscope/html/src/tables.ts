// Shows the tables: launches by program, line, arguments and parent; sortable, filterable, and linked to the timeline.

import type { Data, Group, Header } from "./data";
import { button, byId, el } from "./dom";
import { count, percent, time } from "./format";
import { compare } from "./sortable";
import type { State } from "./state";

const FIRST_ROWS = 25;
const MORE_ROWS = 200;
const TITLES: Record<string, string> = { command: "program", line: "line", args: "arguments", parent: "parent" };

interface Column {
  key: string;
  title: string;
  /** What a click on the title sorts by. The first click sorts texts in ascending order, figures in descending order. */
  value: (group: Group) => number | string | null;
  text: (group: Group) => string;
  isText?: boolean;
}

const figure = (key: keyof Group, title: string): Column => ({
  key,
  title,
  value: (group) => group[key] as number | null,
  text: (group) => time(group[key] as number | null),
});

/** Returns the column of what would be saved without the launches of a row, if that was predicted for any row. */
function savings(by: string, { removals, unrecorded_ns }: Header): Column[] {
  const saved = new Map(removals.filter((removal) => removal.by === by).map(({ label, saving }) => [label, saving[0]]));
  const text = (saving?: number) => (saving === undefined ? "-" : `${time(saving)}, ${percent(saving, unrecorded_ns)}`);
  return saved.size ? [{ key: "saved", title: "saved without it", value: ({ label }) => saved.get(label) ?? null, text: ({ label }) => text(saved.get(label)) }] : [];
}

function columnsOf(by: string, header: Header): Column[] {
  const { wall_ns: wall, has_path: hasPath } = header;
  const number = (key: "count" | "failed", title: string): Column => ({
    key,
    title,
    value: (group) => group[key],
    text: (group) => count(group[key]),
  });
  const text = (key: "launched" | "callers", title: string): Column => ({
    key,
    title,
    value: (group) => group[key],
    text: (group) => group[key],
    isText: true,
  });
  const share: Column = {
    key: "share",
    title: "of the wall time",
    value: (group) => group.critical,
    text: (group) => (group.critical === null ? "-" : percent(group.critical, wall)),
  };
  return [
    number("count", "started"),
    ...savings(by, header),
    figure("total", "total"),
    figure("mean", "mean"),
    figure("tax", "start-up"),
    ...(hasPath ? [figure("critical", "on the critical path"), share] : []),
    ...(by === "line" ? [figure("inclusive", "with descendants"), text("launched", "launched")] : []),
    number("failed", "failed execs"),
    ...(by === "command" || by === "args" ? [text("callers", "from")] : []),
  ];
}

export class Tables {
  private filter = "";
  private shown = FIRST_ROWS;
  private readonly tabs = new Map<string, HTMLButtonElement>();
  private readonly panel = el("div", { class: "scroll", tabindex: "0", role: "tabpanel", "aria-label": "Launches" });
  private readonly more = el("p");
  private readonly unknown = el("p", { class: "quiet" }, "saved without it: predicted for the programs and lines that run longest, - for others and for the command itself.");

  constructor(
    private readonly data: Data,
    private readonly state: State,
  ) {
    const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Group launches by" });
    for (const by of Object.keys(data.header.tables)) {
      const tab = button(TITLES[by] ?? by, () => state.set({ table: by, sort: "" }), { role: "tab" });
      this.tabs.set(by, tab);
      tabs.append(tab);
    }
    tabs.addEventListener("keydown", (event) => this.moveTab(event));
    const filter = el("input", { type: "search", placeholder: "filter the rows", autocomplete: "off", spellcheck: "false" });
    filter.addEventListener("input", () => {
      this.filter = filter.value.toLowerCase();
      this.shown = FIRST_ROWS;
      this.draw();
    });
    const label = el("label", { class: "search" }, "Filter ", filter);
    byId("tables-body").replaceChildren(el("div", { class: "tools" }, tabs, label), this.panel, this.more, this.unknown);
    byId("tables").hidden = false;
    state.listen((_, changed) => {
      if (changed.has("table") || changed.has("sort")) this.draw();
    });
    this.draw();
  }

  private moveTab(event: KeyboardEvent): void {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    const names = [...this.tabs.keys()];
    const next = names[(names.indexOf(this.state.view.table) + by + names.length) % names.length];
    this.state.set({ table: next, sort: "" });
    this.tabs.get(next)?.focus();
    event.preventDefault();
  }

  private draw(): void {
    const { table: by } = this.state.view;
    for (const [name, tab] of this.tabs) {
      tab.setAttribute("aria-selected", String(name === by));
      tab.tabIndex = name === by ? 0 : -1;
    }
    const table = this.data.header.tables[by];
    if (!table) return;
    const columns = columnsOf(by, this.data.header);
    const sort = this.state.view.sort || (columns.some(({ key }) => key === "saved") ? "-saved" : "");
    const rows = this.sorted(table.rows, columns, sort);
    const body = rows.slice(0, this.shown).map(([position, group]) => this.row(by, position, group, columns));
    const hasUnknown = columns.some(({ key, value }) => key === "saved" && rows.some(([, group]) => value(group) === null));
    this.unknown.hidden = !hasUnknown;
    this.panel.replaceChildren(
      el("table", { class: "figures" }, el("thead", {}, this.head(by, columns, sort)), el("tbody", {}, ...body)),
    );
    this.drawMore(rows.length, table.omitted);
  }

  private drawMore(rows: number, omitted: number): void {
    this.more.replaceChildren(`${count(Math.min(rows, this.shown))} of ${count(rows)} rows `);
    if (rows > this.shown) {
      this.more.append(
        button("show more", () => {
          this.shown += MORE_ROWS;
          this.draw();
        }),
      );
    }
    if (omitted) this.more.append(` Cheaper rows that are not on this page: ${count(omitted)}; see \`spawnscope report --by\`.`);
  }

  private sorted(rows: Group[], columns: Column[], sort: string): [number, Group][] {
    const filtered = rows
      .map((group, position): [number, Group] => [position, group])
      .filter(([, group]) => `${group.label} ${group.launched} ${group.callers}`.toLowerCase().includes(this.filter));
    const isDescending = sort.startsWith("-");
    const key = isDescending ? sort.slice(1) : sort;
    const value = key === "label" ? (group: Group) => group.label : columns.find((column) => column.key === key)?.value;
    if (!value) return filtered;
    return filtered.sort(([, a], [, b]) => compare(value(a), value(b), isDescending ? -1 : 1));
  }

  private head(by: string, columns: Column[], sort: string): HTMLTableRowElement {
    const cell = (key: string, title: string, isText: boolean) => {
      const direction = sort === key ? "ascending" : sort === `-${key}` ? "descending" : "none";
      const first = isText ? key : `-${key}`;
      const other = isText ? `-${key}` : key;
      const mark = direction === "ascending" ? " ▲" : direction === "descending" ? " ▼" : "";
      const sortButton = button(title + mark, () => this.state.set({ sort: sort === first ? other : first }));
      return el("th", { scope: "col", "aria-sort": direction, ...(isText ? {} : { class: "number" }) }, sortButton);
    };
    const titles = columns.map((column) => cell(column.key, column.title, column.isText ?? false));
    return el("tr", {}, cell("label", TITLES[by] ?? by, true), ...titles);
  }

  private row(by: string, position: number, group: Group, columns: Column[]): HTMLTableRowElement {
    const query = `${by}=${by === "args" ? position : group.label}`;
    const label = button(group.label || "-", () => this.find(query), { class: "link", title: "find in the timeline" });
    const cells = columns.map((column) => el("td", column.isText ? { class: "text" } : { class: "number" }, column.text(group)));
    return el("tr", {}, el("th", { scope: "row", class: "label" }, label), ...cells);
  }

  private find(query: string): void {
    this.state.set({ query });
    byId("timeline").scrollIntoView({ block: "start" });
  }
}
