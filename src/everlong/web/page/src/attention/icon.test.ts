import { expect, test } from "vitest";
import { dotted } from "./icon";

test("the dot is drawn over the icon, and only over one that it knows", () => {
  const plain = `data:image/svg+xml;base64,${btoa('<svg viewBox="0 0 32 32"><rect/></svg>')}`;
  expect(atob(dotted(plain).split(",")[1])).toMatch(/<rect\/><circle [^>]*\/><\/svg>$/);
  expect(dotted("/mark.png")).toBe("/mark.png");
});
