/** All texts: a table with filters, and the words behind a cell of the confusion matrix. */

import { counted, debounced, fill, h, percent, signed } from "./dom.js";
import { argmax, changedTexts, probabilities, summary } from "./figures.js";
import { View, choice, confusionTable, pager, wordBars } from "./parts.js";
import { tintedText } from "./text.js";

/** @typedef {import("./figures.js").Codes} Codes */

const AT_ONCE = 25;
const RESPONSIBLE = 12;

export class Corpus extends View {
  #controls = h("div", { class: "controls" });
  #matrix = h("div");
  #found = h("div");
  #page = 0;

  draw() {
    const { codes } = this.app;
    if (!codes) {
      fill(this, h("h1", null, "Corpus"), h("p", null, "There are no texts here. Start the service with ", h("code", null, "--data texts.csv"), "."));
      return;
    }
    this.#page = 0;
    fill(this, h("h1", null, "Corpus"), this.#controls, this.#matrix, this.#found);
    this.#drawControls(codes);
    this.#drawFound(codes);
  }

  update() {
    if (this.app.codes) this.#drawFound(this.app.codes);
  }

  /** @param {string} name */
  #param(name) {
    return this.app.params.get(name) ?? "";
  }

  /** @param {Record<string, string>} change */
  #go(change) {
    this.app.go("corpus", { ...Object.fromEntries(this.app.params), ...change });
  }

  /** @param {Codes} codes */
  #drawControls(codes) {
    const labels = codes.labels.map((label, c) => /** @type {[string, string]} */ ([String(c), label]));
    const search = this.#input("Search", "query");
    const word = this.#input("Has the word", "word");
    const shows = choice("Show", [["", "all"], ["wrong", "wrong decisions"], ["right", "right decisions"], ["changed", "changed by the edit"]], this.#param("show"), (show) => this.#go({ show }));
    const predicted = choice("Decided", [["", "any"], ...labels], this.#param("predicted"), (value) => this.#go({ predicted: value }));
    const truth = codes.truth && choice("Labelled", [["", "any"], ...labels], this.#param("truth"), (value) => this.#go({ truth: value }));
    const towards = this.#param("word") ? choice("which pushes to", [["", "the decision"], ...labels], this.#param("to"), (to) => this.#go({ to })) : null;
    const sort = choice("Sort by", [["", "their order"], ["unsure", "least sure first"], ["sure", "surest first"], ...(this.#param("word") ? [/** @type {[string, string]} */ (["word", "the word's contribution"])] : [])], this.#param("sort"), (value) => this.#go({ sort: value }));
    fill(this.#controls, search, word, towards, shows, truth, predicted, sort,
      this.app.params.size > 0 && h("button", { type: "button", "data-key": "clear", onclick: () => this.app.go("corpus") }, "clear"));
  }

  /**
   * @param {string} label
   * @param {string} name
   */
  #input(label, name) {
    const later = debounced(() => this.#go({ [name]: input.value.trim() }), 250);
    const input = h("input", { type: "search", value: this.#param(name), "data-key": label, dir: "auto", oninput: later });
    return h("label", { class: "field" }, h("span", null, label), input);
  }

  /** @param {Codes} codes */
  #chosen(codes) {
    const query = this.#param("query").toLocaleLowerCase();
    const word = codes.placeOf.get(this.#param("word"));
    const asked = { show: this.#param("show"), truth: this.#param("truth"), predicted: this.#param("predicted") };
    const changed = new Set(asked.show === "changed" ? changedTexts(codes) : []);
    const candidates = this.#param("word") === "" ? Array.from({ length: codes.count }, (_, i) => i)
      : word === undefined ? [] : [...new Set(codes.textsWith(word))].sort((a, b) => a - b);
    const found = candidates.filter((i) => {
      const decided = codes.decisions.predicted[i];
      const isRight = codes.truth?.[i] === decided;
      if (query && !(codes.texts[i] ?? "").toLocaleLowerCase().includes(query)) return false;
      if (asked.show === "changed" && !changed.has(i)) return false;
      if (codes.truth && asked.show === "wrong" && isRight) return false;
      if (asked.show === "right" && !isRight) return false;
      if (asked.truth && String(codes.truth?.[i]) !== asked.truth) return false;
      return !asked.predicted || String(decided) === asked.predicted;
    });
    return this.#sorted(codes, found, word);
  }

  /**
   * @param {Codes} codes
   * @param {number[]} found
   * @param {number | undefined} word
   */
  #sorted(codes, found, word) {
    const pushed = (/** @type {number} */ i) => this.#pushOf(codes, i, word);
    const kept = word !== undefined && this.#param("to") ? found.filter((i) => pushed(i) > 0) : found;
    const sort = this.#param("sort");
    if (!sort) return kept;
    const sure = (/** @type {number} */ i) => Math.max(...probabilities(codes.logits(i), codes.temperature));
    const keys = new Map(kept.map((i) => [i, sort === "word" ? -pushed(i) : sort === "sure" ? -sure(i) : sure(i)]));
    return kept.sort((a, b) => Number(keys.get(a)) - Number(keys.get(b)));
  }

  /**
   * What the word of the filter contributes to a text's decision, or to the label that was asked for.
   * @param {Codes} codes
   * @param {number} i
   * @param {number | undefined} word
   */
  #pushOf(codes, i, word) {
    if (word === undefined) return 0;
    const target = this.#param("to") === "" ? Number(codes.decisions.predicted[i]) : Number(this.#param("to"));
    return Number(codes.entryOf(i, word)?.parts[target] ?? 0);
  }

  /** @param {Codes} codes */
  #drawFound(codes) {
    const figures = summary(codes);
    const found = this.#chosen(codes);
    const pages = Math.ceil(found.length / AT_ONCE);
    this.#page = Math.min(this.#page, Math.max(0, pages - 1));
    fill(this.#matrix, codes.truth && h("details", { class: "fold", open: this.app.params.size === 0 || this.#param("truth") !== "" },
      h("summary", null, "Confusion matrix"), confusionTable(figures, codes.labels, (truth, predicted) => this.#go({ truth: String(truth), predicted: String(predicted) }))));
    const rows = found.slice(this.#page * AT_ONCE, (this.#page + 1) * AT_ONCE).map((i) => this.#row(codes, i));
    fill(this.#found,
      this.#responsible(codes, found),
      h("p", { class: "quiet", role: "status" }, `${counted(found.length, "text")}${found.length === codes.count ? "" : ` of ${codes.count.toLocaleString("en")}`}`),
      h("table", { class: "texts" },
        h("caption", { class: "hidden" }, "Texts with their decisions"),
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "text"), h("th", { scope: "col" }, "decided"), codes.truth && h("th", { scope: "col" }, "labelled"))),
        h("tbody", null, rows)),
      pager(this.#page, pages, (page) => {
        this.#page = page;
        this.#drawFound(codes);
        this.#found.scrollIntoView();
      }));
  }

  /**
   * @param {Codes} codes
   * @param {number} i
   */
  #row(codes, i) {
    const logits = codes.logits(i);
    const decided = argmax(logits);
    const truth = codes.truth?.[i];
    const before = Number(codes.original.predicted[i]);
    const word = codes.placeOf.get(this.#param("word"));
    return h("tr", null,
      h("td", null, tintedText(codes.texts[i] ?? "", codes.entries(i), { target: decided, contrast: null }),
        h("a", { href: `#/read?text=${i}` }, "take apart", h("span", { class: "hidden" }, ` text ${i + 1}`)),
        word !== undefined && h("span", { class: "quiet" }, ` ${this.#param("word")} ${signed(this.#pushOf(codes, i, word))}`)),
      h("td", null, h("span", { dir: "auto" }, codes.labels[decided]), " ", h("span", { class: "quiet number" }, percent(probabilities(logits, codes.temperature)[decided])), before !== decided && h("span", { class: "quiet block" }, `was ${codes.labels[before]}`)),
      codes.truth && h("td", { class: truth === decided ? "quiet" : "is-wrong" }, truth === decided ? "✓ " : "✗ ", codes.labels[Number(truth)]));
  }

  /**
   * Of a cell of the matrix, the words that push its texts from the true label to the one decided on.
   * @param {Codes} codes
   * @param {number[]} found
   */
  #responsible(codes, found) {
    const [truth, predicted] = [this.#param("truth"), this.#param("predicted")];
    if (!truth || !predicted || truth === predicted || !found.length) return null;
    /** @type {Map<string, {value: number, texts: number}>} */
    const sums = new Map();
    for (const i of found) {
      for (const entry of codes.entries(i)) {
        const own = sums.get(entry.name) ?? { value: 0, texts: 0 };
        own.value += Number(entry.parts[Number(predicted)]) - Number(entry.parts[Number(truth)]);
        own.texts += 1;
        sums.set(entry.name, own);
      }
    }
    const words = [...sums].map(([name, { value, texts }]) => ({ name, value, remark: counted(texts, "text") })).filter(({ value }) => value > 0);
    words.sort((a, b) => b.value - a.value);
    return h("section", { "aria-labelledby": "responsible" },
      h("h2", { id: "responsible" }, `Words that push from “${codes.labels[Number(truth)]}” to “${codes.labels[Number(predicted)]}”`),
      h("p", { class: "quiet" }, "Their contributions to one minus the other, summed over these texts."),
      wordBars(this.app, words.slice(0, RESPONSIBLE)));
  }
}
