/** Whether to trust it: calibration on these texts, measures of the run, and what stays unexplained. */

import { counted, fill, h, percent } from "./dom.js";
import { argmax, probabilities } from "./figures.js";
import { groupTable } from "./effect.js";
import { View, figuresTable } from "./parts.js";
import { shiftOf } from "./text.js";

/** @typedef {import("./figures.js").Codes} Codes */

const BINS = 10;

export class Health extends View {
  draw() {
    const { codes, model } = this.app;
    fill(this, h("h1", null, "Health"),
      codes && codes.truth && h("section", { "aria-labelledby": "calibration" }, h("h2", { id: "calibration" }, "Is it as sure as it should be?"), calibration(codes)),
      codes && codes.groups.length > 0 && h("section", { "aria-labelledby": "groups" }, h("h2", { id: "groups" }, "Is it as good for every group?"), h("p", { class: "quiet" }, "Texts that mention a group; → after the edit."), groupTable(codes)),
      codes && h("section", { "aria-labelledby": "unexplained" }, h("h2", { id: "unexplained" }, "What is exact, and what is not explained"), unexplained(codes)),
      model.measures.length > 0 && h("section", { "aria-labelledby": "measures" }, h("h2", { id: "measures" }, "Measured by the run"), model.measures.map(({ heading, rows }, i) => h("details", { class: "fold", open: i === 0 }, h("summary", null, heading), figuresTable(heading, rows, "hidden")))),
      !model.measures.length && h("p", { class: "quiet" }, "The run's own measures (names, leakage, faithfulness) are in its report."));
  }
}

/** @param {Codes} codes */
function calibration(codes) {
  const bins = Array.from({ length: BINS }, () => ({ texts: 0, right: 0, sure: 0 }));
  for (let i = 0; i < codes.count; i++) {
    const chances = probabilities(codes.logits(i), codes.temperature);
    const decided = argmax(chances);
    const bin = bins[Math.min(BINS - 1, Math.floor(Number(chances[decided]) * BINS))];
    if (!bin) continue;
    bin.texts += 1;
    bin.sure += Number(chances[decided]);
    bin.right += codes.truth?.[i] === decided ? 1 : 0;
  }
  const used = bins.filter((bin) => bin.texts);
  const error = used.reduce((sum, bin) => sum + Math.abs(bin.right - bin.sure), 0) / Math.max(1, codes.count);
  return [
    h("p", null, "Expected calibration error: ", h("strong", null, percent(error, 1)), h("span", { class: "quiet" }, " mean gap between confidence and accuracy, in ten bins.")),
    h("table", { class: "figures calibration" },
      h("thead", null, h("tr", null, h("th", { scope: "col", class: "number" }, "confidence"), h("th", { scope: "col", class: "number" }, "right"), h("td", { class: "bars" }), h("th", { scope: "col", class: "number" }, "texts"))),
      h("tbody", null, used.map((bin) => h("tr", null,
        h("td", { class: "number" }, percent(bin.sure / bin.texts)),
        h("td", { class: "number" }, h("strong", null, percent(bin.right / bin.texts))),
        h("td", { class: "bars" }, h("span", { class: "track", "aria-hidden": "true" },
          h("span", { class: "bar for", style: { left: "0", width: `${(100 * bin.right) / bin.texts}%` } }),
          h("span", { class: "zero", style: { left: `${(100 * bin.sure) / bin.texts}%` } }))),
        h("td", { class: "number quiet" }, bin.texts.toLocaleString("en")))))),
    h("p", { class: "quiet" }, "Bar: share that is right. Line: how sure the model was."),
  ];
}

/** @param {Codes} codes */
function unexplained(codes) {
  let [words, shifted, context, all, without, cut] = [0, 0, 0, 0, 0, 0];
  for (let i = 0; i < codes.count; i++) {
    const c = Number(codes.decisions.predicted[i]);
    let has = 0;
    for (const entry of codes.entries(i)) {
      if (!entry.parts.some(Boolean)) continue;
      has += 1;
      const fixed = entry.defaults ? Number(entry.defaults[c]) : 0;
      const moved = shiftOf(entry) ? Math.abs(Number(entry.parts[c]) - fixed) : 0;
      shifted += shiftOf(entry) ? 1 : 0;
      context += moved;
      all += Math.abs(fixed) + moved;
    }
    words += has;
    without += has ? 0 : 1;
    cut += Number(codes.tokensCut[i]) > 0 ? 1 : 0;
  }
  const rows = [
    ["words with weight per text", (words / Math.max(1, codes.count)).toFixed(1), ""],
    ...(codes.hasContext ? [
      ["context shifts per text", (shifted / Math.max(1, codes.count)).toFixed(2), "why the encoder shifts a word is not explained; that and how much it does is"],
      ["share of |contribution| by context", percent(all ? context / all : 0), "the rest is the table's, the same in any text"],
    ] : []),
    ["texts without a word that counts", counted(without, "text"), "there the bias alone decides"],
    ["texts that were cut", counted(cut, "text"), "their ends were not read"],
    ["contributions and bias", "sum exactly", codes.isTable ? "this page computes the logit from them, and the removal of a word is its contribution" : "but removal may switch hidden units, so this page computes no edits"],
  ];
  return figuresTable("On these texts", rows);
}
