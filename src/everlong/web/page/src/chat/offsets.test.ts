import { expect, it } from "vitest";
import { indexAt, offsetsOf } from "./offsets";

const offsets = offsetsOf([10, 20, 30], (height) => height);

it("adds the heights up", () => expect([...offsets]).toEqual([0, 10, 30, 60]));
it.each([
  [-5, 0],
  [0, 0],
  [9, 0],
  [10, 1],
  [29, 1],
  [30, 2],
  [500, 2],
])("at %i px stands item %i", (place, index) => expect(indexAt(offsets, place)).toBe(index));
it("has a place in an empty list", () => expect(indexAt(offsetsOf([], () => 0), 3)).toBe(0));
