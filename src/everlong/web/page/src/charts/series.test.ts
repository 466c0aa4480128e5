import { expect, it } from "vitest";
import { stacked, total } from "./series";

it("stacks each series on those before it, and draws nothing for nothing", () => {
  expect(stacked([{ values: [1, 2] }, { values: [3, 0] }])).toEqual([
    [1, 2],
    [4, null],
  ]);
});

it("adds up", () => expect(total([1, 2, 3])).toBe(6));
