/** Two models side by side, or a model before and after the edit: words gained and lost, and decisions that differ. */

import { counted, fill, h, percent } from "./dom.js";
import { changedTexts, probabilities, summary } from "./figures.js";
import { View, choice, wordBars } from "./parts.js";
import { effect } from "./effect.js";
import { tintedText } from "./text.js";

/** @typedef {import("./figures.js").Codes} Codes */

const WORDS = 12;
const TEXTS = 30;

export class Compare extends View {
  draw() {
    const { app } = this;
    const others = app.models.map((model, i) => ({ model, i })).filter(({ i }) => i !== app.chosen);
    const other = others.find(({ i }) => String(i) === app.params.get("with")) ?? others[0];
    const first = app.codes;
    if (!first) {
      fill(this, h("h1", null, "Compare"), h("p", null, "There are no texts to compare on."));
      return;
    }
    if (!other) {
      const words = changedTexts(first);
      fill(this, h("h1", null, "Compare"),
        h("p", null, "One model is here; it is compared with itself as edited. For two, give both: ", h("code", null, `lexical-sae explore ${app.model.address} --against OTHER`)),
        effect(app, first) ?? h("p", { class: "quiet" }, "Nothing is edited yet. Suppress a word or change a weight: ", h("a", { href: "#/words" }, "words")),
        words.slice(0, TEXTS).map((i) => this.#beforeAndAfter(first, i)));
      return;
    }
    const second = other.model.codes;
    fill(this, h("h1", null, "Compare"),
      h("div", { class: "row" }, choice(`${app.model.name} with`, others.map(({ model, i }) => /** @type {[string, string]} */ ([String(i), model.name])), String(other.i), (value) => app.go("compare", { with: value }))),
      second && isSame(first, second) ? this.#pair(first, second, other.model.name) : h("p", { class: "caution" }, "The two do not have the same labels and texts here, so they cannot be compared."));
  }

  /**
   * @param {Codes} codes
   * @param {number} i
   */
  #beforeAndAfter(codes, i) {
    const target = Number(codes.original.predicted[i]);
    return h("article", null, tintedText(codes.texts[i] ?? "", codes.entries(i), { target, contrast: null }),
      h("p", { class: "quiet" }, `${codes.labels[target]} → ${codes.labels[Number(codes.decisions.predicted[i])]} `, h("a", { href: `#/read?text=${i}` }, "take apart")));
  }

  /**
   * @param {Codes} first
   * @param {Codes} second
   * @param {string} name
   */
  #pair(first, second, name) {
    const [one, two] = [summary(first), summary(second)];
    const differ = Array.from({ length: first.count }, (_, i) => i).filter((i) => first.decisions.predicted[i] !== second.decisions.predicted[i]);
    const means = [meanContributions(first), meanContributions(second)];
    return [
      h("ul", { class: "tiles" },
        h("li", null, h("span", { class: "name" }, this.app.model.name), h("b", null, percent(one.accuracy, 1)), h("span", { class: "quiet" }, "accuracy here, as edited")),
        h("li", null, h("span", { class: "name" }, name), h("b", null, percent(two.accuracy, 1)), h("span", { class: "quiet" }, "accuracy here")),
        h("li", null, h("span", { class: "name" }, "decisions that differ"), h("b", null, differ.length), h("span", { class: "quiet" }, `of ${counted(first.count, "text")}`))),
      h("h2", null, "Words gained and lost"),
      h("p", { class: "quiet" }, `Mean contribution to a class over the texts decided so: ${name} minus ${this.app.model.name}.`),
      h("div", { class: "classes" }, first.labels.map((label, c) => h("div", null, h("h3", { dir: "auto" }, label), wordBars(this.app, moved(means, c))))),
      h("h2", null, "Decisions that differ"),
      differ.slice(0, TEXTS).map((i) => this.#differing(first, second, i)),
      differ.length > TEXTS && h("p", { class: "quiet" }, `and ${differ.length - TEXTS} more`),
    ];
  }

  /**
   * @param {Codes} first
   * @param {Codes} second
   * @param {number} i
   */
  #differing(first, second, i) {
    const [a, b] = [Number(first.decisions.predicted[i]), Number(second.decisions.predicted[i])];
    const own = new Map(first.entries(i).map((entry) => [entry.name, Number(entry.parts[b]) - Number(entry.parts[a])]));
    const why = second.entries(i).map((entry) => ({ name: entry.name, value: Number(entry.parts[b]) - Number(entry.parts[a]) - Number(own.get(entry.name) ?? 0) }));
    const words = why.filter(({ value }) => value > 0).sort((x, y) => y.value - x.value).slice(0, 3);
    const told = (/** @type {Codes} */ codes, /** @type {number} */ label) => `${codes.labels[label]} ${percent(probabilities(codes.logits(i), codes.temperature)[label])}`;
    return h("article", null,
      tintedText(second.texts[i] ?? "", second.entries(i), { target: b, contrast: a }),
      h("p", null, `${told(first, a)} → ${told(second, b)}`, first.truth && h("span", { class: "quiet" }, ` labelled ${first.labels[Number(first.truth[i])]}`), words.length > 0 && h("span", { class: "quiet" }, ` because of ${words.map((word) => word.name).join(", ")}`)));
  }
}

/**
 * @param {Codes} first
 * @param {Codes} second
 */
function isSame(first, second) {
  return first.labels.join("\n") === second.labels.join("\n") && first.count === second.count && first.texts.every((text, i) => text === second.texts[i]);
}

/**
 * Per class and word, the mean contribution over the texts that are decided so.
 * @param {Codes} codes
 */
function meanContributions(codes) {
  const sums = codes.labels.map(() => /** @type {Map<string, number>} */ (new Map()));
  const counts = codes.labels.map(() => 0);
  for (let i = 0; i < codes.count; i++) {
    const c = Number(codes.decisions.predicted[i]);
    counts[c] = Number(counts[c]) + 1;
    for (const entry of codes.entries(i)) sums[c]?.set(entry.name, Number(sums[c]?.get(entry.name) ?? 0) + Number(entry.parts[c]));
  }
  return sums.map((own, c) => new Map([...own].map(([name, sum]) => [name, sum / Math.max(1, Number(counts[c]))])));
}

/**
 * @param {Map<string, number>[][]} means
 * @param {number} c
 */
function moved(means, c) {
  const [before, after] = [means[0]?.[c] ?? new Map(), means[1]?.[c] ?? new Map()];
  const names = new Set([...before.keys(), ...after.keys()]);
  const found = [...names].map((name) => ({ name, value: Number(after.get(name) ?? 0) - Number(before.get(name) ?? 0) }));
  return found.sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, WORDS);
}
