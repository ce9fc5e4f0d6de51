/** A text with its words tinted by what they contribute, and a table that adds up to the decision. */

import { codePoints, h, signed } from "./dom.js";
import { towards } from "./figures.js";

/** @typedef {import("./table.js").Entry} Entry */

/** @typedef {{target: number, contrast: number | null}} Question */

const TINTS = 5;

/**
 * The class of a tint for a share of the strongest. Example: 0.5 -> t3
 * @param {number} share
 */
const tint = (share) => `t${Math.min(TINTS, Math.round(share * TINTS + 0.3))}`;

/**
 * What context does to a word: nothing, or reversed, stronger, weaker.
 * @param {number} factor What it multiplies the default by.
 * @returns {"reversed" | "stronger" | "weaker" | null}
 */
export function shiftBy(factor) {
  if (factor === 1) return null;
  if (factor < 0) return "reversed";
  return factor > 1 ? "stronger" : "weaker";
}

/** @param {Entry} entry */
export const shiftOf = (entry) => shiftBy(entry.factor);

export const SIGNS = { reversed: "↺", stronger: "↑", weaker: "↓" };

/**
 * The pieces of a text in order: what stands between words, and words with their entry.
 * @param {string} text
 * @param {Entry[]} entries
 * @returns {{written: string, entry: Entry | null}[]}
 */
export function piecesOf(text, entries) {
  const letters = codePoints(text);
  const places = entries.flatMap((entry) => entry.places.map(([start, length]) => ({ start, length, entry })));
  places.sort((a, b) => a.start - b.start || b.length - a.length);
  /** @type {{written: string, entry: Entry | null}[]} */
  const pieces = [];
  let at = 0;
  for (const { start, length, entry } of places) {
    if (start < at) continue; // two words of one place, such as parts of a contraction: the first stands for both
    if (start > at) pieces.push({ written: letters.slice(at, start).join(""), entry: null });
    pieces.push({ written: letters.slice(start, start + length).join(""), entry });
    at = start + length;
  }
  if (at < letters.length) pieces.push({ written: letters.slice(at).join(""), entry: null });
  return pieces;
}

/**
 * A tinted text. With `act`, each word is a button.
 * @param {string} text
 * @param {Entry[]} entries
 * @param {Question} question
 * @param {{act?: (entry: Entry) => void, look?: (entry: Entry) => void, label?: string, disabled?: boolean}} [options]
 */
export function tintedText(text, entries, question, options = {}) {
  const worth = (/** @type {Entry} */ entry) => towards(entry.parts, question.target, question.contrast);
  const strongest = Math.max(0, ...entries.map((entry) => Math.abs(towards(entry.unsuppressed, question.target, question.contrast)))) || 1;
  const made = h("p", { class: "text", dir: "auto" });
  let number = 0;
  for (const { written, entry } of piecesOf(text, entries)) {
    if (!entry) {
      made.append(written);
      continue;
    }
    const value = worth(entry);
    const shade = entry.isSuppressed ? "gone" : value === 0 ? "" : `${value > 0 ? "for" : "against"} ${tint(Math.abs(value) / strongest)}`;
    const shift = entry.isSuppressed ? null : shiftOf(entry);
    const sign = shift && h("span", { class: "sign", "aria-hidden": "true" }, SIGNS[shift]);
    if (!options.act || !entry.unsuppressed.some(Boolean)) {
      const title = value === 0 ? null : `${signed(value)}${shift ? `, ${shift} by context` : ""}`;
      made.append(shade ? h("mark", { class: shade, title }, written, sign) : written);
      continue;
    }
    const told = `${written}: ${entry.isSuppressed ? "suppressed" : signed(value)}${shift ? `, ${shift} by context` : ""}`;
    const look = () => options.look?.(entry);
    made.append(
      h(
        "button",
        {
          type: "button", class: `word ${shade}`, "aria-label": told, "aria-pressed": String(entry.isSuppressed),
          "data-key": `word ${number++}`, onclick: () => options.act?.(entry), onmouseenter: look, onfocus: look,
        },
        written,
        sign,
      ),
    );
  }
  return made;
}

/**
 * @typedef {object} Step A line of the sum.
 * @property {string} name
 * @property {number} value
 * @property {Entry | null} entry
 * @property {string} [note]
 */

/**
 * The strongest words, the sums of the others, and the bias: together the logit.
 * @param {Entry[]} entries
 * @param {number} bias
 * @param {Question} question
 * @param {number} top
 * @returns {{steps: Step[], total: number}}
 */
export function stepsOf(entries, bias, question, top) {
  const worth = (/** @type {Entry} */ entry) => towards(entry.parts, question.target, question.contrast);
  const active = entries.filter((entry) => worth(entry) !== 0).sort((a, b) => Math.abs(worth(b)) - Math.abs(worth(a)));
  /** @type {Step[]} */
  const steps = active.slice(0, top).map((entry) => ({ name: entry.name, value: worth(entry), entry }));
  for (const [side, sign] of /** @type {[string, number][]} */ ([["for", 1], ["against", -1]])) {
    const rest = active.slice(top).filter((entry) => worth(entry) * sign > 0);
    const value = rest.reduce((sum, entry) => sum + worth(entry), 0);
    if (rest.length) steps.push({ name: `${rest.length} other ${rest.length === 1 ? "word" : "words"} ${side}`, value, entry: null });
  }
  steps.push({ name: "bias", value: bias, entry: null, note: "the same in every text" });
  return { steps, total: steps.reduce((sum, step) => sum + step.value, 0) };
}

/**
 * A waterfall as a table: each bar begins where the one before ended, and the last is the decision.
 * @param {Step[]} steps
 * @param {number} total
 * @param {Question} question
 * @param {{caption: string, causes?: Map<string, string>, look?: (entry: Entry) => void}} options
 */
export function waterfall(steps, total, question, options) {
  const ends = [0];
  for (const step of steps) ends.push(Number(ends.at(-1)) + step.value);
  const low = Math.min(...ends, total);
  const high = Math.max(...ends, total);
  const place = (/** @type {number} */ value) => (100 * (value - low)) / (high - low || 1);
  const bar = (/** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ side) =>
    h("span", { class: "track", "aria-hidden": "true" },
      h("span", { class: "zero", style: { left: `${place(0)}%` } }),
      h("span", { class: `bar ${side}`, style: { left: `${Math.min(place(from), place(to))}%`, width: `${Math.abs(place(to) - place(from))}%` } }));
  const hasDefaults = steps.some((step) => step.entry?.defaults);
  const rows = steps.map((step, i) => {
    const shift = step.entry && shiftOf(step.entry);
    const fixed = step.entry?.defaults ? towards(step.entry.defaults, question.target, question.contrast) : null;
    const cause = step.entry && shift ? options.causes?.get(step.entry.name) : undefined;
    const moved = shift && fixed !== null ? `${signed(step.value - fixed)} ${shift}${cause ? ` by “${cause}”` : ""}` : "";
    return h("tr", { onmouseenter: () => step.entry && options.look?.(step.entry) },
      h("th", { scope: "row", dir: "auto" }, step.name),
      h("td", { class: "bars" }, bar(Number(ends[i]), Number(ends[i + 1]), step.entry || step.note === undefined ? (step.value > 0 ? "for" : "against") : "plain")),
      h("td", { class: "number" }, signed(step.value)),
      hasDefaults && h("td", { class: "number quiet wide" }, fixed === null ? "" : signed(fixed)),
      hasDefaults && h("td", { class: "quiet moved" }, moved));
  });
  const columns = ["word", "", "contribution", ...(hasDefaults ? ["default", "context"] : [])];
  return h("table", { class: "waterfall" },
    h("caption", null, options.caption),
    h("thead", null, h("tr", null, columns.map((name, i) =>
      name ? h("th", { scope: "col", class: i === 2 || i === 3 ? `number${i === 3 ? " wide" : ""}` : "" }, name) : h("td", { class: "bars" })))),
    h("tbody", null, rows),
    h("tfoot", null, h("tr", null,
      h("th", { scope: "row" }, "sum = logit"),
      h("td", { class: "bars" }, bar(0, total, "whole")),
      h("td", { class: "number" }, h("strong", { "data-sum": "" }, signed(total))),
      hasDefaults && h("td", { class: "wide" }), hasDefaults && h("td"))));
}
