// Draws the flame graph on a canvas. A click or Enter zooms, arrow keys move, and zooming to a program's box finds its launches in the timeline.

import type { Data } from "./data";
import { button, byId, el, fitCanvas, oncePerFrame, property } from "./dom";
import { count, percent, time } from "./format";
import type { State } from "./state";

/** Height of a row of boxes, in CSS pixels. */
const LANE_HEIGHT = 18;
/** Maximum height of the graph, in CSS pixels. */
const MAX_HEIGHT = 640;
/** Number of boxes below the one in focus that remain visible. */
const LEVELS_BELOW_FOCUS = 3;
/** The kinds of boxes, in the order of their numbers in the data. */
const KINDS = ["phase", "program", "script", "code"];
const STACKINGS: Record<string, string> = { tree: "processes", caller: "callers", command: "programs" };
const WEIGHTS: Record<string, string> = { critical: "critical path", wall: "wall time", tax: "start-up", count: "launches" };

interface Graph {
  name: string;
  total: number;
  weight: string;
  below: Float64Array;
  weights: Float64Array;
  texts: Float64Array;
  kinds: Float64Array;
  phases: Float64Array;
  left: Float64Array;
  depth: Int32Array;
  levels: number;
}

export class Flame {
  private readonly canvas = el("canvas", { tabindex: "0", role: "application", "aria-label": "Flame graph. The tables and the process tree have the same figures as text." });
  private readonly status = el("p", { role: "status", class: "quiet" });
  private readonly box = el("div", { class: "flame" }, this.canvas);
  private readonly choices = new Map<string, HTMLButtonElement>();
  private readonly graphs = new Map<string, Graph>();
  private focus = -1;
  private cursor = -1;
  private readonly repaint = oncePerFrame(() => this.paint());

  constructor(
    private readonly data: Data,
    private readonly state: State,
  ) {
    if (!data.header.flames.length) return;
    const tools = el("div", { class: "tools", role: "group", "aria-label": "Flame graph of" });
    for (const { name, stacking, weight } of data.header.flames) {
      const choice = button(`${STACKINGS[stacking] ?? stacking}: ${WEIGHTS[weight] ?? weight}`, () => state.set({ flame: name }));
      this.choices.set(name, choice);
      tools.append(choice);
    }
    tools.append(button("whole graph", () => this.zoom(-1)));
    byId("flame-body").replaceChildren(tools, this.status, this.box);
    byId("flame").hidden = false;
    this.listen();
    state.listen((_, changed) => {
      if (!changed.has("flame")) return;
      this.focus = this.cursor = -1;
      this.repaint();
    });
    new ResizeObserver(this.repaint).observe(this.box);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", this.repaint);
  }

  private get graph(): Graph {
    const { flames } = this.data.header;
    const chosen = flames.find((flame) => flame.name === this.state.view.flame) ?? flames[0];
    const graph = this.graphs.get(chosen.name) ?? this.read(chosen.name, chosen.total, chosen.weight);
    this.graphs.set(chosen.name, graph);
    return graph;
  }

  private read(name: string, total: number, weight: string): Graph {
    const column = (what: string) => this.data.numbers(`${name}_${what}`);
    const [weights, distances] = [column("weight"), column("below")];
    const below = distances.map((distance, node) => (distance ? node - distance : -1));
    const left = new Float64Array(weights.length);
    const depth = new Int32Array(weights.length);
    // Each box comes after the box below it, and boxes are ordered from left to right.
    const next = new Float64Array(weights.length + 1);
    let levels = 0;
    for (let node = 0; node < weights.length; node++) {
      const parent = below[node];
      depth[node] = parent < 0 ? 0 : depth[parent] + 1;
      left[node] = (parent < 0 ? 0 : left[parent]) + next[parent + 1];
      next[parent + 1] += weights[node];
      levels = Math.max(levels, depth[node] + 1);
    }
    return { name, total, weight, below, weights, texts: column("text"), kinds: column("kind"), phases: column("phase"), left, depth, levels };
  }

  private describe(graph: Graph, node: number): string {
    const weight = graph.weights[node];
    return `${this.data.text(graph.texts[node])}: ${this.amount(graph, weight)}, ${percent(weight, graph.total)}`;
  }

  private amount(graph: Graph, weight: number): string {
    return graph.weight === "count" ? count(weight) : time(weight);
  }

  /** Returns which part of the graph is visible: an interval of the weights, and all levels from the first one. */
  private visiblePart(graph: Graph): { from: number; shown: number; firstLevel: number } {
    if (this.focus < 0) return { from: 0, shown: graph.total || 1, firstLevel: 0 };
    const firstLevel = Math.max(graph.depth[this.focus] - LEVELS_BELOW_FOCUS, 0);
    return { from: graph.left[this.focus], shown: graph.weights[this.focus] || 1, firstLevel };
  }

  private paint(): void {
    const { graph } = this;
    for (const [name, choice] of this.choices) choice.setAttribute("aria-pressed", String(name === graph.name));
    const width = this.box.clientWidth;
    const { from, shown, firstLevel } = this.visiblePart(graph);
    const height = Math.min(graph.levels - firstLevel, Math.floor(MAX_HEIGHT / LANE_HEIGHT)) * LANE_HEIGHT + 2;
    const context = fitCanvas(this.canvas, width, height);
    if (!context || !width) return;
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    const colors = KINDS.map((kind) => property(`--flame-${kind}`));
    const phases = this.data.header.phases.map((phase) => [property(`--${phase.name}`), property(`--on-${phase.name}`)]);
    const [textColor, background] = [property("--flame-text"), property("--panel")];
    for (let node = 0; node < graph.weights.length; node++) {
      let x = ((graph.left[node] - from) / shown) * width;
      let wide = (graph.weights[node] / shown) * width;
      if (wide < 0.6 || x > width || x + wide < 0 || graph.depth[node] < firstLevel) continue;
      wide = Math.min(x + wide, width) - Math.max(x, 0);
      x = Math.max(x, 0);
      const y = (graph.depth[node] - firstLevel) * LANE_HEIGHT + 1;
      if (y > height) continue;
      const phase = graph.phases[node] ? phases[graph.phases[node] - 1] : null;
      context.fillStyle = phase ? phase[0] : colors[graph.kinds[node]];
      context.fillRect(x, y, wide, LANE_HEIGHT - 1);
      context.fillStyle = background;
      context.fillRect(x + wide - 0.5, y, 0.5, LANE_HEIGHT - 1);
      if (node === this.cursor) {
        context.strokeStyle = property("--text");
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, Math.max(wide - 2, 1), LANE_HEIGHT - 3);
      }
      const letters = Math.floor((wide - 6) / 6.5);
      if (letters < 3) continue;
      const text = this.data.text(graph.texts[node]);
      context.fillStyle = phase ? phase[1] : textColor;
      context.fillText(text.length > letters ? `${text.slice(0, letters - 1)}…` : text, x + 3, y + LANE_HEIGHT / 2);
    }
    this.status.textContent = this.cursor >= 0 ? this.describe(graph, this.cursor) : this.describeWhole(graph);
  }

  private describeWhole(graph: Graph): string {
    const whole = graph.weights.length ? `whole graph: ${this.amount(graph, graph.total)}` : "empty";
    return `${whole}. Click or Enter: zoom. Arrows: move.`;
  }

  private nodeAt(event: MouseEvent): number {
    const { graph } = this;
    const { from, shown, firstLevel } = this.visiblePart(graph);
    const at = from + (event.offsetX / this.box.clientWidth) * shown;
    const depth = Math.floor((event.offsetY - 1) / LANE_HEIGHT) + firstLevel;
    for (let node = 0; node < graph.weights.length; node++) {
      if (graph.depth[node] === depth && graph.left[node] <= at && at < graph.left[node] + graph.weights[node]) return node;
    }
    return -1;
  }

  private zoom(node: number): void {
    this.focus = node;
    this.cursor = node;
    this.repaint();
    const { graph } = this;
    if (node >= 0 && KINDS[graph.kinds[node]] === "program") this.state.set({ query: `command=${this.data.text(graph.texts[node])}` });
  }

  private listen(): void {
    this.canvas.addEventListener("pointermove", (event) => {
      this.cursor = this.nodeAt(event);
      this.repaint();
    });
    this.canvas.addEventListener("click", (event) => {
      const node = this.nodeAt(event);
      if (node >= 0) this.zoom(node === this.focus ? this.graph.below[node] : node);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const to = this.neighbour(event.key);
      if (to === undefined) return;
      event.preventDefault();
      if (event.key === "Enter") this.zoom(this.cursor);
      else if (event.key === "Escape" || event.key === "0") this.zoom(-1);
      else this.cursor = to;
      this.repaint();
    });
  }

  /** Returns the box that a key moves to: for Enter, Escape and 0, the present one. Returns undefined for other keys. */
  private neighbour(key: string): number | undefined {
    const { below } = this.graph;
    const at = this.cursor;
    const sibling = (by: number) => {
      for (let node = at + by; node >= 0 && node < below.length; node += by) if (below[node] === below[at]) return node;
      return at;
    };
    if (at < 0 && ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Enter"].includes(key)) return 0;
    switch (key) {
      case "ArrowDown": {
        const above = below.indexOf(at);
        return above < 0 ? at : above;
      }
      case "ArrowUp": return below[at] < 0 ? at : below[at];
      case "ArrowLeft": return sibling(-1);
      case "ArrowRight": return sibling(1);
      case "Enter": case "Escape": case "0": return at;
      default: return undefined;
    }
  }
}
