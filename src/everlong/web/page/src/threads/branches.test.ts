import { expect, it } from "vitest";
import type { BranchNode } from "../api";
import { twigs } from "./branches";

const node = (id: string, parent: string | null, order: number) => ({ id, parent, order }) as BranchNode;
const told = (nodes: BranchNode[], root: string) => twigs(nodes, root).map((twig) => `${"-".repeat(twig.depth)}${twig.node.id}`);

it.each([
  ["a thread alone", [node("a", null, 0)], ["a"]],
  [
    "each below its parent, the earliest first",
    [node("a", null, 0), node("late", "a", 8), node("early", "a", 2), node("inner", "early", 4)],
    ["a", "-early", "--inner", "-late"],
  ],
  ["a ring is walked once", [node("a", "b", 0), node("b", "a", 0)], ["a", "-b"]],
  ["nothing", [], []],
])("%s", (_, nodes, wanted) => expect(told(nodes, "a")).toEqual(wanted));
