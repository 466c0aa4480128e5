import { expect, it } from "vitest";
import { readRoute, threadHash, type Route } from "./route";

const CASES: [string, Route][] = [
  ["", { page: "home" }],
  ["#/", { page: "home" }],
  ["#/t/", { page: "home" }],
  ["#/t/abc", { page: "thread", id: "abc" }],
  ["#/t/abc/12", { page: "thread", id: "abc", order: 12 }],
  ["#/t/abc/before/40", { page: "thread", id: "abc", point: 40 }],
  ["#/t/a%2Fb", { page: "thread", id: "a/b" }],
  ["#/t/100%", { page: "thread", id: "100%" }],
  ["#/settings", { page: "settings" }],
  ["#/elsewhere", { page: "home" }],
];
it.each(CASES)("%s", (hash, wanted) => expect(readRoute(hash)).toEqual(wanted));

it.each([{}, { order: 3 }, { point: 8 }])("an address is read as it was written: %o", (where) => {
  expect(readRoute(threadHash("a b/c", where))).toEqual({ page: "thread", id: "a b/c", ...where });
});
