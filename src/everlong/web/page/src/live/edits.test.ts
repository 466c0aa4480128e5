import { describe, expect, it } from "vitest";
import { picture, readEdits, type LiveEdit } from "./edits";

const edit = (change: Partial<LiveEdit>): LiveEdit => ({
  message: 0,
  action: "shorten",
  step: "",
  why: "",
  before: 0,
  after: 0,
  ...change,
});

describe("the edits of a request", () => {
  it("leaves out what is no edit", () => {
    const told = [{ message: 2, action: "drop", step: "s", why: "old", before: 9, after: 0, ref: null }, null, "x"];
    expect(readEdits(told)).toEqual([{ message: 2, action: "drop", step: "s", why: "old", before: 9, after: 0 }]);
  });
  it("takes an unknown action for a repair", () => expect(readEdits([{ action: "new" }])[0].action).toBe("repair"));
});

describe("the picture", () => {
  it("shows what stayed and what was touched on both sides", () => {
    const sides = picture({ before: 100, after: 60 }, [edit({ before: 50, after: 10 })]);
    expect(sides).toEqual([
      [
        { kind: "kept", tokens: 50 },
        { kind: "shorten", tokens: 50 },
      ],
      [
        { kind: "kept", tokens: 50 },
        { kind: "shorten", tokens: 10 },
      ],
    ]);
  });
  it("never shows less than nothing", () => {
    const [before] = picture({ before: 10, after: 10 }, [edit({ before: 50, after: 50 })]);
    expect(before).toEqual([{ kind: "shorten", tokens: 50 }]);
  });
});
