// The timeline: changes the view when the user turns the wheel, drags or presses keys, and shows a tooltip for the row under the pointer.

import type { Data } from "./data";
import { byId, el, fitCanvas, oncePerFrame } from "./dom";
import { count, time } from "./format";
import { Lanes } from "./lanes";
import { AXIS_HEIGHT, Painter, LANE_HEIGHT } from "./painter";
import type { Matches } from "./search";
import type { State } from "./state";

/** Maximum height of the timeline, in CSS pixels. */
const MAX_HEIGHT = 520;
/** The share of its width by which a key moves the view. */
const KEY_PAN = 0.12;
/** Factor by which a key zooms. */
const KEY_ZOOM = 1.35;

/** A box that the user has drawn. */
export interface Box {
  from: number;
  to: number;
  firstLane: number;
  lastLane: number;
}

export class Timeline {
  private readonly canvas = byId<HTMLCanvasElement>("canvas");
  private readonly tip = byId("tip");
  private readonly lanes: Lanes;
  private readonly painter: Painter;
  private readonly repaint = oncePerFrame(() => this.paint());
  private width = 0;
  private matches: Matches = { flags: null, launches: 0 };
  /** The box that the user is drawing or has drawn last. */
  private rubberBand: Box | null = null;

  constructor(
    private readonly data: Data,
    private readonly state: State,
    private readonly rowOf: Map<number, number>,
    private readonly onSelect: (row: number) => void,
    private readonly onBox: (box: Box | null) => void,
  ) {
    this.lanes = new Lanes(data);
    this.painter = new Painter(data, this.lanes);
    this.listen();
    new ResizeObserver(() => this.repaint()).observe(byId("lanes"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.painter.readColors();
      this.repaint();
    });
    state.listen(() => this.repaint());
    this.paint();
  }

  show(matches: Matches): void {
    this.matches = matches;
    this.repaint();
  }

  private get height(): number {
    return Math.min(AXIS_HEIGHT + this.data.lanes * LANE_HEIGHT + 4, MAX_HEIGHT);
  }

  private get maxLane(): number {
    return Math.max(0, this.data.lanes - (this.height - AXIS_HEIGHT) / LANE_HEIGHT);
  }

  private paint(): void {
    const { view } = this.state;
    this.width = byId("lanes").clientWidth;
    const context = fitCanvas(this.canvas, this.width, this.height);
    if (!context || !this.width) return;
    const lane = Math.min(view.lane, this.maxLane);
    const scene = {
      from: view.from, to: view.to, lane, width: this.width, height: this.height, flags: this.matches.flags,
      selected: this.rowOf.get(view.selected) ?? -1, onlyCritical: view.onlyCritical,
    };
    this.painter.paint(context, scene);
    if (this.rubberBand) this.paintRubberBand(context, this.rubberBand, lane);
  }

  private paintRubberBand(context: CanvasRenderingContext2D, box: Box, lane: number): void {
    const [left, right] = [this.xOf(box.from), this.xOf(box.to)];
    const [top, bottom] = [AXIS_HEIGHT + (box.firstLane - lane) * LANE_HEIGHT, AXIS_HEIGHT + (box.lastLane + 1 - lane) * LANE_HEIGHT];
    context.fillStyle = "rgba(120, 140, 255, 0.25)";
    context.fillRect(left, top, right - left, bottom - top);
  }

  private xOf(at: number): number {
    const { view } = this.state;
    return ((at - view.from) / (view.to - view.from)) * this.width;
  }

  private timeAt(x: number): number {
    const { view } = this.state;
    return view.from + (x / this.width) * (view.to - view.from);
  }

  private laneAt(y: number): number {
    return Math.floor((y - AXIS_HEIGHT) / LANE_HEIGHT + Math.min(this.state.view.lane, this.maxLane));
  }

  private rowAt(event: MouseEvent): number {
    if (event.offsetY < AXIS_HEIGHT) return -1;
    return this.lanes.nearestRow(this.laneAt(event.offsetY), this.timeAt(event.offsetX), this.timeAt(4) - this.timeAt(0));
  }

  zoomBy(factor: number, x = this.width / 2): void {
    const { view } = this.state;
    const at = this.timeAt(x);
    this.state.zoom(at - (at - view.from) * factor, at + (view.to - at) * factor);
  }

  pan(share: number): void {
    const { view } = this.state;
    const by = share * (view.to - view.from);
    this.state.zoom(view.from + by, view.to + by);
  }

  private scroll(lanes: number): void {
    this.state.set({ lane: Math.min(Math.max(this.state.view.lane + lanes, 0), this.maxLane) });
  }

  reset(): void {
    this.state.set({ ...this.state.fullTime, lane: 0 });
  }

  /** Moves the view so that a row is visible. */
  reveal(row: number): void {
    const { view } = this.state;
    const [start, end] = [this.data.start[row], this.data.end[row]];
    if (end < view.from || start > view.to || this.xOf(end) - this.xOf(start) < 3) {
      const around = Math.max(end - start, 1000) * 4;
      this.state.zoom(start - around, end + around);
    }
    const lane = this.data.lane[row];
    const shown = (this.height - AXIS_HEIGHT) / LANE_HEIGHT;
    if (lane < view.lane || lane >= view.lane + shown - 1) {
      this.state.set({ lane: Math.min(Math.max(lane - shown / 2, 0), this.maxLane) });
    }
  }

  private listen(): void {
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => {
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.pan((event.deltaX || event.deltaY) / this.width);
      } else if (event.altKey) {
        this.scroll(Math.sign(event.deltaY) * 2);
      } else {
        this.zoomBy(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), event.offsetX);
      }
      event.preventDefault();
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.drag(event));
    canvas.addEventListener("pointermove", (event) => this.hover(event));
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener("dblclick", (event) => this.zoomBy(0.3, event.offsetX));
    canvas.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && this.handleKey(event.key, event.shiftKey)) event.preventDefault();
    });
    byId("zoom-in").addEventListener("click", () => this.zoomBy(1 / KEY_ZOOM));
    byId("zoom-out").addEventListener("click", () => this.zoomBy(KEY_ZOOM));
    byId("reset").addEventListener("click", () => this.reset());
  }

  private drag(begin: PointerEvent): void {
    if (begin.button !== 0) return;
    const { canvas } = this;
    const { view } = this.state;
    const lane = Math.min(view.lane, this.maxLane);
    const isBox = begin.shiftKey;
    let moved = false;
    const move = (event: PointerEvent) => {
      const [x, y] = [event.offsetX - begin.offsetX, event.offsetY - begin.offsetY];
      if (!moved && Math.abs(x) + Math.abs(y) < 4) return;
      moved = true;
      this.tip.hidden = true;
      if (isBox) {
        this.rubberBand = this.boxOf(begin, event);
        this.repaint();
        return;
      }
      const by = -(x / this.width) * (view.to - view.from);
      this.state.zoom(view.from + by, view.to + by);
      this.state.set({ lane: Math.min(Math.max(lane - y / LANE_HEIGHT, 0), this.maxLane) });
    };
    const end = (event: PointerEvent) => {
      canvas.removeEventListener("pointermove", move);
      canvas.removeEventListener("pointerup", end);
      canvas.removeEventListener("pointercancel", end);
      if (!moved) {
        this.rubberBand = null;
        this.onBox(null);
        const row = this.rowAt(event);
        if (row >= 0) this.onSelect(row);
      } else if (this.rubberBand && isBox) {
        this.onBox(this.rubberBand);
      }
      this.repaint();
    };
    canvas.setPointerCapture(begin.pointerId);
    canvas.addEventListener("pointermove", move);
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
  }

  private boxOf(begin: PointerEvent, event: PointerEvent): Box {
    const [a, b] = [this.timeAt(begin.offsetX), this.timeAt(event.offsetX)];
    const [one, other] = [this.laneAt(begin.offsetY), this.laneAt(event.offsetY)];
    return { from: Math.min(a, b), to: Math.max(a, b), firstLane: Math.max(0, Math.min(one, other)), lastLane: Math.max(one, other) };
  }

  private hover(event: PointerEvent): void {
    if (event.buttons) return;
    const row = this.rowAt(event);
    this.tip.hidden = row < 0;
    this.canvas.style.cursor = row < 0 ? "default" : "pointer";
    if (row < 0) return;
    const { data } = this;
    const several = data.count[row] > 1 ? `${count(data.count[row])} x ` : "";
    const [name, line] = [data.text(data.args[row]) || data.text(data.command[row]), data.text(data.line[row])];
    const figures = `${time(data.total[row])}, start-up ${time(data.tax(row))}, on the critical path ${time(data.critical[row])}`;
    this.tip.replaceChildren(el("strong", {}, several + name.slice(0, 200)), el("br"), figures, el("br"), line);
    const left = Math.min(event.offsetX + 12, Math.max(0, this.width - this.tip.offsetWidth - 4));
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${event.offsetY + 18}px`;
  }

  private handleKey(key: string, shift: boolean): boolean {
    const actions: Record<string, () => void> = {
      w: () => this.zoomBy(1 / KEY_ZOOM),
      s: () => this.zoomBy(KEY_ZOOM),
      "+": () => this.zoomBy(1 / KEY_ZOOM),
      "-": () => this.zoomBy(KEY_ZOOM),
      a: () => this.pan(-KEY_PAN),
      d: () => this.pan(KEY_PAN),
      ArrowLeft: () => (shift ? this.step(-1) : this.pan(-KEY_PAN)),
      ArrowRight: () => (shift ? this.step(1) : this.pan(KEY_PAN)),
      ArrowUp: () => this.scroll(-1),
      ArrowDown: () => this.scroll(1),
      "0": () => this.reset(),
      n: () => this.next(),
      Enter: () => this.selectFirst(),
      Escape: () => this.onBox(null),
    };
    const action = Object.hasOwn(actions, key) ? actions[key] : undefined;
    action?.();
    return action !== undefined;
  }

  /** Selects the row before or after the selected one, in order of start. */
  private step(by: number): void {
    const row = this.rowOf.get(this.state.view.selected);
    const next = row === undefined ? 0 : row + by;
    if (next >= 0 && next < this.data.rows) this.onSelect(next);
  }

  /** Selects the next match of the search. */
  next(): void {
    const { flags } = this.matches;
    if (!flags) return;
    const selected = this.rowOf.get(this.state.view.selected) ?? -1;
    const found = flags.indexOf(1, selected + 1);
    const row = found >= 0 ? found : flags.indexOf(1);
    if (row >= 0) this.onSelect(row);
  }

  private selectFirst(): void {
    const { view } = this.state;
    const row = this.data.start.findIndex((start, index) => start >= view.from && this.data.end[index] <= view.to);
    if (row >= 0) this.onSelect(row);
  }
}
