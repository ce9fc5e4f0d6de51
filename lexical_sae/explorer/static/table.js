/**
 * Decisions of a table of words, from words that the encoder has read once: the arithmetic of the model itself.
 *
 * A word's activation is `sqrt(16 / tokens)`, times the mean over its occurrences of 1 + the change by context, where
 * that moves its weight by at least `least`. Contribution = activation * weight, class-centred; contributions and bias
 * sum to the logit. So a suppressed word or a new weight needs no encoder. Comparisons that decide whether context acts
 * are made in single precision, as in the library, so that both decide alike.
 */

import { rounded } from "./edits.js";
import { centred, greatest } from "./figures.js";
import { Entries } from "./entries.js";
import { unpacked } from "./packing.js";

/** @typedef {import("./edits.js").Edit} Edit */

/**
 * @typedef {object} Entry A word of a text.
 * @property {number} word
 * @property {string} name
 * @property {ReadonlyArray<readonly [number, number]>} places Start and length of each occurrence, in code points.
 * @property {Float64Array} parts Contribution to each class; zero where it is suppressed.
 * @property {Float64Array} unsuppressed The same, were it not.
 * @property {Float64Array | null} defaults Without context; null for models without context or defaults.
 * @property {number} factor What context multiplies the default by, 1 where it does nothing.
 * @property {boolean} isSuppressed
 */

/**
 * @typedef {object} Use A text with a word.
 * @property {number} text
 * @property {number} factor What context multiplies the default by there.
 * @property {number} size Its greatest |contribution| to a class, were it not suppressed.
 */

/**
 * @typedef {object} Decisions
 * @property {Float64Array} logits Class-centred, text by text.
 * @property {Uint16Array} predicted
 */

const USUAL_TOKENS = 16;

/** A table with the words of some texts. */
export class TableCodes {
  /** @param {any} data What `corpus_payload` makes of a model with literal words. */
  constructor(data) {
    this.isTable = true;
    /** @type {string[]} */
    this.labels = data.labels;
    this.temperature = Number(data.temperature);
    this.leftOut = Number(data.left_out);
    /** @type {string[]} */
    this.names = data.words.names;
    /** @type {string[]} */
    this.texts = data.texts.text;
    /** @type {number[] | null} */
    this.truth = data.label;
    /** Texts that mention an identity, by its name. */
    this.groups = Object.entries(data.groups ?? {}).map(([name, rows]) => ({ name, rows: unpacked(/** @type {any} */ (rows)) }));
    /** @type {number[]} */
    this.bias = data.bias;
    this.context = data.context;
    /** @type {Map<string, number>} */
    this.placeOf = new Map(this.names.map((name, i) => [name, i]));
    /** @type {Record<string, number[]>} */
    this.formsOf = data.words.forms;
    this.ownSuppressed = new Set(/** @type {number[]} */ (data.words.suppressed));
    this.tokens = unpacked(data.texts.tokens);
    this.tokensCut = unpacked(data.texts.tokens_cut);
    this.start = unpacked(data.texts.start);
    this.length = unpacked(data.texts.length);
    this.change = unpacked(data.texts.change);
    this.ownRows = centred(unpacked(data.words.rows), this.labels.length);
    this.ownSizes = unpacked(data.words.sizes);
    this.index = new Entries(unpacked(data.texts.count), unpacked(data.texts.word), this.names.length);
    this.rows = this.ownRows;
    this.sizes = this.ownSizes;
    this.ownActivations = this.#activations();
    this.activations = this.ownActivations;
    this.closed = this.#closedBy([]);
    this.original = this.#decideAll();
    /** @type {Decisions} */
    this.decisions = this.original;
  }

  get count() {
    return this.texts.length;
  }

  /** Whether context may shift words here. */
  get hasContext() {
    return this.context !== null;
  }

  /**
   * The texts that have a word.
   * @param {number} word
   */
  textsWith(word) {
    return this.index.textsOf(word);
  }

  /**
   * Where a word is used, and what context makes of it there.
   * @param {number} word
   * @returns {Use[]}
   */
  usesOf(word) {
    const weight = greatest(this.weights(word));
    const entries = this.index.entriesOf(word);
    return Array.from(this.textsWith(word), (text, i) => {
      const factor = this.#factor(Number(entries[i]), word);
      return { text, factor, size: this.#usual(text) * Math.abs(factor) * weight };
    });
  }

  /**
   * The word and its forms among those of the page: they are suppressed together.
   * @param {string} name
   * @returns {string[]}
   */
  forms(name) {
    const place = this.placeOf.get(name);
    const own = place === undefined ? undefined : this.formsOf[String(place)];
    return own ? own.map((i) => this.names[i] ?? "") : [name];
  }

  /** @param {ReadonlyArray<string>} chosen */
  #closedBy(chosen) {
    const closed = new Uint8Array(this.names.length);
    for (const word of this.ownSuppressed) closed[word] = 1;
    for (const name of chosen) {
      for (const form of this.forms(name)) {
        const place = this.placeOf.get(form);
        if (place !== undefined) closed[place] = 1;
      }
    }
    return closed;
  }

  /**
   * The weights of a word as its table writes them, class-centred.
   * @param {string} name
   * @returns {number[]}
   */
  written(name) {
    const place = this.placeOf.get(name);
    const C = this.labels.length;
    if (place === undefined) return this.labels.map(() => 0);
    return Array.from(this.ownRows.subarray(place * C, place * C + C), rounded);
  }

  /**
   * The weights of a word now.
   * @param {number} word
   */
  weights(word) {
    const C = this.labels.length;
    return this.rows.subarray(word * C, word * C + C);
  }

  /**
   * Decide again with an edit in force; only texts with a word that it touches are decided anew.
   * @param {Edit} edit
   */
  apply(edit) {
    const before = this.#closedBy([]);
    this.closed = this.#closedBy(edit.suppressed);
    this.rows = this.ownRows;
    this.sizes = this.ownSizes;
    this.activations = this.ownActivations;
    const touched = new Set();
    for (let word = 0; word < before.length; word++) if (before[word] !== this.closed[word]) touched.add(word);
    const given = Object.entries(edit.weights).filter(([name]) => this.placeOf.has(name));
    if (given.length) this.#weigh(given).forEach((word) => touched.add(word));
    const isTouched = new Uint8Array(this.count);
    for (const word of touched) for (const text of this.textsWith(word)) isTouched[text] = 1;
    this.decisions = { logits: this.original.logits.slice(), predicted: this.original.predicted.slice() };
    for (let text = 0; text < this.count; text++) if (isTouched[text]) this.#decide(text, this.decisions);
    return this.decisions;
  }

  /**
   * Put new weights into rows, sizes and activations; the words that have them.
   * @param {[string, Readonly<Record<string, number>>][]} given
   */
  #weigh(given) {
    const C = this.labels.length;
    this.rows = this.ownRows.slice();
    const sizes = Float32Array.from(this.ownSizes);
    this.sizes = sizes;
    this.activations = this.ownActivations.slice();
    return given.map(([name, weights]) => {
      const word = Number(this.placeOf.get(name));
      const row = this.#edited(name, word, weights);
      this.rows.set(row, word * C);
      sizes[word] = greatest(row);
      const [texts, entries] = [this.index.textsOf(word), this.index.entriesOf(word)];
      for (let i = 0; i < texts.length; i++) {
        this.activations[Number(entries[i])] = this.#usual(Number(texts[i])) * this.#factor(Number(entries[i]), word);
      }
      return word;
    });
  }

  /**
   * A row with new weights: classes that are left as written share the opposite change (`edited_by_table`).
   * @param {string} name
   * @param {number} word
   * @param {Readonly<Record<string, number>>} given
   */
  #edited(name, word, given) {
    const C = this.labels.length;
    const written = this.written(name);
    const asked = written.map((value, c) => given[this.labels[c] ?? ""] ?? value);
    const isSame = asked.map((value, c) => value === written[c]);
    const row = asked.map((value, c) => (isSame[c] ? Number(this.ownRows[word * C + c]) : value));
    const moved = isSame.some(Boolean) ? isSame : isSame.map(() => true);
    const share = row.reduce((sum, value) => sum + value, 0) / moved.filter(Boolean).length;
    return row.map((value, c) => Math.fround(value - (moved[c] ? share : 0)));
  }

  /** @returns {Decisions} */
  #decideAll() {
    const made = { logits: new Float64Array(this.count * this.labels.length), predicted: new Uint16Array(this.count) };
    for (let text = 0; text < this.count; text++) this.#decide(text, made);
    return made;
  }

  /** Of every entry, by the table as it was trained. */
  #activations() {
    const made = new Float64Array(this.index.words.length);
    const { offsets, words } = this.index;
    for (let text = 0; text < this.count; text++) {
      const usual = this.#usual(text);
      for (let e = Number(offsets[text]); e < Number(offsets[text + 1]); e++) made[e] = usual * this.#factor(e, Number(words[e]));
    }
    return made;
  }

  /**
   * The innermost loop of every edit: nothing is allocated here, and nothing is computed that an edit leaves as it is.
   * @param {number} text
   * @param {Decisions} into
   */
  #decide(text, into) {
    const { bias, closed, activations, rows } = this;
    const { offsets, words } = this.index;
    const { logits } = into;
    const C = bias.length;
    const at = text * C;
    for (let c = 0; c < C; c++) logits[at + c] = Number(bias[c]);
    const end = Number(offsets[text + 1]);
    for (let e = Number(offsets[text]); e < end; e++) {
      const word = Number(words[e]);
      if (closed[word]) continue;
      const activation = Number(activations[e]);
      const row = word * C;
      for (let c = 0; c < C; c++) logits[at + c] = Number(logits[at + c]) + activation * Number(rows[row + c]);
    }
    let best = 0;
    for (let c = 1; c < C; c++) if (Number(logits[at + c]) > Number(logits[at + best])) best = c;
    into.predicted[text] = best;
  }

  /** @param {number} text */
  #usual(text) {
    return Math.sqrt(USUAL_TOKENS / Math.max(1, Number(this.tokens[text])));
  }

  /**
   * Mean over the occurrences of an entry of what context multiplies the default by.
   * @param {number} entry
   * @param {number} word
   */
  #factor(entry, word) {
    const { starts, occurrences } = this.index;
    const first = Number(starts[entry]);
    const end = Number(starts[entry + 1]);
    const size = Number(this.sizes[word]);
    if (!this.context || size <= 0 || size < this.context.eligible_from) return 1;
    let sum = 0;
    for (let i = first; i < end; i++) {
      const change = Number(this.change[Number(occurrences[i])]);
      const isMaterial = Math.fround(Math.abs(change) * size) >= this.context.least;
      sum += isMaterial ? Math.fround(1 + change) : 1;
    }
    return sum / (end - first);
  }

  /**
   * The words of a text with what each contributes now.
   * @param {number} text
   * @returns {Entry[]}
   */
  entries(text) {
    const { offsets } = this.index;
    const found = [];
    for (let e = Number(offsets[text]); e < Number(offsets[text + 1]); e++) found.push(this.#entry(text, e));
    return found;
  }

  /**
   * One word of a text; null if it is not there.
   * @param {number} text
   * @param {number} word
   */
  entryOf(text, word) {
    const { offsets, words } = this.index;
    const end = Number(offsets[text + 1]);
    for (let e = Number(offsets[text]); e < end; e++) if (words[e] === word) return this.#entry(text, e);
    return null;
  }

  /**
   * @param {number} text
   * @param {number} e
   * @returns {Entry}
   */
  #entry(text, e) {
    const usual = this.#usual(text);
    const word = Number(this.index.words[e]);
    const factor = this.#factor(e, word);
    const withoutContext = Float64Array.from(this.weights(word), (weight) => usual * weight);
    const unsuppressed = withoutContext.map((value) => value * factor);
    const defaults = this.hasContext ? withoutContext : null;
    const isSuppressed = Boolean(this.closed[word]);
    const places = Array.from(this.index.occurrencesOf(e), (o) => /** @type {[number, number]} */ ([Number(this.start[o]), Number(this.length[o])]));
    const parts = isSuppressed ? new Float64Array(this.labels.length) : unsuppressed;
    return { word, name: this.names[word] ?? "", places, parts, unsuppressed, defaults, factor, isSuppressed };
  }

  /** @param {number} text */
  biasOf(text) {
    void text; // the same for every text
    return this.bias;
  }

  /**
   * Logits of a text, class-centred; `decisions` may be those before the edit.
   * @param {number} text
   * @param {Decisions} [decisions]
   */
  logits(text, decisions = this.decisions) {
    const C = this.labels.length;
    return decisions.logits.subarray(text * C, text * C + C);
  }
}
