// The rows of each lane, and the row at a place in the timeline.

import type { Data } from "./data";

export class Lanes {
  /** Rows by lane, in order of start. */
  readonly rows: Int32Array[];

  constructor(private readonly data: Data) {
    const counts = new Int32Array(data.lanes);
    for (const lane of data.lane) counts[lane]++;
    this.rows = Array.from(counts, (count) => new Int32Array(count));
    counts.fill(0);
    data.lane.forEach((lane, row) => (this.rows[lane][counts[lane]++] = row));
  }

  /** Returns the index in the lane of the first row that ends after an instant. Rows of a lane do not overlap. */
  firstAfter(lane: number, at: number): number {
    const rows = this.rows[lane];
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.data.end[rows[middle]] <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Returns the row nearest to an instant within a distance, or -1. */
  at(lane: number, at: number, distance: number): number {
    const rows = this.rows[lane];
    if (!rows) return -1;
    const index = this.firstAfter(lane, at);
    let [nearest, best] = [-1, distance];
    for (const candidate of [index - 1, index]) {
      const row = rows[candidate];
      if (row === undefined) continue;
      const away = Math.max(this.data.start[row] - at, at - this.data.end[row], 0);
      if (away <= best) [nearest, best] = [row, away];
    }
    return nearest;
  }
}
