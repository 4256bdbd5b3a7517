// Draws the visible part of the timeline. Rows narrower than a few pixels are drawn together, so the cost of a frame depends on the width
// of the screen, not on the number of launches.

import type { Data } from "./data";
import { property } from "./dom";
import { count, time } from "./format";
import { Labels } from "./labels";
import type { Lanes } from "./lanes";

// All sizes are in CSS pixels.
export const LANE_HEIGHT = 20;
export const AXIS_HEIGHT = 22;
const BAR_HEIGHT = 16;
/** Width below which rows are drawn together. */
const MIN_ROW_WIDTH = 4;
/** Maximum distance between rows that are drawn together. */
const MAX_GAP = 3;
/** Width above which a box has a label. */
const LABEL_WIDTH = 34;
/** Width above which the label also has the time, if it fits. */
const TIMED_WIDTH = 90;

export interface Scene {
  from: number;
  to: number;
  lane: number;
  width: number;
  height: number;
  flags: Uint8Array | null;
  selected: number;
  onlyCritical: boolean;
}

/** Several rows that are drawn as one box. Start and end are in CSS pixels. */
interface Cluster {
  start: number;
  end: number;
  rows: number;
  launches: number;
  matches: number;
  critical: boolean;
  phases: Float64Array;
  /** The number of launches by command, for the first few commands. */
  commands: Map<number, number>;
  /** The script line of all rows, or -1 if they have different ones. */
  line: number;
}

interface Colors {
  phases: string[];
  text: string;
  onPhase: string[];
  quiet: string;
  grid: string;
  box: string;
  critical: string;
  match: string;
  background: string;
}

export class Painter {
  private colors: Colors;
  private readonly labels: Labels;
  private readonly widths = new Map<string, number>();
  private readonly runIndex: number;
  private readonly path: { start: Float64Array; end: Float64Array; row: Float64Array };

  constructor(
    private readonly data: Data,
    private readonly lanes: Lanes,
  ) {
    this.labels = new Labels(data);
    this.colors = this.readColors();
    this.runIndex = data.header.phases.findIndex((phase) => phase.name === "run");
    const unit = data.header.unit_ns;
    const start = data.numbers("path_start").map((at) => at * unit);
    const end = data.numbers("path_span").map((span, index) => start[index] + span * unit);
    this.path = { start, end, row: data.numbers("path_row") };
  }

  readColors(): Colors {
    const names = this.data.header.phases.map((phase) => phase.name);
    return (this.colors = {
      phases: names.map((name) => property(`--${name}`)),
      onPhase: names.map((name) => property(`--on-${name}`)),
      text: property("--text"),
      quiet: property("--quiet"),
      grid: property("--grid"),
      box: property("--box"),
      critical: property("--critical"),
      match: property("--match"),
      background: property("--panel"),
    });
  }

  paint(context: CanvasRenderingContext2D, scene: Scene): void {
    context.fillStyle = this.colors.background;
    context.fillRect(0, 0, scene.width, scene.height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.paintGrid(context, scene);
    context.save();
    context.beginPath();
    context.rect(0, AXIS_HEIGHT, scene.width, scene.height - AXIS_HEIGHT);
    context.clip();
    const last = Math.min(this.lanes.rows.length, scene.lane + Math.ceil((scene.height - AXIS_HEIGHT) / LANE_HEIGHT) + 1);
    for (let lane = Math.floor(scene.lane); lane < last; lane++) this.paintLane(context, scene, lane);
    this.paintPath(context, scene);
    this.paintSelected(context, scene);
    context.restore();
  }

  private x(scene: Scene, at: number): number {
    return ((at - scene.from) / (scene.to - scene.from)) * scene.width;
  }

  private y(scene: Scene, lane: number): number {
    return AXIS_HEIGHT + (lane - scene.lane) * LANE_HEIGHT;
  }

  private paintGrid(context: CanvasRenderingContext2D, scene: Scene): void {
    const step = roundStep((scene.to - scene.from) / Math.max(2, scene.width / 120));
    context.strokeStyle = this.colors.grid;
    context.fillStyle = this.colors.quiet;
    context.lineWidth = 1;
    context.beginPath();
    for (let at = Math.ceil(scene.from / step) * step; at <= scene.to; at += step) {
      const x = Math.round(this.x(scene, at)) + 0.5;
      context.moveTo(x, AXIS_HEIGHT - 4);
      context.lineTo(x, scene.height);
      const label = tickLabel(at, step);
      if (x + 3 + context.measureText(label).width <= scene.width) context.fillText(label, x + 3, AXIS_HEIGHT / 2);
    }
    context.stroke();
  }

  private paintLane(context: CanvasRenderingContext2D, scene: Scene, lane: number): void {
    const { data } = this;
    const rows = this.lanes.rows[lane];
    const y = this.y(scene, lane);
    const scale = scene.width / (scene.to - scene.from);
    let cluster: Cluster | null = null;
    for (let index = this.lanes.firstEndingAfter(lane, scene.from); index < rows.length; index++) {
      const row = rows[index];
      const start = (data.start[row] - scene.from) * scale;
      if (start > scene.width) break;
      const end = (data.end[row] - scene.from) * scale;
      if (end - start < MIN_ROW_WIDTH) {
        if (cluster && start - cluster.end > MAX_GAP) {
          this.paintCluster(context, scene, y, cluster);
          cluster = null;
        }
        cluster = this.addToCluster(cluster, scene, row, start, end);
        continue;
      }
      if (cluster) this.paintCluster(context, scene, y, cluster);
      cluster = null;
      this.paintRow(context, scene, y, row, start, end);
    }
    if (cluster) this.paintCluster(context, scene, y, cluster);
  }

  private addToCluster(into: Cluster | null, scene: Scene, row: number, start: number, end: number): Cluster {
    const { data } = this;
    const cluster = into ?? {
      start, end, rows: 0, launches: 0, matches: 0, critical: false, phases: new Float64Array(8), commands: new Map(), line: data.line[row],
    };
    cluster.end = Math.max(cluster.end, end);
    cluster.rows++;
    cluster.launches += data.count[row];
    if (scene.flags?.[row]) cluster.matches++;
    if (data.critical[row] > 0) cluster.critical = true;
    for (let phase = 0; phase < 8; phase++) {
      const span = data.phases[phase][row];
      if (span > 0) cluster.phases[phase] += span;
    }
    const command = data.command[row];
    if (cluster.commands.size < 4 || cluster.commands.has(command)) {
      cluster.commands.set(command, (cluster.commands.get(command) ?? 0) + data.count[row]);
    }
    if (cluster.line !== data.line[row]) cluster.line = -1;
    return cluster;
  }

  private paintCluster(context: CanvasRenderingContext2D, scene: Scene, y: number, cluster: Cluster): void {
    const left = Math.max(cluster.start, 0);
    const width = Math.max(Math.min(cluster.end, scene.width) - left, 1);
    context.globalAlpha = this.alpha(scene, scene.flags ? cluster.matches > 0 : true, cluster.critical);
    this.paintShares(context, left, y, width, cluster.phases);
    if (cluster.matches > 0) this.paintMatch(context, left, y, width);
    if (width > LABEL_WIDTH) {
      const names = [...cluster.commands].sort((a, b) => b[1] - a[1]).map(([command]) => this.data.text(command));
      const line = cluster.line > 0 ? `  ${this.data.text(cluster.line)}` : "";
      const label = names.length === 1 ? `${count(cluster.launches)} x ${names[0]}${line}` : `${count(cluster.launches)} launches: ${names.join(", ")}`;
      this.paintLabel(context, label, left, y, width, true);
    }
    context.globalAlpha = 1;
  }

  /** Fills a box with the shares of the phases, from the bottom. The phases of several launches alternate too fast to be drawn one after another. */
  private paintShares(context: CanvasRenderingContext2D, x: number, y: number, width: number, phases: Float64Array): void {
    let sum = 0;
    for (const span of phases) sum += span;
    let bottom = y + BAR_HEIGHT;
    if (!sum) {
      context.fillStyle = this.colors.box;
      context.fillRect(x, y, width, BAR_HEIGHT);
      return;
    }
    for (let index = 0; index < 8; index++) {
      const height = (BAR_HEIGHT * phases[index]) / sum;
      if (!height) continue;
      context.fillStyle = this.colors.phases[index];
      context.fillRect(x, bottom - height, width, height);
      bottom -= height;
    }
  }

  private paintRow(context: CanvasRenderingContext2D, scene: Scene, y: number, row: number, start: number, end: number): void {
    const { data } = this;
    const left = Math.max(start, -1);
    const width = Math.min(end, scene.width + 1) - left;
    const matches = scene.flags ? scene.flags[row] === 1 : true;
    context.globalAlpha = this.alpha(scene, matches, data.critical[row] > 0);
    if (data.count[row] > 1) {
      this.paintShares(context, left, y, width, Float64Array.from(data.phases, (phase) => phase[row] || 0));
    } else {
      context.fillStyle = this.colors.box;
      context.fillRect(left, y, width, BAR_HEIGHT);
      const scale = scene.width / (scene.to - scene.from);
      let at = start;
      for (let index = 0; index < 8; index++) {
        const span = data.phases[index][row];
        if (!(span > 0)) continue;
        const [from, to] = [Math.max(at, left), Math.min(at + span * scale, end, scene.width + 1)];
        at += span * scale;
        if (to <= from) continue;
        context.fillStyle = this.colors.phases[index];
        context.fillRect(from, y, Math.max(to - from, 0.5), BAR_HEIGHT);
      }
    }
    if (scene.flags?.[row]) this.paintMatch(context, left, y, width);
    if (width > LABEL_WIDTH) {
      const label = data.count[row] > 1 ? `${count(data.count[row])} x ${data.text(data.command[row])}` : this.labels.of(row);
      const timed = `${label}  ${time(data.end[row] - data.start[row])}`;
      const hasTime = width > TIMED_WIDTH && this.shorten(context, timed, width - 6) === timed;
      this.paintLabel(context, hasTime ? timed : label, left, y, width, data.count[row] > 1);
    }
    context.globalAlpha = 1;
  }

  private alpha(scene: Scene, matches: boolean, critical: boolean): number {
    if (!matches) return 0.18;
    return scene.onlyCritical && !critical ? 0.12 : 1;
  }

  private paintMatch(context: CanvasRenderingContext2D, x: number, y: number, width: number): void {
    context.fillStyle = this.colors.match;
    context.fillRect(x, y + BAR_HEIGHT - 2, Math.max(width, 2), 3);
  }

  /** Writes a label in the box, with a background if the box has several colours. */
  private paintLabel(context: CanvasRenderingContext2D, label: string, x: number, y: number, width: number, hasBackground: boolean): void {
    const left = Math.max(x, 0) + 3;
    const shown = this.shorten(context, label, x + width - left - 3);
    if (!shown) return;
    if (hasBackground) {
      context.fillStyle = this.colors.background;
      context.fillRect(left - 2, y + 2, context.measureText(shown).width + 4, BAR_HEIGHT - 4);
      context.fillStyle = this.colors.text;
    } else {
      context.fillStyle = this.colors.onPhase[this.runIndex];
    }
    context.fillText(shown, left, y + BAR_HEIGHT / 2 + 0.5, Math.max(x + width - left - 2, 1));
  }

  private shorten(context: CanvasRenderingContext2D, label: string, width: number): string {
    const short = label.length > 120 ? label.slice(0, 120) : label;
    let full = this.widths.get(short);
    if (full === undefined) {
      if (this.widths.size > 5000) this.widths.clear();
      full = context.measureText(short).width;
      this.widths.set(short, full);
    }
    if (full <= width) return short;
    const kept = Math.floor((short.length * width) / full) - 1;
    return kept > 2 ? `${short.slice(0, kept)}…` : "";
  }

  /** Draws the critical path as a line above the rows that it is on. */
  private paintPath(context: CanvasRenderingContext2D, scene: Scene): void {
    const { start, end, row } = this.path;
    context.fillStyle = this.colors.critical;
    let [low, high] = [0, start.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (end[middle] <= scene.from) low = middle + 1;
      else high = middle;
    }
    for (let index = low; index < start.length && start[index] < scene.to; index++) {
      if (!row[index]) continue;
      const y = this.y(scene, this.data.lane[row[index] - 1]);
      if (y < 0 || y > scene.height) continue;
      const x = this.x(scene, start[index]);
      context.fillRect(x, y - 3, Math.max(this.x(scene, end[index]) - x, 0.75), 3);
    }
  }

  private paintSelected(context: CanvasRenderingContext2D, scene: Scene): void {
    const row = scene.selected;
    if (row < 0) return;
    const x = this.x(scene, this.data.start[row]);
    const width = Math.max(this.x(scene, this.data.end[row]) - x, 3);
    context.strokeStyle = this.colors.text;
    context.lineWidth = 2;
    context.strokeRect(x - 1, this.y(scene, this.data.lane[row]) - 1, width + 2, BAR_HEIGHT + 2);
  }
}

function roundStep(minimum: number): number {
  const size = 10 ** Math.floor(Math.log10(Math.max(minimum, 1)));
  return [1, 2, 5, 10].map((factor) => factor * size).find((step) => step >= minimum) ?? 10 * size;
}

/** Returns the label of a tick, in the unit that suits the distance of ticks. */
function tickLabel(at: number, step: number): string {
  const [size, name] = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] : step >= 1e3 ? [1e3, "us"] : [1, "ns"];
  return at === 0 ? "0" : at < 1e15 ? `${count(Math.round(at / size))} ${name}` : time(at);
}
