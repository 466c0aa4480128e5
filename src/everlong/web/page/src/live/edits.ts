/** The edits of a request as the live page reads them: the stream's values, checked once, and their picture. */

export const ACTIONS = ["shorten", "drop", "insert", "repair"] as const;
export type Action = (typeof ACTIONS)[number];

export interface LiveEdit {
  /** The place of the message in the request, from 0. */
  message: number | null;
  action: Action;
  step: string;
  why: string;
  before: number;
  after: number;
}

/** Read edits. Anything else is left out; an unknown action counts as a repair. */
export function readEdits(told: unknown[]): LiveEdit[] {
  return told.flatMap((one) => {
    if (typeof one !== "object" || one === null) return [];
    const edit = one as Record<string, unknown>;
    return [
      {
        message: typeof edit.message === "number" ? edit.message : null,
        action: ACTIONS.find((action) => action === edit.action) ?? "repair",
        step: String(edit.step ?? ""),
        why: String(edit.why ?? ""),
        before: Number(edit.before) || 0,
        after: Number(edit.after) || 0,
      },
    ];
  });
}

export interface Stretch {
  kind: Action | "kept";
  tokens: number;
}

/**
 * The request before and after as stretches of tokens: what stayed as it was, then what each kind of edit touched.
 *
 * {before: 100, after: 60} with one edit 50 -> 10 (shorten)  ->  kept 50, shorten 50  |  kept 50, shorten 10
 */
export function picture(tokens: { before: number; after: number }, edits: LiveEdit[]): [Stretch[], Stretch[]] {
  const side = (all: number, size: (edit: LiveEdit) => number): Stretch[] => {
    const touched = ACTIONS.map((kind) => ({
      kind,
      tokens: edits.reduce((sum, edit) => sum + (edit.action === kind ? size(edit) : 0), 0),
    }));
    const kept = Math.max(all - touched.reduce((sum, one) => sum + one.tokens, 0), 0);
    return [{ kind: "kept" as const, tokens: kept }, ...touched].filter((one) => one.tokens > 0);
  };
  return [side(tokens.before, (edit) => edit.before), side(tokens.after, (edit) => edit.after)];
}
