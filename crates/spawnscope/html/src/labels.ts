// What a box is called: its program, and the argument that tells it apart from other launches of this program.

import type { Data } from "./data";

/** The arguments of this many rows are compared. More would take noticeable time. */
const MAX_ROWS = 20_000;
/** Words of a command line that is quoted for a shell. */
const WORD = /(?:'[^']*'|"(?:[^"\\]|\\.)*"|[^\s'"])+/g;

export class Labels {
  /** By command: in how many rows each argument occurs. */
  private rows: Map<number, Map<string, number>> | null = null;
  private readonly known = new Map<number, string>();

  constructor(private readonly data: Data) {}

  of(row: number): string {
    let label = this.known.get(row);
    if (label === undefined) {
      label = `${this.data.text(this.data.command[row])} ${this.distinct(row)}`.trim();
      this.known.set(row, label);
    }
    return label;
  }

  /** Returns the argument that the fewest launches of the program have; if all have the same, the last one. */
  private distinct(row: number): string {
    const shared = this.shared().get(this.data.command[row]);
    const words = this.argumentsOf(row);
    const counts = words.map((word) => shared?.get(word) ?? 0);
    const fewest = Math.min(...counts);
    return fewest < Math.max(...counts) ? words[counts.indexOf(fewest)] : (words.at(fewest > 1 ? -1 : 0) ?? "");
  }

  private shared(): Map<number, Map<string, number>> {
    if (this.rows) return this.rows;
    this.rows = new Map();
    for (let row = 0; row < Math.min(this.data.rows, MAX_ROWS); row++) {
      const command = this.data.command[row];
      let counts = this.rows.get(command);
      if (!counts) this.rows.set(command, (counts = new Map()));
      for (const word of new Set(this.argumentsOf(row))) counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    return this.rows;
  }

  /** Returns the arguments of the last program of the chain, without options, directories, and the name of a script that it runs. */
  private argumentsOf(row: number): string[] {
    const last = this.data.text(this.data.args[row]).split(" \u2192 ").at(-1) ?? "";
    const words = (last.match(WORD) ?? []).slice(1).map((word) => word.replace(/^(['"])(.*)\1$/, "$2"));
    const program = this.data.text(this.data.command[row]);
    return words.filter((word) => word && !word.startsWith("-")).map(baseName).filter((word) => word !== program);
  }
}

/** Returns the last part of a path; other text is unchanged. */
function baseName(word: string): string {
  return /^[^\s]*\/[^\s/]+\/?$/.test(word) ? (word.replace(/\/$/, "").split("/").at(-1) ?? word) : word;
}
