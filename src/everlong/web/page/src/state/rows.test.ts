import { describe, expect, it } from "vitest";
import type { Row } from "../api";
import { merge, outcomes, shown } from "./rows";

const row = (order: number, more: Partial<Row> = {}): Row => ({
  order, id: `${order}`, time: 0, kind: "message", role: "user", text: "", thinking: "", images: [], calls: [],
  results: [], pinned: false, sent: "", covers: null, reason: "", messages: null, kept: null, shortened: null, left_out: null, tokens_before: null, tokens_after: null, stands: true,
  ...more,
});
const rows = (...orders: number[]) => orders.map((order) => row(order));
const orders = (list: Row[]) => list.map((one) => one.order);
const result = (call: string) => ({ call, name: "read", text: "found", cut: false, ref: null, failed: false });

describe("merge", () => {
  it.each([
    ["newer rows go to the end", rows(1, 2), rows(3), [1, 2, 3]],
    ["older rows go to the start", rows(5, 6), rows(3, 4), [3, 4, 5, 6]],
    ["rows known already are replaced", rows(1, 2, 3), rows(2, 3, 4), [1, 2, 3, 4]],
    ["nothing into something", rows(1), [], [1]],
    ["something into nothing", [], rows(1), [1]],
  ])("%s", (_, old, fresh, wanted) => expect(orders(merge(old, fresh))).toEqual(wanted));

  it("takes the newer version of a row", () => {
    expect(merge(rows(1, 2), [row(2, { sent: "left out" })])[1].sent).toBe("left out");
  });
});

describe("results and their calls", () => {
  const calls = row(1, { role: "assistant", calls: [{ id: "a", name: "read", arguments: "" }] });
  const answer = row(2, { role: "tool", results: [result("a")] });
  it("shows a result with its call", () => expect(orders(shown([calls, answer]))).toEqual([1]));
  it("shows a result alone while its call is not loaded", () => expect(orders(shown([answer]))).toEqual([2]));
  it("finds the outcome of a call", () => expect(outcomes([calls, answer]).get("a")?.row).toBe(answer));
});
