/** Taking a decision along: as a sentence for a letter, as JSON, as a picture. */

import { save, signed } from "./dom.js";
import { probabilities } from "./figures.js";

/** @typedef {import("./figures.js").Codes} Codes */
/** @typedef {import("./text.js").Step} Step */
/** @typedef {import("./text.js").Question} Question */

const NAMED = 3;

/**
 * One sentence as `lexical_sae` writes it (`Explanation.sentence`), for the edit in force.
 * @param {Codes} codes
 * @param {number} text
 * @param {Question} question
 * @param {Step[]} steps
 * @param {number} total
 * @param {number} decided
 */
export function sentence(codes, text, question, steps, total, decided) {
  const sure = Number(probabilities(codes.logits(text), codes.temperature)[decided]);
  const words = steps.filter((step) => step.entry).slice(0, NAMED);
  const names = (/** @type {Step[]} */ own) => {
    const told = own.map((step) => `“${step.name}” (${signed(step.value)})`);
    return told.length > 1 ? `${told.slice(0, -1).join(", ")} and ${told.at(-1)}` : String(told[0]);
  };
  const target = codes.labels[question.target];
  const about = question.target === decided && question.contrast === null ? "it"
    : question.contrast === null ? `“${target}”` : `“${target}” rather than “${codes.labels[question.contrast]}”`;
  const lead = words.filter((step) => step.value > 0);
  const against = words.filter((step) => step.value < 0);
  const rest = total - words.reduce((sum, step) => sum + step.value, 0);
  const parts = [
    ...(lead.length ? [`${names(lead)} contributed most to ${about}`] : []),
    ...(against.length ? [`${names(against)} counted against ${about}`] : []),
    ...(words.length ? [] : [`no word contributed to ${about}`]),
    `the other words and the bias contributed ${signed(rest)}, for a total of ${signed(total)} in logits`,
  ];
  return `Decided: ${codes.labels[decided]} (${(100 * sure).toFixed(0)}%): ${parts.join("; ")}.`;
}

/**
 * The decision as plain data.
 * @param {Codes} codes
 * @param {number} text
 * @param {Question} question
 * @param {unknown} edit
 */
export function asJson(codes, text, question, edit) {
  const chances = probabilities(codes.logits(text), codes.temperature);
  const bias = codes.biasOf(text);
  const worth = (/** @type {ArrayLike<number>} */ parts) => Number(parts[question.target]) - (question.contrast === null ? 0 : Number(parts[question.contrast]));
  return JSON.stringify({
    text: codes.texts[text],
    edit,
    target: codes.labels[question.target],
    contrast: question.contrast === null ? null : codes.labels[question.contrast],
    probabilities: Object.fromEntries(codes.labels.map((label, c) => [label, chances[c]])),
    words: codes.entries(text).map((entry) => ({
      word: entry.name, places: entry.places, contribution: worth(entry.parts),
      default: entry.defaults && worth(entry.defaults), suppressed: entry.isSuppressed,
    })),
    bias: worth(bias),
    logit: worth(codes.logits(text)),
  }, null, 2);
}

/**
 * The waterfall as a PNG file, drawn in the page's own colours.
 * @param {string} title
 * @param {Step[]} steps
 * @param {number} total
 */
export function saveImage(title, steps, total) {
  const style = getComputedStyle(document.documentElement);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const rows = [...steps, { name: "sum = logit", value: total, entry: null }];
  const [width, line, scale] = [760, 26, 2];
  const canvas = document.createElement("canvas");
  canvas.width = width * scale;
  canvas.height = (rows.length * line + 62) * scale;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(scale, scale);
  pen.fillStyle = colour("--paper");
  pen.fillRect(0, 0, width, canvas.height);
  pen.font = "600 16px system-ui, sans-serif";
  pen.fillStyle = colour("--ink");
  pen.fillText(title, 16, 30, width - 32);
  const ends = [0];
  for (const step of steps) ends.push(Number(ends.at(-1)) + step.value);
  const [low, high] = [Math.min(...ends, 0), Math.max(...ends, 0)];
  const place = (/** @type {number} */ value) => 200 + (460 * (value - low)) / (high - low || 1);
  pen.font = "14px system-ui, sans-serif";
  rows.forEach((step, i) => {
    const y = 46 + i * line;
    const isLast = i === rows.length - 1;
    const [from, to] = isLast ? [0, total] : [Number(ends[i]), Number(ends[i + 1])];
    pen.fillStyle = colour(isLast ? "--ink" : step.value > 0 ? "--for" : "--against");
    pen.fillRect(Math.min(place(from), place(to)), y + 5, Math.max(1, Math.abs(place(to) - place(from))), line - 10);
    pen.fillStyle = colour("--ink");
    pen.textAlign = "right";
    pen.fillText(step.name, 190, y + 18, 176);
    pen.fillText(signed(step.value), width - 16, y + 18);
    pen.textAlign = "left";
  });
  canvas.toBlob((blob) => blob && save("decision.png", blob));
}
