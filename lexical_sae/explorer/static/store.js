/** What the page shows: its models, the edit in force, and where the reader is. Views listen and draw themselves anew. */

import { History, NO_EDIT, restoring, suppressing, weighing } from "./edits.js";
import { OpaqueCodes } from "./opaque.js";
import { TableCodes } from "./table.js";

/** @typedef {import("./figures.js").Codes} Codes */
/** @typedef {import("./edits.js").Edit} Edit */
/** @typedef {import("./service.js").Service} Service */
/** @typedef {{heading: string, rows: string[][]}} Measures */

/**
 * @typedef {object} Model
 * @property {string} name
 * @property {string[]} labels
 * @property {Codes | null} codes Null for a service without texts.
 * @property {string[][]} accuracies Name, value and remark; the model's own first.
 * @property {Measures[]} measures
 * @property {string} about
 * @property {string} address What the command line calls the model.
 */

export const VIEWS = ["overview", "read", "corpus", "words", "compare", "health"];

/**
 * @param {any} data
 * @returns {Codes}
 */
export function codesOf(data) {
  return data.kind === "table" ? new TableCodes(data) : new OpaqueCodes(data);
}

/** Sends `edit` when the model in force changes, and `place` when the reader goes elsewhere. */
export class App extends EventTarget {
  /**
   * @param {Model[]} models
   * @param {Service | null} service
   * @param {string} title
   */
  constructor(models, service, title) {
    super();
    this.models = models;
    this.service = service;
    this.title = title;
    this.history = new History();
    this.chosen = 0;
    /** @type {Codes | null} A text that was typed, as the service read it. */
    this.typed = null;
    this.view = "overview";
    this.params = new URLSearchParams();
    /** How long the last edit took to the new figures, in milliseconds. */
    this.milliseconds = 0;
  }

  /** @returns {Model} */
  get model() {
    const model = this.models[this.chosen];
    if (!model) throw new Error("there is no model");
    return model;
  }

  get codes() {
    return this.model.codes;
  }

  get edit() {
    return this.history.now;
  }

  /** Whether words can be suppressed and weights changed here. */
  get canEdit() {
    return Boolean((this.codes ?? this.typed)?.isTable);
  }

  /** @param {string} name */
  forms(name) {
    const own = [this.codes, this.typed].flatMap((codes) => codes?.forms(name) ?? []);
    return [...new Set([name, ...own])];
  }

  /** @param {string} name */
  isSuppressed(name) {
    return this.edit.suppressed.some((chosen) => this.forms(chosen).includes(name));
  }

  /** @param {string} name */
  toggle(name) {
    if (!this.canEdit) return;
    const behind = this.edit.suppressed.filter((chosen) => this.forms(chosen).includes(name));
    this.#change(behind.length ? restoring(this.edit, behind) : suppressing(this.edit, name, this.forms(name)));
  }

  /**
   * @param {string} word
   * @param {string} label
   * @param {number | null} value
   */
  weigh(word, label, value) {
    if (this.canEdit) this.#change(weighing(this.edit, word, label, value));
  }

  /** @param {string} word */
  takeBack(word) {
    const weights = { ...this.edit.weights };
    delete weights[word];
    this.#change({ suppressed: this.edit.suppressed.filter((name) => name !== word), weights });
  }

  reset() {
    this.#change(NO_EDIT);
  }

  undo() {
    this.history.undo();
    this.#apply();
  }

  redo() {
    this.history.redo();
    this.#apply();
  }

  /** @param {Edit} edit */
  #change(edit) {
    this.history.push(edit);
    this.#apply();
  }

  #apply() {
    const started = performance.now();
    this.codes?.apply(this.edit);
    this.milliseconds = performance.now() - started;
    this.typed?.apply(this.edit);
    this.dispatchEvent(new Event("edit"));
  }

  /** @param {Codes | null} typed */
  read(typed) {
    this.typed = typed;
    typed?.apply(this.edit);
    this.dispatchEvent(new Event("typed"));
  }

  /** @param {number} index */
  choose(index) {
    this.chosen = index;
    this.typed = null;
    this.history = new History();
    this.codes?.apply(NO_EDIT);
    this.dispatchEvent(new Event("model"));
  }

  /**
   * Go to a view by its address, which can be shared: nothing after the # is ever sent.
   * @param {string} view
   * @param {Record<string, string | number | null | undefined>} [params]
   */
  go(view, params = {}) {
    location.hash = addressOf(view, params);
  }

  /** Take over the address: where the reader is, and the edit that a shared one carries. */
  arrive() {
    const [view, query] = location.hash.replace(/^#\/?/, "").split("?");
    this.view = VIEWS.includes(view ?? "") ? String(view) : "overview";
    this.params = new URLSearchParams(query ?? "");
    const shared = this.params.get("edit");
    if (shared !== null && this.canEdit) {
      const edit = editFrom(shared);
      if (edit && JSON.stringify(edit) !== JSON.stringify(this.edit)) this.#change(edit);
    }
    this.dispatchEvent(new Event("place"));
  }
}

/**
 * @param {string} view
 * @param {Record<string, string | number | null | undefined>} params
 */
export function addressOf(view, params) {
  const kept = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

/**
 * The edit in a shared address; null if it is none.
 * @param {string} written
 * @returns {Edit | null}
 */
function editFrom(written) {
  try {
    const found = JSON.parse(written);
    const words = Array.isArray(found.suppressed) && found.suppressed.every((/** @type {any} */ w) => typeof w === "string");
    const rows = Object.values(found.weights ?? {});
    const numbers = rows.every((row) => Object.values(/** @type {any} */ (row)).every((v) => Number.isFinite(v)));
    return words && numbers ? { suppressed: found.suppressed, weights: found.weights ?? {} } : null;
  } catch {
    return null;
  }
}
