// Makes a flame graph that is in the page as SVG interactive: a click or Enter on a box zooms to the box, a second one or Escape shows the whole
// graph, and arrow keys move the focus.

import { button, byId } from "./dom";

/** Width of a character, in units of the viewBox. */
const CHARACTER_WIDTH = 7;
const MARGIN = 6;

interface Box {
  group: SVGGElement;
  rect: SVGRectElement;
  text: SVGTextElement | null;
  label: string;
  x: number;
  y: number;
  width: number;
}

export function makeZoomable(svg: SVGSVGElement | null): void {
  if (!svg) return;
  const boxes = [...svg.querySelectorAll("g")].map(boxOf);
  const full = svg.viewBox.baseVal.width;
  const status = byId("flame-about");
  let focus: Box | null = null;
  const zoom = (to: Box | null) => {
    focus = to;
    draw(svg, boxes, full, to);
    status.textContent = to ? titleOf(to) : "";
  };
  const focusOn = (box: Box) => {
    for (const each of boxes) each.group.tabIndex = each === box ? 0 : -1;
    box.group.focus();
    status.textContent = titleOf(box);
  };
  for (const box of boxes) {
    box.group.tabIndex = -1;
    box.group.setAttribute("role", "img");
    box.group.setAttribute("aria-label", titleOf(box));
    box.group.addEventListener("click", () => zoom(box === focus ? null : box));
    box.group.addEventListener("keydown", (event) => {
      const to = neighbour(boxes, box, event.key);
      if (event.key === "Enter") zoom(box === focus ? null : box);
      else if (event.key === "Escape") zoom(null);
      else if (to) focusOn(to);
      else return;
      event.preventDefault();
    });
  }
  if (boxes.length) boxes[0].group.tabIndex = 0;
  byId("flame-tools").append(button("whole graph", () => zoom(null)));
  byId("flame-tools").hidden = false;
}

function boxOf(group: SVGGElement): Box {
  const rect = group.querySelector("rect") as SVGRectElement;
  const number = (name: string) => Number(rect.getAttribute(name));
  const [x, y, width] = ["x", "y", "width"].map(number);
  return { group, rect, text: group.querySelector("text"), label: group.dataset.label ?? "", x, y, width };
}

const titleOf = (box: Box) => box.group.querySelector("title")?.textContent ?? "";

/** Stretches the boxes so that the box in focus and those below it are as wide as the graph. Boxes beside it are hidden. */
function draw(svg: SVGSVGElement, boxes: Box[], full: number, focus: Box | null): void {
  const [from, width] = focus ? [focus.x, focus.width] : [0, full];
  const scale = full / width;
  for (const box of boxes) {
    const left = Math.max((box.x - from) * scale, 0);
    const right = Math.min((box.x + box.width - from) * scale, full);
    // Coordinates are rounded to hundredths, and zooming enlarges the errors.
    const isVisible = right - left > 0.02 * scale;
    box.group.style.display = isVisible ? "" : "none";
    if (!isVisible) continue;
    box.rect.setAttribute("x", String(left));
    box.rect.setAttribute("width", String(right - left));
    label(box, left, right - left);
  }
  svg.dataset.zoom = String(scale);
}

function label(box: Box, left: number, width: number): void {
  const letters = Math.floor((width - MARGIN) / CHARACTER_WIDTH);
  if (!box.text) {
    if (letters < 3) return;
    box.text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    for (const [name, value] of Object.entries({ dx: "3", dy: "14", y: String(box.y) })) box.text.setAttribute(name, value);
    box.group.append(box.text);
  }
  box.text.setAttribute("x", String(left));
  box.text.textContent = letters < 3 ? "" : box.label.length > letters ? `${box.label.slice(0, letters - 3)}...` : box.label;
}

/** Returns the visible box that an arrow key moves to. */
function neighbour(boxes: Box[], from: Box, key: string): Box | undefined {
  const visible = boxes.filter((box) => box.group.style.display !== "none");
  const rows = visible.map((box) => box.y);
  const row = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (row) {
    const wanted = row > 0 ? Math.min(...rows.filter((y) => y > from.y)) : Math.max(...rows.filter((y) => y < from.y));
    const middle = (box: Box) => box.x + box.width / 2;
    const isOver = (box: Box) => (row > 0 ? box.x >= from.x && middle(box) <= from.x + from.width : box.x <= middle(from) && middle(from) <= box.x + box.width);
    return visible.find((box) => box.y === wanted && isOver(box));
  }
  const same = visible.filter((box) => box.y === from.y).sort((a, b) => a.x - b.x);
  const column = { ArrowLeft: -1, ArrowRight: 1 }[key];
  return column ? same[same.indexOf(from) + column] : undefined;
}
