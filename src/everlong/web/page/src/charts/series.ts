/** One row of figures in a chart by day, and their stacking. */

export interface Series {
  label: string;
  /** The colour token of the page, such as "--accent". */
  token: string;
  striped?: boolean;
  values: number[];
}

/** Stack each series on those before it; a zero becomes null: no bar.  [[1, 2], [3, 0]] -> [[1, 2], [4, null]] */
export function stacked(series: Pick<Series, "values">[]): (number | null)[][] {
  const below: number[] = [];
  return series.map(({ values }) =>
    values.map((value, at) => {
      below[at] = (below[at] ?? 0) + value;
      return value === 0 ? null : below[at];
    }),
  );
}

export function total(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
