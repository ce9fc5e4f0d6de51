// Reads {static, payload, edits} and writes what the page's own modules make of each edit.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { folder, payload, edits } = JSON.parse(readFileSync(0, "utf-8"));
const load = (name) => import(pathToFileURL(`${folder}/${name}`));
const { TableCodes } = await load("table.js");
const { OpaqueCodes } = await load("opaque.js");
const { probabilities, smallestFlip, summary, changedTexts, groupAccuracies } = await load("figures.js");
const { tableOf } = await load("edits.js");

const codes = new (payload.kind === "table" ? TableCodes : OpaqueCodes)(payload);
const made = edits.map((edit) => {
  codes.apply(edit);
  const texts = codes.texts.map((_, i) => {
    const logits = codes.logits(i);
    const flip = smallestFlip(codes.entries(i), logits);
    return {
      logits: [...logits],
      probabilities: probabilities(logits, codes.temperature),
      words: codes.entries(i).map((entry) => ({ ...entry, parts: [...entry.parts], defaults: entry.defaults && [...entry.defaults] })),
      flip: flip && { words: flip.words.map((entry) => entry.name), label: flip.label },
    };
  });
  const uses = codes.names.map((_, word) => codes.usesOf(word));
  const weights = codes.names.map((_, word) => [...codes.weights(word)]);
  return { texts, uses, weights, summary: summary(codes), groups: groupAccuracies(codes), changed: changedTexts(codes), table: tableOf(edit, codes.labels, (word) => codes.written(word)) };
});
process.stdout.write(JSON.stringify(made));
