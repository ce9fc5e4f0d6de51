/** Elements and how numbers are written. Strings become text nodes and attributes only: none is ever read as markup. */

/** @typedef {Node | string | number | null | undefined | false | readonly Child[]} Child */
/** @typedef {Record<string, any>} Properties `on…` listens, `style` sets properties, all else are attributes. */

/**
 * A new element.
 * @template {string} T
 * @param {T} tag
 * @param {Properties | null} [properties]
 * @param {...Child} children
 * @returns {T extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[T] : HTMLElement}
 */
export function h(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, own] of Object.entries(value)) made.style.setProperty(key, String(own));
    else if (name === "value" && "value" in made) /** @type {any} */ (made).value = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...nodes(children));
  return /** @type {any} */ (made);
}

/**
 * @param {readonly Child[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  const flat = /** @type {(Node | string | number | null | undefined | false)[]} */ (/** @type {any[]} */ (children).flat(Infinity));
  const kept = flat.filter((child) => child !== null && child !== undefined && child !== false);
  return kept.map((child) => (child instanceof Node ? child : String(child)));
}

/**
 * Replace what an element holds; the control that had the focus keeps it, found again by its `data-key`.
 * @param {HTMLElement} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  const active = document.activeElement;
  const key = active instanceof HTMLElement && element.contains(active) ? active.dataset["key"] : undefined;
  element.replaceChildren(...nodes(children));
  if (key === undefined) return;
  const again = [...element.querySelectorAll("[data-key]")].find((e) => /** @type {HTMLElement} */ (e).dataset["key"] === key);
  if (again instanceof HTMLElement) again.focus({ preventScroll: true });
}

/** @param {number} value */
export const signed = (value) => {
  const written = Math.abs(value).toFixed(2);
  return `${value < 0 && written !== "0.00" ? "−" : "+"}${written}`;
};

/**
 * @param {number | null | undefined} value
 * @param {number} [digits]
 */
export const percent = (value, digits = 0) =>
  value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)}%`;

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [several]
 */
export const counted = (count, one, several = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : several}`;

/** @param {string} text */
export const codePoints = (text) => Array.from(text);

/**
 * @param {() => void} work
 * @param {number} wait In milliseconds.
 */
export function debounced(work, wait) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, wait);
  };
}

/**
 * A file that the browser saves.
 * @param {string} name
 * @param {Blob} content
 */
export function save(name, content) {
  const address = URL.createObjectURL(content);
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
