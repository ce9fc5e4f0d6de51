/**
 * Texts of a model that is no table, with what the library says each word contributes. Nothing here decides: with a
 * hidden layer, what is left when a word goes is not a sum, and the page does not pretend that it is.
 */

import { NO_EDIT } from "./edits.js";
import { greatest } from "./figures.js";
import { unpacked } from "./packing.js";

/** @typedef {import("./table.js").Entry} Entry */
/** @typedef {import("./table.js").Decisions} Decisions */

/** Contributions as they were computed; the same members as `TableCodes`. */
export class OpaqueCodes {
  /** @param {any} data What `corpus_payload` makes of such a model. */
  constructor(data) {
    this.isTable = false;
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
    this.tokensCut = unpacked(data.texts.tokens_cut);
    this.word = unpacked(data.texts.word);
    this.start = unpacked(data.texts.start);
    this.length = unpacked(data.texts.length);
    this.biases = /** @type {Float32Array} */ (unpacked(data.texts.bias));
    this.contribution = /** @type {Float32Array} */ (unpacked(data.texts.contribution));
    /** @type {Map<string, number>} */
    this.placeOf = new Map(this.names.map((name, i) => [name, i]));
    const counts = unpacked(data.texts.count);
    this.offsets = new Uint32Array(counts.length + 1);
    for (let i = 0; i < counts.length; i++) this.offsets[i + 1] = Number(this.offsets[i]) + Number(counts[i]);
    /** @type {Map<number, number[]>} */
    this.byWord = new Map();
    this.original = this.#decideAll();
    this.means = this.#meanContributions();
    this.decisions = this.original;
  }

  get count() {
    return this.texts.length;
  }

  /** @returns {Decisions} */
  #decideAll() {
    const C = this.labels.length;
    const logits = new Float64Array(this.count * C);
    const predicted = new Uint16Array(this.count);
    for (let text = 0; text < this.count; text++) {
      const own = logits.subarray(text * C, text * C + C);
      own.set(this.biasOf(text));
      for (let e = Number(this.offsets[text]); e < Number(this.offsets[text + 1]); e++) {
        for (let c = 0; c < C; c++) own[c] = Number(own[c]) + Number(this.contribution[e * C + c]);
        const texts = this.byWord.get(Number(this.word[e])) ?? [];
        texts.push(text);
        this.byWord.set(Number(this.word[e]), texts);
      }
      let best = 0;
      for (let c = 1; c < C; c++) if (Number(own[c]) > Number(own[best])) best = c;
      predicted[text] = best;
    }
    return { logits, predicted };
  }

  /** @param {number} text */
  biasOf(text) {
    const C = this.labels.length;
    return Array.from(this.biases.subarray(text * C, text * C + C));
  }

  /** @param {number} word */
  textsWith(word) {
    return Uint32Array.from(this.byWord.get(word) ?? []);
  }

  /** @param {string} name */
  forms(name) {
    return [name];
  }

  /** @param {string} name */
  written(name) {
    void name;
    return this.labels.map(() => 0);
  }

  /** Nothing is edited here. */
  apply(edit = NO_EDIT) {
    void edit;
    return this.decisions;
  }

  /**
   * Mean contribution of a word over the texts that have it: there is no table of weights.
   * @param {number} word
   */
  weights(word) {
    const C = this.labels.length;
    return this.means.subarray(word * C, word * C + C);
  }

  /** Of all words in one go: a list of words asks for each. */
  #meanContributions() {
    const C = this.labels.length;
    const means = new Float64Array(this.names.length * C);
    for (let e = 0; e < this.word.length; e++) {
      const word = Number(this.word[e]);
      const texts = Number(this.byWord.get(word)?.length);
      for (let c = 0; c < C; c++) means[word * C + c] = Number(means[word * C + c]) + Number(this.contribution[e * C + c]) / texts;
    }
    return means;
  }

  /** Nothing shifts a default: there is none. */
  get hasContext() {
    return false;
  }

  /**
   * Where a word is used.
   * @param {number} word
   * @returns {import("./table.js").Use[]}
   */
  usesOf(word) {
    return Array.from(this.textsWith(word), (text) => ({ text, factor: 1, size: greatest(this.entryOf(text, word)?.parts ?? []) }));
  }

  /**
   * @param {number} text
   * @returns {Entry[]}
   */
  entries(text) {
    const C = this.labels.length;
    const found = [];
    for (let e = Number(this.offsets[text]); e < Number(this.offsets[text + 1]); e++) {
      const word = Number(this.word[e]);
      const parts = Float64Array.from(this.contribution.subarray(e * C, e * C + C));
      const length = Number(this.length[e]);
      const places = length ? [/** @type {[number, number]} */ ([Number(this.start[e]), length])] : [];
      found.push({
        word, name: this.names[word] ?? "", places, parts, unsuppressed: parts, defaults: null, factor: 1, isSuppressed: false,
      });
    }
    return found;
  }

  /**
   * @param {number} text
   * @param {number} word
   */
  entryOf(text, word) {
    return this.entries(text).find((entry) => entry.word === word) ?? null;
  }

  /**
   * @param {number} text
   * @param {Decisions} [decisions]
   */
  logits(text, decisions = this.decisions) {
    const C = this.labels.length;
    return decisions.logits.subarray(text * C, text * C + C);
  }
}
