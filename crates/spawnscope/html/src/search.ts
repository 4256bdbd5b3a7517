// Finds the rows that match a search.

import type { Data } from "./data";

export interface Matches {
  /** For each row, 1 if it matches. `null` if there is no search. */
  flags: Uint8Array | null;
  /** The number of launches in these rows. */
  launches: number;
}

export function search(data: Data, query: string): Matches {
  if (!query.trim()) return { flags: null, launches: 0 };
  const matches = matcher(data, query.trim());
  const flags = new Uint8Array(data.rows);
  let launches = 0;
  for (let row = 0; row < data.rows; row++) {
    if (!matches(row)) continue;
    flags[row] = 1;
    launches += data.count[row];
  }
  return { flags, launches };
}

function matcher(data: Data, query: string): (row: number) => boolean {
  const [key, name] = split(query);
  const columns: Record<string, Float64Array> = { command: data.command, line: data.line, parent: data.launcher };
  if (key === "args") {
    const wanted = Number(name) + 1;
    return (row) => data.args_row[row] === wanted;
  }
  if (key) {
    const matches = matchingTexts(data, (text) => text === name);
    return (row) => matches[columns[key][row]] === 1;
  }
  const lower = query.toLowerCase();
  const matches = matchingTexts(data, (text) => text.toLowerCase().includes(lower));
  return (row) => (matches[data.args[row]] | matches[data.command[row]] | matches[data.line[row]]) === 1;
}

function split(query: string): [string, string] {
  const at = query.indexOf("=");
  const key = query.slice(0, at);
  return ["command", "line", "parent", "args"].includes(key) ? [key, query.slice(at + 1)] : ["", query];
}

/** Returns for each string whether it matches, as 1 or 0. Many rows share a string, which is tried only once. */
function matchingTexts(data: Data, matches: (text: string) => boolean): Uint8Array {
  const flags = new Uint8Array(data.texts);
  for (let number = 1; number < flags.length; number++) flags[number] = matches(data.text(number)) ? 1 : 0;
  return flags;
}
