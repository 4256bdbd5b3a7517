// Adds buttons to the advice in the frame: they copy a fix and show its launches.

import type { Data } from "./data";
import { button, byId, copyButton } from "./dom";

export function enrichAdvice(data: Data, show: (rows: Float64Array) => void): void {
  for (const block of document.querySelectorAll<HTMLPreElement>("#advice pre")) {
    const text = block.textContent ?? "";
    block.prepend(copyButton(() => text));
  }
  for (const item of byId("advice").querySelectorAll<HTMLElement>("li[data-advice]")) {
    const rows = data.numbers(`advice_${item.dataset.advice}`);
    if (rows.length) (item.querySelector("details") ?? item).append(button("show in the timeline", () => show(rows)));
  }
}
