import { describe, expect, it } from "vitest";
import { fill, level, partShares, readWindow, usage } from "./meter";

describe("how full the window is", () => {
  it.each([
    ["below the mark", 50, "calm"],
    ["at the mark", 60, "calm"],
    ["beyond the mark", 61, "over"],
    ["nearly full", 90, "full"],
    ["beyond the limit", 140, "full"],
  ] as const)("%s", (_, tokens, expected) => {
    expect(level({ tokens, limit: 100, high: 60 })).toBe(expected);
  });

  it("is a share of the whole window, or of none", () => {
    expect(usage({ tokens: 45_230, window: 128_000 })).toBeCloseTo(0.3534);
    expect(usage({ tokens: 45_230, window: null })).toBeNull();
  });

  it("has no share of a limit that is not there", () => {
    expect(fill({ tokens: 10, limit: 0 })).toBe(0);
  });
});

describe("what it is made of", () => {
  it("keeps the order of the window and leaves out what is empty", () => {
    expect(partShares({ user: 30, system: 10, tools: 0 })).toEqual([
      { part: "system", tokens: 10, share: 0.25 },
      { part: "user", tokens: 30, share: 0.75 },
    ]);
  });
  it("is nothing for an empty thread", () => expect(partShares({})).toEqual([]));
});

describe("a window as people write it", () => {
  it.each([
    ["128000", 128_000],
    ["128k", 128_000],
    ["1,000,000", 1_000_000],
    ["1.5M", 1_500_000],
    ["12.8万", 128_000],
    [" 32 768 ", 32_768],
    ["", null],
    ["many", null],
    ["12", null],
    ["1e9", null],
    ["-4000", null],
  ])("%j", (text, tokens) => expect(readWindow(text)).toBe(tokens));
});
