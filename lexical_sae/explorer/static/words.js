/** The table of words: search and sort it, look at a word, change it, and see what that does to every text. */

import { counted, debounced, fill, h, percent, signed } from "./dom.js";
import { greatest } from "./figures.js";
import { View, choice, pager } from "./parts.js";
import { shiftBy, tintedText } from "./text.js";
import { effect } from "./effect.js";

/** @typedef {import("./figures.js").Codes} Codes */

const AT_ONCE = 50;
const SHOWN_TEXTS = 8;
const FEW_LABELS = 4;

export class Words extends View {
  #list = h("div");
  #detail = h("div", { class: "detail" });
  #page = 0;
  #asked = "";
  /** @type {{name: string, word: number, texts: number, weights: Float64Array, size: number}[]} */
  #sorted = [];

  draw() {
    const { codes } = this.app;
    if (!codes) {
      fill(this, h("h1", null, "Words"), h("p", null, "There are no texts here. Start the service with ", h("code", null, "--data texts.csv"), "."));
      return;
    }
    this.#page = 0;
    const search = h("input", { type: "search", value: this.#param("find"), "data-key": "find", dir: "auto", oninput: debounced(() => this.app.go("words", { ...Object.fromEntries(this.app.params), find: search.value.trim() }), 200) });
    const labels = codes.labels.map((label, c) => /** @type {[string, string]} */ ([String(c), `weight for ${label}`]));
    const controls = h("div", { class: "controls" },
      h("label", { class: "field" }, h("span", null, "Find a word"), search),
      choice("Sort by", [["", "carried weight"], ["texts", "texts"], ["name", "alphabet"], ...labels], this.#param("sort"), (sort) => this.app.go("words", { ...Object.fromEntries(this.app.params), sort })));
    fill(this, h("h1", null, "Words"),
      h("p", { class: "quiet" }, codes.isTable ? "A weight is what the word contributes to a class in a text of sixteen tokens, without context. Carried weight: weight times texts." : "Mean contributions where the word is active. This model has a hidden layer, so weights are not a table, and cannot be edited here."),
      h("div", { class: "side words-side" }, h("section", { "aria-label": "All words" }, controls, this.#list), this.#detail));
    this.#drawList(codes);
    this.#drawDetail(codes);
    if (this.#param("word") && matchMedia("(max-width: 60rem)").matches) this.#detail.scrollIntoView();
  }

  update() {
    if (!this.app.codes) return;
    this.#drawList(this.app.codes);
    this.#drawDetail(this.app.codes);
  }

  /** @param {string} name */
  #param(name) {
    return this.app.params.get(name) ?? "";
  }

  /**
   * The rows as they are sorted; kept while neither the question nor a weight changes.
   * @param {Codes} codes
   */
  #rows(codes) {
    const asked = JSON.stringify([this.#param("find"), this.#param("sort"), this.app.edit.weights, this.app.chosen]);
    if (asked !== this.#asked) {
      this.#asked = asked;
      this.#sorted = this.#sort(codes);
    }
    return this.#sorted;
  }

  /** @param {Codes} codes */
  #sort(codes) {
    const find = this.#param("find").toLocaleLowerCase();
    const rows = codes.names.map((name, word) => {
      const weights = codes.weights(word);
      return { name, word, texts: codes.textsWith(word).length, weights, size: greatest(weights) };
    });
    const found = rows.filter(({ name, size }) => (find ? name.toLocaleLowerCase().includes(find) : size > 0));
    const sort = this.#param("sort");
    if (sort === "name") return found.sort((a, b) => a.name.localeCompare(b.name));
    if (sort === "texts") return found.sort((a, b) => b.texts - a.texts);
    if (sort !== "") return found.sort((a, b) => Number(b.weights[Number(sort)]) - Number(a.weights[Number(sort)]));
    return found.sort((a, b) => b.size * b.texts - a.size * a.texts || b.size - a.size);
  }

  /** @param {Codes} codes */
  #drawList(codes) {
    const rows = this.#rows(codes);
    const pages = Math.ceil(rows.length / AT_ONCE);
    const isWide = codes.labels.length <= FEW_LABELS;
    // Of two classes one weight is the negative of the other.
    const shown = codes.labels.length === 2 ? [1] : codes.labels.map((_, c) => c);
    const strongest = rows.reduce((most, row) => Math.max(most, row.size), 1e-9);
    const cellOf = (/** @type {number} */ value, /** @type {string} */ note = "") => h("td", { class: "number weight" },
      h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: `bar ${value > 0 ? "for" : "against"}`, style: { width: `${(100 * Math.abs(value)) / strongest}%` } })), signed(value), note && h("span", { class: "quiet block", dir: "auto" }, note));
    const line = (/** @type {(typeof rows)[number]} */ row) => {
      const best = Array.from(row.weights).reduce((most, value, c) => (Math.abs(value) > Math.abs(Number(row.weights[most])) ? c : most), 0);
      const isChosen = this.#param("word") === row.name;
      const change = this.app.isSuppressed(row.name) ? "suppressed" : this.app.edit.weights[row.name] ? "changed" : "";
      return h("tr", { class: `${isChosen ? "chosen" : ""} ${change === "suppressed" ? "gone" : ""}` },
        h("th", { scope: "row" }, h("a", { dir: "auto", "data-key": `row ${row.name}`, "aria-current": isChosen ? "true" : null, href: `#/words?${new URLSearchParams({ ...Object.fromEntries(this.app.params), word: row.name })}` }, row.name), change && h("span", { class: "note" }, change)),
        isWide ? shown.map((c) => cellOf(Number(row.weights[c]))) : cellOf(Number(row.weights[best]), codes.labels[best] ?? ""),
        h("td", { class: "number" }, row.texts.toLocaleString("en")));
    };
    fill(this.#list,
      h("p", { class: "quiet", role: "status" }, counted(rows.length, "word")),
      h("table", { class: "lexicon" },
        h("caption", { class: "hidden" }, "Words with their weights"),
        h("thead", null, h("tr", null, h("th", { scope: "col" }, "word"), isWide ? shown.map((c) => h("th", { scope: "col", class: "number" }, codes.labels[c])) : h("th", { scope: "col", class: "number" }, "strongest weight"), h("th", { scope: "col", class: "number" }, "texts"))),
        h("tbody", null, rows.slice(this.#page * AT_ONCE, (this.#page + 1) * AT_ONCE).map(line))),
      pager(this.#page, pages, (page) => {
        this.#page = page;
        this.#drawList(codes);
      }));
  }

  /** @param {Codes} codes */
  #drawDetail(codes) {
    const name = this.#param("word");
    const word = codes.placeOf.get(name);
    if (word === undefined) {
      fill(this.#detail, h("p", { class: "quiet" }, "Choose a word to see where it matters", codes.isTable ? ", and to suppress it or change its weight." : "."), effect(this.app, codes));
      return;
    }
    const forms = this.app.forms(name);
    const isGone = this.app.isSuppressed(name) || (codes.isTable && /** @type {any} */ (codes).ownSuppressed.has(word));
    fill(this.#detail,
      h("h2", { dir: "auto" }, name),
      forms.length > 1 && h("p", { class: "quiet", dir: "auto" }, `Suppressed together: ${forms.join(", ")}`),
      codes.isTable && h("div", { class: "row" }, h("button", { type: "button", class: "strong", "data-key": "suppress", "aria-pressed": String(isGone), onclick: () => this.app.toggle(name) }, isGone ? "restore" : "suppress"), h("a", { href: `#/corpus?${new URLSearchParams({ word: name, sort: "word" })}` }, "its texts")),
      codes.isTable && !isGone && this.#weights(codes, name, word),
      effect(this.app, codes),
      this.#places(codes, name, word));
  }

  /**
   * @param {Codes} codes
   * @param {string} name
   * @param {number} word
   */
  #weights(codes, name, word) {
    const own = codes.weights(word);
    const given = this.app.edit.weights[name] ?? {};
    const order = codes.labels.map((_, c) => c).sort((a, b) => Math.abs(Number(own[b])) - Math.abs(Number(own[a])));
    const shown = codes.labels.length === 2 ? [1] : order.slice(0, 8).sort((a, b) => a - b);
    const field = (/** @type {number} */ c) => {
      const label = codes.labels[c] ?? "";
      const input = h("input", { type: "number", step: "0.1", value: Number(own[c]).toFixed(2), "data-key": `weight ${label}`, onchange: () => {
        const value = input.valueAsNumber;
        if (Number.isFinite(value)) this.app.weigh(name, label, value);
      } });
      return h("label", { class: "field" }, h("span", { dir: "auto" }, `Weight for ${label}`, given[label] !== undefined && ` (was ${signed(Number(codes.written(name)[c]))})`), input);
    };
    return h("div", { class: "row" }, shown.map(field), Object.keys(given).length > 0 && h("button", { type: "button", "data-key": "take back", onclick: () => this.app.takeBack(name) }, "take back"));
  }

  /**
   * Where a word matters, and what context makes of it.
   * @param {Codes} codes
   * @param {string} name
   * @param {number} word
   */
  #places(codes, name, word) {
    const uses = codes.usesOf(word);
    const counts = { reversed: 0, stronger: 0, weaker: 0 };
    const labelled = codes.labels.map(() => 0);
    let shifted = 0;
    for (const { text, factor } of uses) {
      const shift = shiftBy(factor);
      if (shift) counts[shift] += 1;
      shifted += shift ? 1 : 0;
      const truth = codes.truth?.[text];
      if (truth !== undefined) labelled[truth] = Number(labelled[truth]) + 1;
    }
    const told = Object.entries(counts).filter(([, count]) => count).map(([kind, count]) => `${kind} in ${count}`);
    const labels = codes.labels.map((label, c) => ({ label, count: Number(labelled[c]) })).filter(({ count }) => count).sort((a, b) => b.count - a.count).slice(0, 4);
    uses.sort((a, b) => b.size - a.size);
    return h("div", null,
      h("p", null, `In ${counted(uses.length, "text")}${labels.length ? `: ${labels.map(({ label, count }) => `${count} ${label}`).join(", ")}` : ""}. `,
        codes.hasContext && uses.length > 0 && (told.length ? `By context it is ${told.join(", ")}; at its default in ${percent(1 - shifted / uses.length)}.` : "Context shifts it in none.")),
      h("ul", { class: "found" }, uses.slice(0, SHOWN_TEXTS).map(({ text: i }) => h("li", null,
        tintedText(codes.texts[i] ?? "", codes.entries(i), { target: Number(codes.decisions.predicted[i]), contrast: null }),
        h("a", { href: `#/read?text=${i}` }, String(codes.labels[Number(codes.decisions.predicted[i])]), h("span", { class: "hidden" }, `: take text ${i + 1} apart`))))));
  }
}
