// Adds buttons to the advice in the frame: they copy a fix and show its launches.

import type { Data } from "./data";
import { button, byId, copyButton } from "./dom";

export function enrichAdvice(data: Data, show: (rows: Float64Array) => void): void {
  for (const block of document.querySelectorAll<HTMLPreElement>("#advice pre")) {
    // Of an edit, only the new lines are for the clipboard, without their sign.
    const lines = [...block.querySelectorAll(".new")].map((line) => line.textContent?.slice(2) ?? "");
    const text = lines.length ? lines.join("\n") : (block.textContent ?? "");
    block.prepend(copyButton(() => text));
  }
  for (const item of byId("advice").querySelectorAll<HTMLElement>("li[data-advice]")) {
    const rows = data.numbers(`advice_${item.dataset.advice}`);
    if (rows.length) (item.querySelector("details") ?? item).append(button("show in the timeline", () => show(rows)));
  }
}
