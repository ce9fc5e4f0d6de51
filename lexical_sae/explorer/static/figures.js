/** Figures of decisions: probabilities, accuracy, the confusion matrix, smallest sets. Pure functions. */

/** @typedef {import("./table.js").TableCodes | import("./opaque.js").OpaqueCodes} Codes */
/** @typedef {import("./table.js").Entry} Entry */
/** @typedef {import("./table.js").Decisions} Decisions */

/**
 * @param {ArrayLike<number>} logits
 * @param {number} temperature
 * @returns {number[]}
 */
export function probabilities(logits, temperature) {
  const scaled = Array.from(logits, (value) => value / temperature);
  const greatest = Math.max(...scaled);
  const powers = scaled.map((value) => Math.exp(value - greatest));
  const sum = powers.reduce((total, value) => total + value, 0);
  return powers.map((value) => value / sum);
}

/**
 * The place of the greatest; of equal ones the first.
 * @param {ArrayLike<number>} values
 */
export function argmax(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (Number(values[i]) > Number(values[best])) best = i;
  return best;
}

/**
 * @typedef {object} Summary
 * @property {number} texts
 * @property {number | null} accuracy Null without labels.
 * @property {number[][]} confusion By true label, then predicted; without labels nothing.
 * @property {{texts: number, recall: number | null, precision: number | null}[]} classes
 */

/**
 * @param {Codes} codes
 * @param {Decisions} [decisions]
 * @returns {Summary}
 */
export function summary(codes, decisions = codes.decisions) {
  const C = codes.labels.length;
  /** @type {number[][]} */
  const confusion = Array.from({ length: C }, () => new Array(C).fill(0));
  const cell = (/** @type {number} */ a, /** @type {number} */ b) => Number(confusion[a]?.[b]);
  const truth = codes.truth;
  if (!truth) return { texts: codes.count, accuracy: null, confusion, classes: [] };
  for (let i = 0; i < codes.count; i++) {
    const [a, b] = [Number(truth[i]), Number(decisions.predicted[i])];
    /** @type {number[]} */ (confusion[a])[b] = cell(a, b) + 1;
  }
  const classes = codes.labels.map((_, c) => {
    const texts = codes.labels.reduce((sum, _own, d) => sum + cell(c, d), 0);
    const given = codes.labels.reduce((sum, _own, d) => sum + cell(d, c), 0);
    const right = cell(c, c);
    return { texts, recall: texts ? right / texts : null, precision: given ? right / given : null };
  });
  const right = codes.labels.reduce((sum, _own, c) => sum + cell(c, c), 0);
  return { texts: codes.count, accuracy: codes.count ? right / codes.count : null, confusion, classes };
}

/**
 * Accuracy within each group of texts that mention an identity.
 * @param {Codes} codes
 * @param {Decisions} [decisions]
 * @returns {{name: string, texts: number, accuracy: number | null}[]}
 */
export function groupAccuracies(codes, decisions = codes.decisions) {
  return codes.groups.map(({ name, rows }) => {
    let right = 0;
    for (let i = 0; i < rows.length; i++) right += codes.truth?.[Number(rows[i])] === decisions.predicted[Number(rows[i])] ? 1 : 0;
    return { name, texts: rows.length, accuracy: codes.truth && rows.length ? right / rows.length : null };
  });
}

/**
 * Texts that get another label by the edit in force.
 * @param {Codes} codes
 * @returns {number[]}
 */
export function changedTexts(codes) {
  const found = [];
  for (let i = 0; i < codes.count; i++) if (codes.original.predicted[i] !== codes.decisions.predicted[i]) found.push(i);
  return found;
}

/**
 * What a word contributes to a class, or to it rather than to another.
 * @param {ArrayLike<number>} parts
 * @param {number} target
 * @param {number | null} contrast
 */
export function towards(parts, target, contrast) {
  return Number(parts[target]) - (contrast === null ? 0 : Number(parts[contrast]));
}

/**
 * @typedef {object} Flip
 * @property {Entry[]} words The fewest whose removal changes the decision, or lets a given label pass it.
 * @property {number} label The label that then leads.
 */

/**
 * The smallest set of words without which another label is decided on. In a table words do not interact: for each label
 * the words that hold it back most are the best to remove, so the smallest of these sets is the smallest of all.
 * @param {Entry[]} entries
 * @param {ArrayLike<number>} logits
 * @param {number | null} past The label that is to pass the decided one; null for any.
 * @returns {Flip | null} Null where no set will do.
 */
export function smallestFlip(entries, logits, past = null) {
  const top = argmax(logits);
  const active = entries.filter((entry) => !entry.isSuppressed);
  /** @type {Flip | null} */
  let best = null;
  for (let c = 0; c < logits.length; c++) {
    if (c === top || (past !== null && c !== past)) continue;
    const words = passing(active, Number(logits[top]) - Number(logits[c]), top, c);
    if (words && (!best || words.length < best.words.length)) best = { words, label: c };
  }
  return best && { ...best, label: past ?? leader(best.words, logits) };
}

/**
 * The fewest words whose removal puts class `c` above `top`.
 * @param {Entry[]} entries
 * @param {number} margin
 * @param {number} top
 * @param {number} c
 */
function passing(entries, margin, top, c) {
  const held = entries
    .map((entry) => ({ entry, by: Number(entry.parts[top]) - Number(entry.parts[c]) }))
    .filter(({ by }) => by > 0)
    .sort((a, b) => b.by - a.by);
  const words = [];
  for (const { entry, by } of held) {
    words.push(entry);
    margin -= by;
    // Of equal logits the first label is decided on.
    if (margin < 0 || (margin === 0 && c < top)) return words;
  }
  return null;
}

/**
 * @param {Entry[]} removed
 * @param {ArrayLike<number>} logits
 */
function leader(removed, logits) {
  return argmax(Array.from(logits, (value, c) => value - removed.reduce((sum, entry) => sum + Number(entry.parts[c]), 0)));
}

/**
 * Rows minus their mean over classes, in double precision.
 * @param {ArrayLike<number>} rows
 * @param {number} C
 */
export function centred(rows, C) {
  const made = new Float64Array(rows.length);
  for (let at = 0; at < rows.length; at += C) {
    let mean = 0;
    for (let c = 0; c < C; c++) mean += Number(rows[at + c]);
    mean /= C;
    for (let c = 0; c < C; c++) made[at + c] = Number(rows[at + c]) - mean;
  }
  return made;
}

/**
 * The greatest size among some numbers.
 * @param {ArrayLike<number>} values
 */
export function greatest(values) {
  let most = 0;
  for (let i = 0; i < values.length; i++) most = Math.max(most, Math.abs(Number(values[i])));
  return most;
}
