import { describe, expect, it } from "vitest";
import type { Edit } from "../api";
import { en } from "../words/en";
import { reasons, whatWasSent } from "./words";

const edit = (step: string, action = "shorten", before = 10, after = 4): Edit => ({ step, action, before, after, why: "", ref: null });

describe("what the model saw, in words", () => {
  it("tells each reason once, with the tokens of all its changes", () => {
    expect(reasons([edit("soft_trim"), edit("soft_trim", "shorten", 5, 1), edit("terminal")])).toEqual([
      { key: "why.step.soft_trim", before: 15, after: 5 },
      { key: "why.step.terminal", before: 10, after: 4 },
    ]);
  });
  it("never shows the name of a step that it does not know", () => {
    expect(reasons([edit("my_own_step", "drop")])[0].key).toBe("why.change.drop");
    expect(reasons([edit("my_own_step", "unheard of")])[0].key).toBe("why.change.shorten");
  });
  it("has a sentence for every fate", () => {
    for (const sent of ["whole", "shortened", "left out", "covered", ""] as const) expect(en[whatWasSent(sent, false)]).toBeTruthy();
    expect(whatWasSent("whole", true)).toBe("why.sent.pinned");
  });
});
