/** The first screen: the classifier in words, a few texts, how often it is right, and where it errs. */

import { counted, fill, h, percent } from "./dom.js";
import { argmax, summary } from "./figures.js";
import { View, confusionTable, wordBars } from "./parts.js";
import { shiftOf, tintedText } from "./text.js";

/** @typedef {import("./figures.js").Codes} Codes */

const WORDS = 24;
const FEWEST_WORDS = 4;
const MOST_CLASSES = 12;
const LEAST_TEXTS = 5;
const EXAMPLES = 3;

export class Overview extends View {
  draw() {
    const { codes, model } = this.app;
    if (!codes) {
      fill(this, h("h1", null, model.name), h("p", null, "No texts were given: start the service with --data to see a corpus here. "), h("p", null, h("a", { href: "#/read" }, "Read a text of your own")));
      return;
    }
    const now = summary(codes);
    fill(this,
      h("h1", { dir: "auto" }, this.app.title),
      h("p", { class: "lead", dir: "auto" }, model.about),
      this.#tiles(codes, now.accuracy),
      h("section", { "aria-labelledby": "in-words" },
        h("h2", { id: "in-words" }, "The classifier in words"),
        h("p", { class: "quiet" }, codes.isTable
          ? "Its strongest words for each class, by the weight they have in any text. Choose one to see where it matters, suppress it or change its weight."
          : "The words that contribute most to each class, on average where they are active. This model has a hidden layer: there is no weight that holds in every text."),
        h("div", { class: "classes" }, strongest(codes).map(({ label, words }) => h("div", null, h("h3", { dir: "auto" }, label), wordBars(this.app, words))))),
      h("section", { "aria-labelledby": "some-texts" },
        h("h2", { id: "some-texts" }, "What it does with a text"),
        h("p", { class: "quiet" }, "Blue words support the decision, orange words oppose it. ", codes.hasContext ? "↑ ↓ ↺: context makes the word stronger, weaker, or reverses it." : ""),
        h("div", { class: "examples" }, examples(codes).map((i) => this.#example(codes, i)))),
      codes.truth && h("section", { "aria-labelledby": "right-and-wrong" },
        h("h2", { id: "right-and-wrong" }, "Right and wrong"),
        confusionTable(now, codes.labels, (truth, predicted) => this.app.go("corpus", { truth, predicted }))));
  }

  /**
   * @param {Codes} codes
   * @param {number | null} accuracy
   */
  #tiles(codes, accuracy) {
    const rows = this.app.model.accuracies;
    const own = accuracy === null ? [] : [["accuracy here", percent(accuracy, 1), `on ${counted(codes.count, "text")}${codes.leftOut ? `, drawn from ${codes.count + codes.leftOut}` : ""}`]];
    // Of other texts than the run's own, its figures and those of baselines stay its own.
    const [name, value, remark] = rows[0] ?? [];
    const isSame = name === "accuracy" && value === percent(summary(codes, codes.original).accuracy, 1) && Boolean(remark?.includes(`${codes.count} `));
    const shown = [...own.map((row) => (isSame ? ["accuracy", ...row.slice(1)] : row)), ...rows.slice(isSame ? 1 : 0)];
    return h("ul", { class: "tiles" }, shown.map(([of, figure, about], i) => h("li", { class: i ? "" : "first" }, h("span", { class: "name" }, of), h("b", null, figure), h("span", { class: "quiet" }, about))));
  }

  /**
   * @param {Codes} codes
   * @param {number} i
   */
  #example(codes, i) {
    const target = argmax(codes.logits(i));
    const truth = codes.truth?.[i];
    const isWrong = truth !== undefined && truth !== target;
    return h("article", null,
      h("p", { class: "verdict" }, h("strong", { dir: "auto" }, codes.labels[target]), isWrong && h("span", { class: "quiet" }, ` labelled ${codes.labels[truth]}`)),
      tintedText(codes.texts[i] ?? "", codes.entries(i), { target, contrast: null }),
      h("p", null, h("a", { href: `#/read?text=${i}` }, "Take it apart")));
  }
}

/**
 * The strongest words of each class among those that several texts have; of many classes those with most texts.
 * @param {Codes} codes
 */
function strongest(codes) {
  const C = codes.labels.length;
  const counts = codes.labels.map((_, c) => codes.truth?.filter((own) => own === c).length ?? 0);
  const order = codes.labels.map((_, c) => c);
  const classes = C > MOST_CLASSES ? order.sort((a, b) => Number(counts[b]) - Number(counts[a])).slice(0, MOST_CLASSES) : order;
  const top = Math.max(FEWEST_WORDS, Math.floor(WORDS / classes.length));
  const all = codes.names.map((name, word) => ({ name, word, texts: codes.textsWith(word).length }));
  const often = all.filter(({ texts }) => texts >= LEAST_TEXTS);
  const listed = (often.length ? often : all).map((own) => ({ ...own, weights: codes.weights(own.word) }));
  return classes.map((c) => ({
    label: codes.labels[c],
    words: listed
      .filter(({ weights }) => Number(weights[c]) > 0)
      .sort((a, b) => Number(b.weights[c]) - Number(a.weights[c]))
      .slice(0, top)
      .map(({ name, weights, texts }) => ({ name, value: Number(weights[c]), remark: counted(texts, "text") })),
  }));
}

/**
 * Texts to begin with: right ones, a reversed word first, then another shift, of moderate length and different labels.
 * @param {Codes} codes
 */
function examples(codes) {
  const looked = Array.from({ length: Math.min(codes.count, 400) }, (_, i) => i);
  const points = looked.map((i) => {
    const entries = codes.entries(i).filter((entry) => entry.parts.some(Boolean));
    const shifts = entries.map(shiftOf);
    const length = (codes.texts[i] ?? "").length;
    const isRight = !codes.truth || codes.truth[i] === codes.original.predicted[i];
    return (isRight ? 8 : 0) + (shifts.includes("reversed") ? 4 : 0) + (shifts.some(Boolean) ? 2 : 0) + (length > 30 && length < 220 ? 1 : 0);
  });
  const order = looked.sort((a, b) => Number(points[b]) - Number(points[a]) || a - b);
  const labels = new Set();
  const first = order.slice(0, 60).filter((i) => {
    const label = codes.original.predicted[i];
    return !labels.has(label) && labels.add(label);
  });
  return [...new Set([...first, ...order])].slice(0, EXAMPLES);
}
