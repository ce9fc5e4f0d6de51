/** Small components that several views share. */

import { fill, h, percent, signed } from "./dom.js";
import { argmax, probabilities } from "./figures.js";

/** @typedef {import("./store.js").App} App */
/** @typedef {import("./figures.js").Summary} Summary */
/** @typedef {import("./figures.js").Codes} Codes */

/** A view: it draws itself when it is shown, and again when the app says so. */
export class View extends HTMLElement {
  /** @type {App | null} */
  #app = null;
  #listening = new AbortController();

  get app() {
    if (!this.#app) throw new Error("a view needs its app first");
    return this.#app;
  }

  set app(app) {
    this.#app = app;
  }

  connectedCallback() {
    this.#listening = new AbortController();
    for (const event of ["edit", "typed"]) this.app.addEventListener(event, () => this.update(event), { signal: this.#listening.signal });
    this.draw();
  }

  disconnectedCallback() {
    this.#listening.abort();
  }

  draw() {}

  /** @param {string} event */
  update(event) {
    void event;
    this.draw();
  }
}

/**
 * Probability of each label, the greatest first; at most `most`.
 * @param {Codes} codes
 * @param {number} text
 * @param {number} most
 */
export function labelBars(codes, text, most = 5) {
  const now = probabilities(codes.logits(text), codes.temperature);
  const before = probabilities(codes.logits(text, codes.original), codes.temperature);
  const order = now.map((_, c) => c).sort((a, b) => Number(now[b]) - Number(now[a])).slice(0, most);
  const rows = order.map((c) => {
    const moved = Math.abs(Number(now[c]) - Number(before[c])) >= 0.0005;
    return h("li", { class: c === argmax(now) ? "decided" : "" },
      h("span", { class: "name", dir: "auto" }, codes.labels[c]),
      h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: "bar whole", style: { left: "0", width: `${100 * Number(now[c])}%` } })),
      h("span", { class: "number" }, percent(now[c], 1)),
      h("span", { class: "was quiet" }, moved ? `was ${percent(before[c], 1)}` : ""));
  });
  return h("ul", { class: "labels", "aria-label": "Probability of each label" }, rows);
}

/**
 * The confusion matrix, each cell a button that opens its texts.
 * @param {Summary} summary
 * @param {string[]} labels
 * @param {(truth: number, predicted: number) => void} open
 */
export function confusionTable(summary, labels, open) {
  const shown = mostConfused(summary, labels.length);
  const widest = Math.max(1, ...shown.flatMap((a) => shown.map((b) => (a === b ? 0 : Number(summary.confusion[a]?.[b])))));
  const right = Math.max(1, ...shown.map((a) => Number(summary.confusion[a]?.[a])));
  const head = h("tr", null, h("td"), shown.map((b) => h("th", { scope: "col", dir: "auto" }, labels[b])));
  const rows = shown.map((a) => h("tr", null,
    h("th", { scope: "row", dir: "auto" }, labels[a]),
    shown.map((b) => {
      const count = Number(summary.confusion[a]?.[b]);
      const shade = Math.min(5, Math.ceil((5 * count) / (a === b ? right : widest)));
      const told = `${count} texts labelled ${labels[a]}, decided ${labels[b]}`;
      return h("td", null, count
        ? h("button", { type: "button", class: `cell ${a === b ? "right" : "wrong"} t${shade}`, "aria-label": told, title: told, "data-key": `cell ${a} ${b}`, onclick: () => open(a, b) }, count)
        : h("span", { class: "cell none" }, "0"));
    })));
  const note = shown.length < labels.length ? `The ${shown.length} labels that are confused most, of ${labels.length}. ` : "";
  return h("figure", { class: "confusion scroll", tabindex: "0", "aria-label": "Confusion matrix" },
    h("table", null, h("thead", null, head), h("tbody", null, rows)),
    h("figcaption", { class: "quiet" }, `${note}Rows: the true label; columns: the decision. A cell opens its texts.`));
}

const MOST_LABELS = 12;

/**
 * @param {Summary} summary
 * @param {number} count
 */
function mostConfused(summary, count) {
  const all = Array.from({ length: count }, (_, c) => c);
  if (count <= MOST_LABELS) return all;
  const errors = all.map((c) => all.reduce((sum, d) => sum + (c === d ? 0 : Number(summary.confusion[c]?.[d]) + Number(summary.confusion[d]?.[c])), 0));
  return all.sort((a, b) => Number(errors[b]) - Number(errors[a])).slice(0, MOST_LABELS).sort((a, b) => a - b);
}

/**
 * A list of words with bars, each a link to the word's page.
 * @param {App} app
 * @param {{name: string, value: number, remark?: string}[]} words
 * @param {number} [heaviest]
 */
export function wordBars(app, words, heaviest) {
  const most = heaviest ?? Math.max(1e-9, ...words.map((word) => Math.abs(word.value)));
  const rows = words.map((word) => h("li", { class: app.isSuppressed(word.name) ? "gone" : "" },
    h("a", { class: "name", dir: "auto", href: `#/words?${new URLSearchParams({ word: word.name })}` }, word.name),
    h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: `bar ${word.value > 0 ? "for" : "against"}`, style: { left: "0", width: `${(100 * Math.abs(word.value)) / most}%` } })),
    h("span", { class: "number" }, signed(word.value)),
    word.remark !== undefined && h("span", { class: "quiet remark" }, word.remark)));
  return h("ul", { class: "words" }, rows);
}

/**
 * @param {string} heading
 * @param {string[][]} rows Name, value and remark.
 * @param {string} [caption] Class of the caption: `hidden` where the heading is written above already.
 */
export function figuresTable(heading, rows, caption = "") {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": heading },
    h("table", { class: "figures remarks" },
      h("caption", { class: caption }, heading),
      h("tbody", null, rows.map(([name, value, remark]) => h("tr", null,
        h("th", { scope: "row" }, name), h("td", { class: "number" }, h("strong", null, value)), h("td", { class: "quiet" }, remark))))));
}

/**
 * A choice among values.
 * @param {string} label
 * @param {[string, string][]} options Value and name.
 * @param {string} value
 * @param {(value: string) => void} chosen
 */
export function choice(label, options, value, chosen) {
  const select = h("select", { "data-key": label, onchange: () => chosen(select.value) },
    options.map(([own, name]) => h("option", { value: own, selected: own === value }, name)));
  return h("label", { class: "field" }, h("span", null, label), select);
}

/**
 * Pages of a long list.
 * @param {number} page
 * @param {number} pages
 * @param {(page: number) => void} go
 */
export function pager(page, pages, go) {
  if (pages < 2) return null;
  const step = (/** @type {string} */ name, /** @type {number} */ to) =>
    h("button", { type: "button", disabled: to < 0 || to >= pages, "data-key": name, onclick: () => go(to) }, name);
  return h("nav", { class: "pager", "aria-label": "Pages" }, step("previous", page - 1), h("span", null, `page ${page + 1} of ${pages}`), step("next", page + 1));
}

/**
 * Say something once, for screen readers too.
 * @param {string} message
 */
export function announce(message) {
  const place = document.querySelector("[data-announce]");
  if (place instanceof HTMLElement) fill(place, message);
}
