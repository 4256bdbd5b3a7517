// Shows sums over the launches in a box that the user has drawn in the timeline.

import type { Data } from "./data";
import { button, byId, el } from "./dom";
import { count, launches, time } from "./format";
import type { Box } from "./timeline";

const MAX_COMMANDS = 8;

export function showBox(data: Data, box: Box | null): void {
  const panel = byId("box");
  panel.hidden = !box;
  if (!box) return;
  const rows: number[] = [];
  for (let row = 0; row < data.rows; row++) {
    const lane = data.lane[row];
    if (lane < box.firstLane || lane > box.lastLane) continue;
    if (data.start[row] < box.to && data.end[row] > box.from) rows.push(row);
  }
  const sum = (value: (row: number) => number) => rows.reduce((sum, row) => sum + (value(row) || 0), 0);
  const commands = new Map<number, number>();
  for (const row of rows) commands.set(data.command[row], (commands.get(data.command[row]) ?? 0) + data.count[row]);
  const byCount = [...commands].sort((a, b) => b[1] - a[1]);
  const named = byCount.slice(0, MAX_COMMANDS).map(([command, number]) => `${count(number)} x ${data.text(command)}`);
  const others = byCount.length - MAX_COMMANDS;
  if (others > 0) named.push(others === 1 ? "1 other program" : `${others} other programs`);
  const phases = data.header.phases.map((phase, index) => `${phase.name} ${time(sum((row) => data.phases[index][row]))}`);
  panel.replaceChildren(
    el("p", {}, el("strong", {}, `${launches(sum((row) => data.count[row]))} in ${time(box.to - box.from)}`), ` (${time(box.from)} to ${time(box.to)})`),
    el("p", {}, `total ${time(sum((row) => data.total[row]))}, start-up ${time(sum((row) => data.tax(row)))}, on the critical path ${time(sum((row) => data.critical[row]))}`),
    el("p", {}, phases.join(", ")),
    el("p", {}, named.join(", ")),
    button("close", () => (panel.hidden = true)),
  );
}
