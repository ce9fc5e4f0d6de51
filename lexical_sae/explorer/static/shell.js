/** The frame of the page: title, views, the edit in force, and one view at a time. */

import { Compare } from "./compare.js";
import { Corpus } from "./corpus.js";
import { countOf } from "./edits.js";
import { counted, fill, h } from "./dom.js";
import { changedTexts } from "./figures.js";
import { Health } from "./health.js";
import { Overview } from "./overview.js";
import { choice } from "./parts.js";
import { Read } from "./read.js";
import { VIEWS } from "./store.js";
import { Words } from "./words.js";

/** @typedef {import("./store.js").App} App */
/** @typedef {import("./parts.js").View} View */

const PAGES = { overview: Overview, read: Read, corpus: Corpus, words: Words, compare: Compare, health: Health };
for (const [name, page] of Object.entries(PAGES)) customElements.define(`lx-${name}`, page);

const NAMES = { overview: "Overview", read: "Read", corpus: "Corpus", words: "Words", compare: "Compare", health: "Health" };

/** The whole page of an app. */
export class Shell extends HTMLElement {
  /** @type {App | null} */
  #app = null;
  #nav = h("nav", { class: "views", "aria-label": "Views" });
  #bar = h("div", { class: "editbar", role: "region", "aria-label": "Edits" });
  #main = h("main", { id: "main", tabindex: "-1" });
  #shown = "";

  /** @param {App} app */
  show(app) {
    this.#app = app;
    fill(this,
      h("a", { class: "skip", href: "#main", onclick: (/** @type {Event} */ event) => {
        event.preventDefault();
        this.#main.focus();
      } }, "Skip to content"),
      h("header", { class: "top" },
        h("a", { class: "brand", href: "#/overview" }, "Lexical-SAE"),
        app.models.length > 1 && choice("Model", app.models.map((model, i) => /** @type {[string, string]} */ ([String(i), model.name])), String(app.chosen), (value) => app.choose(Number(value))),
        this.#nav),
      this.#bar, this.#main,
      h("div", { class: "hidden", role: "status", "aria-live": "polite", "data-announce": "" }));
    app.addEventListener("edit", () => this.#drawBar());
    for (const event of ["place", "model"]) app.addEventListener(event, () => this.#arrive());
    addEventListener("keydown", (event) => this.#shortcut(event));
    this.#arrive();
  }

  #arrive() {
    const app = this.#app;
    if (!app) return;
    const tab = (/** @type {string} */ view) => h("a", { href: `#/${view}`, "aria-current": app.view === view ? "page" : null }, NAMES[/** @type {keyof typeof NAMES} */ (view)]);
    fill(this.#nav, VIEWS.map(tab));
    this.#drawBar();
    const made = /** @type {View} */ (document.createElement(`lx-${app.view}`));
    made.app = app;
    fill(this.#main, made);
    document.title = `${NAMES[/** @type {keyof typeof NAMES} */ (app.view)]} · ${app.title}`;
    if (this.#shown && this.#shown !== app.view) scrollTo(0, 0);
    this.#shown = app.view;
  }

  #drawBar() {
    const app = this.#app;
    if (!app) return;
    const { edit } = app;
    const count = countOf(edit);
    this.#bar.classList.toggle("idle", !count && !app.history.canUndo && !app.history.canRedo);
    const chip = (/** @type {string} */ word, /** @type {string} */ what) => h("li", null, h("button", { type: "button", "data-key": `chip ${word}`, "aria-label": `${word}, ${what}: take back`, onclick: () => app.takeBack(word) }, h("span", { class: what === "suppressed" ? "gone" : "", dir: "auto" }, word), what === "suppressed" ? "" : ` ${what}`, " ×"));
    const weights = Object.entries(edit.weights).map(([word, own]) => chip(word, Object.entries(own).map(([label, value]) => `${label} ${value}`).join(", ")));
    const flipped = app.codes ? changedTexts(app.codes).length : 0;
    fill(this.#bar,
      h("div", { class: "row" },
        h("button", { type: "button", disabled: !app.history.canUndo, "data-key": "undo", title: "Ctrl+Z", onclick: () => app.undo() }, "↶ undo"),
        h("button", { type: "button", disabled: !app.history.canRedo, "data-key": "redo", title: "Ctrl+Shift+Z", onclick: () => app.redo() }, "↷ redo"),
        h("strong", { "data-edits": "" }, count ? `Edited: ${counted(count, "word")}` : "As trained"),
        app.codes && h("a", { href: "#/corpus?show=changed" }, `${counted(flipped, "label")} ${flipped === 1 ? "changes" : "change"}`),
        count > 0 && h("a", { href: "#/words" }, "effect and saving"),
        count > 0 && h("button", { type: "button", "data-key": "reset", onclick: () => app.reset() }, "reset")),
      count > 0 && h("ul", { class: "chips", "aria-label": "Edits" }, edit.suppressed.map((word) => chip(word, "suppressed")), weights));
  }

  /** @param {KeyboardEvent} event */
  #shortcut(event) {
    const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
    if (isTyping || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    if (event.shiftKey) this.#app?.redo();
    else this.#app?.undo();
  }
}

customElements.define("lx-app", Shell);
