// Draws the curve of threads on CPUs and in the run queue above the timeline, over the same span of time.

import uPlot from "uplot";
import type { Data } from "./data";
import { byId, oncePerFrame, property } from "./dom";
import type { State } from "./state";

/** Height of the chart, in CSS pixels. */
const HEIGHT = 90;
/** Minimum distance of points, in CSS pixels. If points are closer, several are drawn as their mean: more points would only look like noise. */
const PIXELS_PER_POINT = 5;

export function showCurve(data: Data, state: State): void {
  const running = data.numbers("running").map((hundredths) => hundredths / 100);
  if (!running.length) return;
  const waiting = data.numbers("waiting").map((hundredths) => hundredths / 100);
  const partLength = data.header.end_ns / running.length;
  const times = running.map((_, index) => (index + 0.5) * partLength);
  const container = byId("curve");
  container.setAttribute("role", "img");
  container.setAttribute("aria-label", `Threads on ${data.header.cpus} CPUs and waiting for one, over time`);
  let chart: uPlot | null = null;
  const visibleData = (): uPlot.AlignedData => {
    const { from, to } = state.view;
    const first = Math.max(0, Math.floor(from / partLength) - 1);
    const last = Math.min(times.length, Math.ceil(to / partLength) + 1);
    const groupSize = Math.ceil((last - first) / (container.clientWidth / PIXELS_PER_POINT || 1));
    return [times, running, waiting].map((column) => means(column, first, last, groupSize)) as uPlot.AlignedData;
  };
  const update = oncePerFrame(() => {
    chart?.setData(visibleData(), false);
    chart?.setScale("x", { min: state.view.from, max: state.view.to });
  });
  const draw = () => {
    chart?.destroy();
    chart = new uPlot(options(data, state, container.clientWidth), visibleData(), container);
    chart.setScale("x", { min: state.view.from, max: state.view.to });
  };
  draw();
  state.listen((_, changed) => {
    if (changed.has("from") || changed.has("to")) update();
  });
  const resize = oncePerFrame(() => {
    chart?.setSize({ width: container.clientWidth, height: HEIGHT });
    update();
  });
  new ResizeObserver(resize).observe(container);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

/** Returns the means of groups of `groupSize` consecutive numbers in a part of a column. */
function means(column: Float64Array, first: number, last: number, groupSize: number): number[] {
  const result: number[] = [];
  for (let from = first; from < last; from += groupSize) {
    const part = column.subarray(from, Math.min(from + groupSize, last));
    result.push(part.reduce((sum, number) => sum + number, 0) / part.length);
  }
  return result;
}

function options(data: Data, state: State, width: number): uPlot.Options {
  const [text, grid, onCpu] = [property("--quiet"), property("--grid"), property("--text")];
  return {
    width,
    height: HEIGHT,
    padding: [6, 0, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, setScale: false } },
    scales: { x: { time: false, auto: false }, y: { range: (_, __, max) => [0, Math.max(max, data.header.cpus) * 1.05] } },
    axes: [
      { show: false },
      { stroke: text, grid: { stroke: grid, width: 1 }, size: 0, splits: () => [data.header.cpus], values: () => [""] },
    ],
    series: [
      {},
      { label: "on a CPU", stroke: onCpu, fill: `${onCpu}33`, width: 1.5, points: { show: false } },
      { label: "waiting for a CPU", stroke: property("--queue-line"), width: 1.5, points: { show: false } },
    ],
    hooks: {
      setSelect: [
        (chart) => {
          if (chart.select.width < 3) return;
          state.zoom(chart.posToVal(chart.select.left, "x"), chart.posToVal(chart.select.left + chart.select.width, "x"));
          chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
    },
  };
}
