// Adds to the advice, which the frame contains, what needs a script: buttons that copy a fix and find its launches.

import type { Data } from "./data";
import { button, byId, copyButton } from "./dom";

export function enrichAdvice(data: Data, show: (rows: Float64Array) => void): void {
  for (const block of document.querySelectorAll<HTMLPreElement>("#advice pre")) {
    const text = block.textContent ?? "";
    block.prepend(copyButton(() => text));
  }
  for (const item of byId("advice").querySelectorAll<HTMLElement>("li[data-advice]")) {
    const rows = data.numbers(`advice_${item.dataset.advice}`);
    if (rows.length) item.append(button("show in the timeline", () => show(rows)));
  }
}
