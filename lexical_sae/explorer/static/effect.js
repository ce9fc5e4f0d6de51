/** What the edit in force does to all texts, and how to take it along. */

import { countOf, tableOf } from "./edits.js";
import { counted, h, percent, save } from "./dom.js";
import { changedTexts, groupAccuracies, summary } from "./figures.js";

/** @typedef {import("./figures.js").Codes} Codes */
/** @typedef {import("./store.js").App} App */

const LISTED = 100;
const MOST_CLASSES = 12;
const FEW = 10;

/**
 * Accuracy, classes and labels before and after, with the list of texts that change.
 * @param {App} app
 * @param {Codes} codes
 */
export function effect(app, codes) {
  if (!countOf(app.edit)) return null;
  const [before, now] = [summaryBefore(codes), summary(codes)];
  const changed = changedTexts(codes);
  const points = before.accuracy === null || now.accuracy === null ? null : 100 * (now.accuracy - before.accuracy);
  return h("section", { class: "effect", "aria-labelledby": "effect", "data-effect": "" },
    h("h2", { id: "effect" }, "Effect on all texts"),
    h("p", { class: "headline" },
      now.accuracy === null ? "" : h("span", null, "accuracy ", percent(before.accuracy, 2), " → ", h("strong", { "data-accuracy": "" }, percent(now.accuracy, 2)), ` (${Number(points) >= 0 ? "+" : "−"}${Math.abs(Number(points)).toFixed(2)} points)`),
      " ", h("strong", null, counted(changed.length, "label")), ` of ${codes.count.toLocaleString("en")} ${changed.length === 1 ? "changes" : "change"}.`),
    h("p", { class: "quiet" }, `All ${counted(codes.count, "text")} decided again in ${Math.max(1, Math.round(app.milliseconds))} ms, in this page: the table is the model.`),
    classTable(codes, before, now),
    groupTable(codes),
    h("details", { class: "fold" }, h("summary", null, `Labels that change (${changed.length})`), changedList(codes, changed)),
    keeping(app, codes));
}

/** @type {WeakMap<Codes, import("./figures.js").Summary>} */
const beforeEdits = new WeakMap();

/**
 * The figures of the model as trained, which no edit changes.
 * @param {Codes} codes
 */
function summaryBefore(codes) {
  const known = beforeEdits.get(codes) ?? summary(codes, codes.original);
  beforeEdits.set(codes, known);
  return known;
}

/**
 * @param {Codes} codes
 * @param {import("./figures.js").Summary} before
 * @param {import("./figures.js").Summary} now
 */
function classTable(codes, before, now) {
  if (!now.classes.length) return null;
  const moved = (/** @type {number} */ c) => Math.abs(Number(now.classes[c]?.recall) - Number(before.classes[c]?.recall)) + Math.abs(Number(now.classes[c]?.precision) - Number(before.classes[c]?.precision));
  const order = codes.labels.map((_, c) => c);
  const shown = order.length > MOST_CLASSES ? order.sort((a, b) => moved(b) - moved(a)).slice(0, MOST_CLASSES) : order;
  const pair = (/** @type {number | null | undefined} */ a, /** @type {number | null | undefined} */ b) => h("td", { class: "number" }, percent(a, 1), a === b ? "" : [" → ", h("strong", null, percent(b, 1))]);
  return h("table", { class: "figures" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "class"), h("th", { scope: "col", class: "number" }, "recall"), h("th", { scope: "col", class: "number" }, "precision"))),
    h("tbody", null, shown.map((c) => h("tr", null, h("th", { scope: "row", dir: "auto" }, codes.labels[c]), pair(before.classes[c]?.recall, now.classes[c]?.recall), pair(before.classes[c]?.precision, now.classes[c]?.precision)))));
}

/**
 * Accuracy of the groups that texts mention, before and after; nothing where the data knows none.
 * @param {Codes} codes
 */
export function groupTable(codes) {
  if (!codes.groups.length || !codes.truth) return null;
  const [before, now] = [groupAccuracies(codes, codes.original), groupAccuracies(codes)];
  return h("table", { class: "figures", "data-groups": "" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "group"), h("th", { scope: "col", class: "number" }, "accuracy"), h("th", { scope: "col", class: "number" }, "texts"))),
    h("tbody", null, now.map(({ name, texts, accuracy }, i) => {
      const was = before[i]?.accuracy;
      return h("tr", null, h("th", { scope: "row", dir: "auto" }, name),
        h("td", { class: "number" }, percent(was, 1), was === accuracy ? "" : [" → ", h("strong", null, percent(accuracy, 1))]),
        h("td", { class: "number quiet" }, texts, texts < FEW ? " (few)" : ""));
    })));
}

/**
 * @param {Codes} codes
 * @param {number[]} changed
 */
function changedList(codes, changed) {
  const rows = changed.slice(0, LISTED).map((i) => {
    const [was, is] = [Number(codes.original.predicted[i]), Number(codes.decisions.predicted[i])];
    const verdict = codes.truth ? (codes.truth[i] === is ? " ✓ mended" : codes.truth[i] === was ? " ✗ broken" : "") : "";
    return h("li", null, h("a", { href: `#/read?text=${i}`, dir: "auto" }, codes.texts[i]), h("span", { class: "quiet" }, ` ${codes.labels[was]} → ${codes.labels[is]}${verdict}`));
  });
  return h("div", null, h("ol", { class: "changes" }, rows), changed.length > LISTED && h("p", { class: "quiet" }, `and ${changed.length - LISTED} more: `, h("a", { href: "#/corpus?show=changed" }, "all in the corpus")));
}

/**
 * The edit as a file, and the command that makes a certified model of it.
 * @param {App} app
 * @param {Codes} codes
 */
function keeping(app, codes) {
  const table = () => tableOf(app.edit, codes.labels, (word) => codes.written(word));
  const { address } = app.model;
  return h("div", { class: "keeping" },
    h("div", { class: "row" }, h("button", { type: "button", class: "strong", "data-key": "save", onclick: () => save("words.csv", new Blob(["\ufeff", table()], { type: "text/csv" })) }, "save as words.csv")),
    h("p", { class: "quiet" }, "An edited model with its certificate: ", h("code", null, `lexical-sae edit ${address} words.csv --out edited`)));
}
