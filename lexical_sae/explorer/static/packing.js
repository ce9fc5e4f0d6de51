/** Columns of numbers as `lexical_sae/explorer/packing.py` writes them. */

/** @typedef {{dtype: string, base64: string}} Packed */

/** @type {Record<string, new (buffer: ArrayBuffer) => ArrayLike<number>>} */
const KINDS = { float32: Float32Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array };

/**
 * The numbers of a column.
 * @param {Packed} column
 * @returns {ArrayLike<number>}
 */
export function unpacked(column) {
  const letters = atob(column.base64);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const Kind = KINDS[column.dtype];
  if (!Kind) throw new Error(`a column of ${column.dtype} cannot be read`);
  return new Kind(bytes.buffer);
}
