/** The answer that another model is to give again. */
class Again {
  /** The row of the answer; null if there is none. */
  order = $state<number | null>(null);
}

export const again = new Again();
