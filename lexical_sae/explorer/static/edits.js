/**
 * What is changed of a model on this page, with the way back: words suppressed, and weights set.
 *
 * Words go by their names, so that one edit holds for every text and for every model on the page.
 */

/**
 * @typedef {object} Edit
 * @property {ReadonlyArray<string>} suppressed Words that were chosen; their forms go with them.
 * @property {Readonly<Record<string, Readonly<Record<string, number>>>>} weights By word and label.
 */

/** @type {Edit} */
export const NO_EDIT = Object.freeze({ suppressed: [], weights: {} });
export const DECIMALS = 4;

/** @param {Edit} edit */
export function countOf(edit) {
  return edit.suppressed.length + Object.keys(edit.weights).length;
}

/** A list of edits, of which one is in force. */
export class History {
  constructor() {
    /** @type {Edit[]} */
    this.states = [NO_EDIT];
    this.at = 0;
  }

  get now() {
    return this.states[this.at] ?? NO_EDIT;
  }

  get canUndo() {
    return this.at > 0;
  }

  get canRedo() {
    return this.at < this.states.length - 1;
  }

  /** @param {Edit} edit */
  push(edit) {
    this.states = [...this.states.slice(0, this.at + 1), edit];
    this.at += 1;
  }

  undo() {
    if (this.canUndo) this.at -= 1;
  }

  redo() {
    if (this.canRedo) this.at += 1;
  }
}

/**
 * The edit with a word suppressed; new weights of its forms are dropped, as a table may not have both.
 * @param {Edit} edit
 * @param {string} word
 * @param {ReadonlyArray<string>} forms
 * @returns {Edit}
 */
export function suppressing(edit, word, forms) {
  const weights = Object.fromEntries(Object.entries(edit.weights).filter(([name]) => !forms.includes(name)));
  return { suppressed: [...edit.suppressed.filter((name) => name !== word), word], weights };
}

/**
 * The edit without the suppression of any of these words.
 * @param {Edit} edit
 * @param {ReadonlyArray<string>} words
 * @returns {Edit}
 */
export function restoring(edit, words) {
  return { ...edit, suppressed: edit.suppressed.filter((name) => !words.includes(name)) };
}

/**
 * The edit with a word's weight for a label set, or taken back where the value is null.
 * @param {Edit} edit
 * @param {string} word
 * @param {string} label
 * @param {number | null} value
 * @returns {Edit}
 */
export function weighing(edit, word, label, value) {
  const own = { ...(edit.weights[word] ?? {}) };
  if (value === null) delete own[label];
  else own[label] = rounded(value);
  const weights = { ...edit.weights, [word]: own };
  if (!Object.keys(own).length) delete weights[word];
  return { ...edit, weights };
}

/**
 * Rounded as a table of words writes it, halves to even. Example: 0.00005 -> 0
 * @param {number} value
 */
export function rounded(value) {
  const scaled = value * 10 ** DECIMALS;
  const floor = Math.floor(scaled);
  const rest = scaled - floor;
  const up = rest > 0.5 || (rest === 0.5 && floor % 2 !== 0);
  return (floor + (up ? 1 : 0)) / 10 ** DECIMALS;
}

/**
 * A word as a cell that no spreadsheet changes, in quotes where CSV needs them.
 * @param {string} word
 */
function cell(word) {
  const plain = word.replace(/^'+/, "");
  const changed = /^[=+\-@\t\r]|^[^]*\d|^(true|false)$/i.test(plain);
  const safe = changed ? `'${word}` : word;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * The edit as a table that `lexical-sae edit` reads.
 * @param {Edit} edit
 * @param {ReadonlyArray<string>} labels
 * @param {(word: string) => ReadonlyArray<number>} written The weights that the model's own table has for a word.
 */
export function tableOf(edit, labels, written) {
  const quoted = labels.map((label) => `weight:${label}`).map((name) => (/[",\n\r]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name));
  const lines = [["word", ...quoted, "texts", "suppress"].join(",")];
  const digits = (/** @type {number} */ value) => value.toFixed(DECIMALS);
  for (const word of edit.suppressed) lines.push([cell(word), ...written(word).map(digits), "", "true"].join(","));
  for (const [word, given] of Object.entries(edit.weights)) {
    const row = written(word).map((value, c) => given[labels[c] ?? ""] ?? value);
    lines.push([cell(word), ...row.map(digits), "", ""].join(","));
  }
  return `${lines.join("\n")}\n`;
}
