import { expect, test } from "vitest";
import { insideFrame } from "./frames";

test("what was brought back is shown without its frame", () => {
  expect(insideFrame("<background-0a1b2c3d>\nQuoted:\n\nYes.\n\nNo.\n</background-0a1b2c3d>")).toBe("Yes.\n\nNo.");
  expect(insideFrame("<background-0a1b2c3d>\nYes.\n</background-0a1b2c3d>")).toBe("Yes.");
  expect(insideFrame("plain words")).toBe("plain words");
});
