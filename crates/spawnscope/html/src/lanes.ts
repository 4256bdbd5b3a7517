// Finds rows by lane and time.

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

  /** Returns the index in the lane of the first row that ends after a time. Rows of a lane do not overlap. */
  firstEndingAfter(lane: number, time: number): number {
    const rows = this.rows[lane];
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.data.end[rows[middle]] <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Returns the row that is nearest to a time and at most a distance away, or -1. */
  nearestRow(lane: number, time: number, distance: number): number {
    const rows = this.rows[lane];
    if (!rows) return -1;
    const index = this.firstEndingAfter(lane, time);
    let [nearest, shortest] = [-1, distance];
    for (const candidate of [index - 1, index]) {
      const row = rows[candidate];
      if (row === undefined) continue;
      const away = Math.max(this.data.start[row] - time, time - this.data.end[row], 0);
      if (away <= shortest) [nearest, shortest] = [row, away];
    }
    return nearest;
  }
}
