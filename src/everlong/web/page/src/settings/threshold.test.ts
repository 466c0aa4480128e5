import { expect, it } from "vitest";
import { BANDS, LEAST, MOST, placeOf, startsAt, STEP, STEPS, strategy } from "./threshold";

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

it("CB-4: the bands meet, cover the slider and are those of the strategy", () => {
  expect(BANDS.map((band) => placeOf(band.from))).toEqual([0, ...BANDS.slice(0, -1).map((band) => placeOf(band.to))]);
  expect(placeOf(BANDS[2].to)).toBe(100);
  for (const step of STEPS) {
    const inside = BANDS.filter((band) => step >= band.from && step <= band.to).map((band) => band.name);
    expect(inside).toContain(strategy(step));
  }
});
