// Creates elements. Strings become text, never markup, so no string of a recording can change the page.

type Child = Node | string;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found as T;
}

export function button(text: string, onClick: () => void, attributes: Record<string, string> = {}): HTMLButtonElement {
  const element = el("button", { type: "button", ...attributes }, text);
  element.addEventListener("click", onClick);
  return element;
}

/** Returns a button that copies a text to the clipboard. */
export function copyButton(text: () => string): HTMLButtonElement {
  const element = button("copy", async () => {
    try {
      await navigator.clipboard.writeText(text());
      element.textContent = "copied";
    } catch {
      element.textContent = "select and copy";
    }
    setTimeout(() => (element.textContent = "copy"), 1500);
  }, { class: "copy" });
  return element;
}

/** Returns the value of a custom property of the page's style, such as a colour of the current theme. */
export function property(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Returns a function that requests a call in the next frame. Several requests before that frame cause one call. */
export function oncePerFrame(call: () => void): () => void {
  let isRequested = false;
  return () => {
    if (isRequested) return;
    isRequested = true;
    requestAnimationFrame(() => {
      isRequested = false;
      call();
    });
  };
}

/** Fits a canvas to a size in CSS pixels, and returns a context with those units. */
export function fitCanvas(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}
