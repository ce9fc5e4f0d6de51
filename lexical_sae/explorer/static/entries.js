/** Which words are where: the occurrences of a word in a text as one entry, found by text and by word without a search. */

/** The entries of some texts, words in the order of their first occurrence. */
export class Entries {
  /** Where the entries of each text begin. */
  offsets = new Uint32Array(0);
  /** The word of each entry. */
  words = new Uint32Array(0);
  /** Occurrences by entry, and where those of each begin. */
  occurrences = new Uint32Array(0);
  starts = new Uint32Array(0);
  /** The texts and entries of each word, and where they begin. */
  textsByWord = new Uint32Array(0);
  entriesByWord = new Uint32Array(0);
  wordStarts = new Uint32Array(0);

  /**
   * @param {ArrayLike<number>} counts Occurrences in each text.
   * @param {ArrayLike<number>} words The word of each.
   * @param {number} listed How many words there are.
   */
  constructor(counts, words, listed) {
    this.#group(counts, words);
    this.#index(listed);
  }

  /**
   * @param {ArrayLike<number>} counts
   * @param {ArrayLike<number>} words
   */
  #group(counts, words) {
    const total = words.length;
    const entryWord = new Uint32Array(total);
    const occurrences = new Uint32Array(total);
    const starts = new Uint32Array(total + 1);
    this.offsets = new Uint32Array(counts.length + 1);
    let entries = 0;
    let filled = 0;
    let first = 0;
    for (let text = 0; text < counts.length; text++) {
      const end = first + Number(counts[text]);
      /** @type {Map<number, number[]>} */
      const groups = new Map();
      for (let o = first; o < end; o++) {
        const word = Number(words[o]);
        const group = groups.get(word);
        if (group) group.push(o);
        else groups.set(word, [o]);
      }
      for (const [word, group] of groups) {
        entryWord[entries] = word;
        starts[entries] = filled;
        for (const o of group) occurrences[filled++] = o;
        entries += 1;
      }
      this.offsets[text + 1] = entries;
      first = end;
    }
    starts[entries] = filled;
    this.words = entryWord.subarray(0, entries);
    this.occurrences = occurrences;
    this.starts = starts.subarray(0, entries + 1);
  }

  /** @param {number} listed */
  #index(listed) {
    const starts = new Uint32Array(listed + 1);
    for (const word of this.words) starts[word + 1] = Number(starts[word + 1]) + 1;
    for (let word = 0; word < listed; word++) starts[word + 1] = Number(starts[word + 1]) + Number(starts[word]);
    const next = starts.slice();
    this.textsByWord = new Uint32Array(this.words.length);
    this.entriesByWord = new Uint32Array(this.words.length);
    for (let text = 0; text + 1 < this.offsets.length; text++) {
      for (let e = Number(this.offsets[text]); e < Number(this.offsets[text + 1]); e++) {
        const word = Number(this.words[e]);
        const place = Number(next[word]);
        this.textsByWord[place] = text;
        this.entriesByWord[place] = e;
        next[word] = place + 1;
      }
    }
    this.wordStarts = starts;
  }

  /**
   * The texts that have a word, in their order.
   * @param {number} word
   */
  textsOf(word) {
    return this.textsByWord.subarray(Number(this.wordStarts[word]), Number(this.wordStarts[word + 1]));
  }

  /**
   * The entries of a word, one for each of its texts.
   * @param {number} word
   */
  entriesOf(word) {
    return this.entriesByWord.subarray(Number(this.wordStarts[word]), Number(this.wordStarts[word + 1]));
  }

  /**
   * The occurrences that an entry stands for.
   * @param {number} entry
   */
  occurrencesOf(entry) {
    return this.occurrences.subarray(Number(this.starts[entry]), Number(this.starts[entry + 1]));
  }
}
