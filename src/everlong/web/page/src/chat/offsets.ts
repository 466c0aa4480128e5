/** Where the rows of a list begin. Pure. */

/** The start of each item, and last the height of all.  heights 10, 20 -> 0, 10, 30 */
export function offsetsOf<T>(items: T[], heightOf: (item: T) => number): Float64Array {
  const offsets = new Float64Array(items.length + 1);
  for (let index = 0; index < items.length; index += 1) {
    offsets[index + 1] = offsets[index] + heightOf(items[index]);
  }
  return offsets;
}

/** The item at a place: the last one that begins at or before it.  (0, 10, 30), 12 -> 1 */
export function indexAt(offsets: Float64Array, place: number): number {
  let low = 0;
  let high = Math.max(offsets.length - 2, 0);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (offsets[middle] <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}
