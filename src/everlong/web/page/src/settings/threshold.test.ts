import { expect, it } from "vitest";
import { LEAST, MOST, startsAt, STEP, strategy } from "./threshold";

it.each([
  [40, "cost"],
  [55, "cost"],
  [60, "balanced"],
  [75, "balanced"],
  [80, "keep"],
  [90, "keep"],
] as const)("CB-4: %d%% is %s", (threshold, expected) => expect(strategy(threshold)).toBe(expected));

it("CB-4: steps of 5 from 40 to 90", () => expect([LEAST, MOST, STEP]).toEqual([40, 90, 5]));

it("CB-4: the figure is the server's, step by step", () => {
  expect(startsAt([67_200, 75_600, 84_000, 92_400, 100_800], 60)).toBe(100_800);
  expect(startsAt([], 60)).toBeUndefined();
});
