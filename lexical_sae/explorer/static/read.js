/** One text: its words, what they add up to, and what happens without them. */

import { counted, debounced, fill, h, percent, save, signed } from "./dom.js";
import { argmax, probabilities, smallestFlip, towards } from "./figures.js";
import { View, announce, choice, labelBars } from "./parts.js";
import { asJson, saveImage, sentence } from "./share.js";
import { addressOf, codesOf } from "./store.js";
import { shiftOf, stepsOf, tintedText, waterfall } from "./text.js";

/** @typedef {import("./table.js").Entry} Entry */
/** @typedef {import("./figures.js").Codes} Codes */
/** @typedef {import("./text.js").Question} Question */

const TOP = 12;
const PAUSE = 150;

export class Read extends View {
  #box = h("div");
  #choose = h("div");
  #result = h("div", { class: "result" });
  #about = h("div", { class: "about", "aria-live": "polite" });
  /** @type {string | null} */
  #looked = null;
  #all = false;
  /** @type {Map<string, string>} By word, what shifts it: measured by the service. */
  #causes = new Map();
  #asking = new AbortController();
  #written = "";

  /** Which texts are read from: the one that was typed, or those of the page. */
  get #source() {
    const { app } = this;
    if (app.typed) return { codes: app.typed, text: 0 };
    if (!app.codes || !app.codes.count) return null;
    return { codes: app.codes, text: Math.min(app.codes.count - 1, Math.max(0, Number(app.params.get("text") ?? 0) || 0)) };
  }

  draw() {
    fill(this, h("h1", null, "Read"), this.#box, this.#result);
    const written = this.app.params.get("write");
    this.#written = written ?? this.#written;
    if (this.app.params.has("text")) this.app.read(null);
    this.#drawBox();
    this.#drawResult();
    if (this.app.service && written !== null) void this.#ask();
  }

  update() {
    this.#drawResult();
  }

  #drawBox() {
    const { app } = this;
    const shown = app.typed || app.params.has("write") ? this.#written : (this.#source?.codes.texts[this.#source.text] ?? "");
    if (!app.service) {
      fill(this.#box, this.#choose, h("p", { class: "quiet" }, "This page stands alone, and holds the texts that it was made with. To type your own: ", h("code", null, `lexical-sae serve ${app.model.address}`)));
      return;
    }
    const later = debounced(() => void this.#ask(), PAUSE);
    const area = h("textarea", { id: "text", rows: 3, dir: "auto", spellcheck: "false", "data-key": "text", value: shown, oninput: () => {
      this.#written = area.value;
      later();
    } });
    fill(this.#box, h("label", { class: "field wide" }, h("span", null, "Type or paste a text"), area), this.#choose);
  }

  #chooser() {
    const { app } = this;
    const codes = app.codes;
    if (!codes || !codes.count) return null;
    const at = app.typed ? -1 : (this.#source?.text ?? 0);
    const to = (/** @type {number} */ text) => app.go("read", { text: (text + codes.count) % codes.count });
    return h("div", { class: "row" },
      h("button", { type: "button", "data-key": "before", onclick: () => to(at - 1) }, "← previous"),
      h("span", { class: "quiet" }, at < 0 ? counted(codes.count, "text") : `text ${at + 1} of ${codes.count.toLocaleString("en")}`),
      h("button", { type: "button", "data-key": "after", onclick: () => to(at + 1) }, "next →"),
      h("button", { type: "button", "data-key": "any", onclick: () => to(Math.floor(Math.random() * codes.count)) }, "any"),
      h("a", { href: "#/corpus" }, "find one in the corpus"));
  }

  /** Have the service read what was typed; only the last question counts. */
  async #ask() {
    const { service } = this.app;
    this.#asking.abort();
    this.#asking = new AbortController();
    const { signal } = this.#asking;
    const text = this.#written;
    if (!service || !text.trim()) return;
    try {
      const codes = codesOf(await service.codes(text, signal));
      this.#causes = new Map();
      this.app.read(codes);
      const why = await service.explain(text, signal);
      this.#causes = new Map(why.words.filter((/** @type {any} */ word) => word.cause).map((/** @type {any} */ word) => [word.word, word.cause.word]));
      fill(this.#warnings, [...why.warnings.map((/** @type {any} */ one) => h("p", { class: "caution" }, one.message))]);
      this.#drawResult();
    } catch (error) {
      if (signal.aborted) return;
      fill(this.#warnings, h("p", { class: "caution", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  }

  #warnings = h("div");

  #drawResult() {
    fill(this.#choose, this.#chooser());
    const source = this.#source;
    if (!source) {
      fill(this.#result, this.#warnings, h("p", { class: "quiet" }, "Nothing is read yet."));
      return;
    }
    const { codes, text } = source;
    const logits = codes.logits(text);
    const decided = argmax(logits);
    const question = this.#question(codes, decided);
    const entries = codes.entries(text);
    const bias = towards(codes.biasOf(text), question.target, question.contrast);
    const { steps, total } = stepsOf(entries, bias, question, this.#all ? Infinity : TOP);
    const act = (/** @type {Entry} */ entry) => {
      this.#looked = entry.name;
      this.app.toggle(entry.name);
      const now = Number(probabilities(codes.logits(text), codes.temperature)[question.target]);
      announce(`${entry.name} ${this.app.isSuppressed(entry.name) ? "suppressed" : "restored"}: ${codes.labels[question.target]} ${percent(now, 1)}`);
    };
    const look = (/** @type {Entry} */ entry) => {
      this.#looked = entry.name;
      this.#drawAbout(codes, text, question);
    };
    const truth = codes.truth?.[text];
    const caption = question.contrast === null ? `What adds up to “${codes.labels[question.target]}”` : `Why “${codes.labels[question.target]}” and not “${codes.labels[question.contrast]}”`;
    fill(this.#result,
      this.#warnings,
      h("div", { class: "side" },
        h("section", { "aria-label": "The text" },
          tintedText(codes.texts[text] ?? "", entries, question, codes.isTable ? { act, look } : {}),
          Number(codes.tokensCut[text]) > 0 && h("p", { class: "caution" }, `${codes.tokensCut[text]} tokens at the end were not read.`),
          h("p", { class: "quiet" }, codes.isTable ? "Choose a word to suppress it, everywhere; choose it again to restore it." : "This model has a hidden layer: what is left when a word goes is not a sum, so nothing is suppressed here. Contributions are those that the library computed."),
          this.#about,
          truth !== undefined && h("p", { class: truth === decided ? "quiet" : "caution" }, truth === decided ? "✓ as labelled" : `✗ labelled ${codes.labels[truth]}`),
          labelBars(codes, text),
          codes.isTable && this.#flips(entries, logits, codes, decided, question)),
        h("section", { "aria-label": "The sum" },
          this.#questions(codes, question, decided),
          waterfall(steps, total, question, { caption, causes: this.#causes, look }),
          entries.length > TOP && h("button", { type: "button", "data-key": "all", onclick: () => {
            this.#all = !this.#all;
            this.#drawResult();
          } }, this.#all ? "strongest words only" : "all words"),
          this.#causes.size > 0 && h("p", { class: "quiet" }, "Causes are measured, not proved: without that word, most of the shift is gone."),
          this.#sharing(codes, text, question, steps, total, decided))));
    this.#drawAbout(codes, text, question);
  }

  /**
   * @param {Codes} codes
   * @param {number} decided
   * @returns {Question}
   */
  #question(codes, decided) {
    const at = (/** @type {string} */ name) => {
      const place = codes.labels.indexOf(this.app.params.get(name) ?? "");
      return place < 0 ? null : place;
    };
    const target = at("why") ?? decided;
    const contrast = at("not");
    return { target, contrast: contrast === target ? null : contrast };
  }

  /**
   * @param {Codes} codes
   * @param {Question} question
   * @param {number} decided
   */
  #questions(codes, question, decided) {
    const go = (/** @type {Record<string, string>} */ change) => this.app.go("read", { ...Object.fromEntries(this.app.params), ...change });
    const labels = codes.labels.map((label) => /** @type {[string, string]} */ ([label, label]));
    const why = choice("Why", [["", `${codes.labels[decided]} (decided)`], ...labels.filter(([label]) => label !== codes.labels[decided])], this.app.params.get("why") ?? "", (value) => go({ why: value }));
    const others = labels.filter(([label]) => label !== codes.labels[question.target]);
    const not = choice("and not", [["", "any other"], ...others], question.contrast === null ? "" : (codes.labels[question.contrast] ?? ""), (value) => go({ not: value }));
    return h("div", { class: "row" }, why, not);
  }

  /**
   * @param {Entry[]} entries
   * @param {ArrayLike<number>} logits
   * @param {Codes} codes
   * @param {number} decided
   * @param {Question} question
   */
  #flips(entries, logits, codes, decided, question) {
    const past = question.contrast ?? (question.target === decided ? null : question.target);
    const flip = smallestFlip(entries, logits, past === decided ? null : past);
    if (!flip) return h("p", { class: "flip" }, h("strong", null, "Smallest change: "), "no set of words changes this decision when it is removed. ", h("span", { class: "quiet" }, "Proved: a table has no interactions."));
    const names = flip.words.map((entry) => entry.name);
    const button = h("button", { type: "button", "data-key": "flip", onclick: () => names.forEach((name) => !this.app.isSuppressed(name) && this.app.toggle(name)) }, `suppress ${names.length === 1 ? "it" : "them"}`);
    const told = past === null || past === decided ? `and the decision is “${codes.labels[flip.label]}”` : `and “${codes.labels[flip.label]}” passes “${codes.labels[decided]}”`;
    return h("p", { class: "flip" }, h("strong", null, "Smallest change: "), "without ", names.map((name, i) => [i ? ", " : "", h("em", { dir: "auto" }, name)]).flat(), ` ${told}. `, button, " ",
      h("span", { class: "quiet" }, "Proved: words of a table do not interact, so no smaller set does."));
  }

  /**
   * @param {Codes} codes
   * @param {number} text
   * @param {Question} question
   */
  #drawAbout(codes, text, question) {
    const entries = codes.entries(text);
    const weight = (/** @type {Entry} */ one) => Math.abs(towards(one.unsuppressed, question.target, question.contrast));
    const strongest = entries.reduce((/** @type {Entry | undefined} */ best, one) => (best && weight(best) >= weight(one) ? best : one), undefined);
    const entry = entries.find((one) => one.name === this.#looked) ?? strongest;
    if (!entry) {
      fill(this.#about);
      return;
    }
    const C = codes.labels.length;
    const worth = towards(entry.unsuppressed, question.target, question.contrast);
    const forms = this.app.forms(entry.name);
    const gone = entries.filter((one) => forms.includes(one.name) && !one.isSuppressed);
    const left = Float64Array.from({ length: C }, (_, c) => Number(codes.logits(text)[c]) - gone.reduce((sum, one) => sum + Number(one.parts[c]), 0));
    const now = Number(probabilities(codes.logits(text), codes.temperature)[question.target]);
    const after = Number(probabilities(left, codes.temperature)[question.target]);
    const shift = shiftOf(entry);
    const fixed = entry.defaults && towards(entry.defaults, question.target, question.contrast);
    const label = codes.labels[question.target];
    fill(this.#about,
      h("p", null, h("strong", { dir: "auto" }, entry.name), ` ${signed(worth)} `,
        fixed !== null && h("span", { class: "quiet" }, `= default ${signed(fixed)}${shift ? `, context ${signed(worth - fixed)} (${shift}${this.#causes.has(entry.name) ? ` by “${this.#causes.get(entry.name)}”` : ""})` : ", not shifted"}`),
        entry.places.length > 1 && h("span", { class: "quiet" }, `, ${entry.places.length} times`)),
      codes.isTable && h("p", null, entry.isSuppressed ? "Suppressed: it contributes nothing, here and in every text." : `Without it: ${label} ${percent(now, 1)} → ${percent(after, 1)}${argmax(left) === argmax(codes.logits(text)) ? "" : `, decided ${codes.labels[argmax(left)]}`}.`, forms.length > 1 && h("span", { class: "quiet" }, ` Its forms go with it: ${forms.join(", ")}.`)),
      this.app.codes?.placeOf.has(entry.name) && h("p", null, h("a", { href: addressOf("words", { word: entry.name }) }, "its page")));
  }

  /**
   * @param {Codes} codes
   * @param {number} text
   * @param {Question} question
   * @param {import("./text.js").Step[]} steps
   * @param {number} total
   * @param {number} decided
   */
  #sharing(codes, text, question, steps, total, decided) {
    const copy = async (/** @type {string} */ what, /** @type {string} */ content) => {
      try {
        await navigator.clipboard.writeText(content);
        announce(`${what} copied`);
      } catch {
        save(`decision.${what === "JSON" ? "json" : "txt"}`, new Blob([content], { type: "text/plain" }));
      }
    };
    const told = sentence(codes, text, question, steps, total, decided);
    const edit = this.app.edit.suppressed.length + Object.keys(this.app.edit.weights).length ? JSON.stringify(this.app.edit) : null;
    const address = () => new URL(addressOf("read", { ...(this.app.typed ? { write: this.#written } : { text }), why: this.app.params.get("why"), not: this.app.params.get("not"), edit }), location.href).href;
    const button = (/** @type {string} */ name, /** @type {() => void} */ onclick) => h("button", { type: "button", "data-key": name, onclick }, name);
    return h("details", { class: "share" }, h("summary", null, "Take it along"),
      h("p", { class: "told", dir: "auto" }, told),
      h("div", { class: "row" },
        button("copy sentence", () => void copy("sentence", told)),
        button("copy JSON", () => void copy("JSON", asJson(codes, text, question, this.app.edit))),
        button("save image", () => saveImage(`${codes.labels[decided]}: ${(codes.texts[text] ?? "").slice(0, 80)}`, steps, total)),
        button("copy link", () => void copy("link", address()))),
      h("p", { class: "quiet" }, "The text is in the part of the link after #, which browsers send to nobody."));
  }
}
