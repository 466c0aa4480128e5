import { describe, expect, it } from "vitest";
import type { Model } from "../api";
import { bounded, fits, grouped } from "./groups";

const model = (id: string): Model => ({
  id,
  name: id.slice(id.indexOf("/") + 1),
  source: id.slice(0, id.indexOf("/")),
  window: null,
  window_source: "default",
  known: false,
  output: null,
  input_price: null,
  output_price: null,
});
const MODELS = ["openai/gpt-4o", "openai/gpt-4o-mini", "here/qwen-3", "here/gpt-oss"].map(model);
const ids = (groups: ReturnType<typeof grouped>) => groups.map((group) => [group.key, group.models.map((one) => one.id)]);

describe("the models of the picker", () => {
  it("are found by words in any order", () => {
    expect(fits(MODELS[1], "mini gpt")).toBe(true);
    expect(fits(MODELS[0], "mini")).toBe(false);
  });
  it("stand in groups, favourites and recent ones first, and nothing empty", () => {
    expect(ids(grouped(MODELS, "", ["here/qwen-3", "gone/x"], ["here/qwen-3", "openai/gpt-4o"]))).toEqual([
      ["favourites", ["here/qwen-3"]],
      ["recent", ["openai/gpt-4o"]],
      ["source:openai", ["openai/gpt-4o", "openai/gpt-4o-mini"]],
      ["source:here", ["here/qwen-3", "here/gpt-oss"]],
    ]);
    expect(ids(grouped(MODELS, "oss", [], []))).toEqual([["source:here", ["here/gpt-oss"]]]);
    expect(grouped(MODELS, "nothing", [], [])).toEqual([]);
  });
  it("are drawn a part at a time", () => {
    expect(ids(bounded(grouped(MODELS, "", [], []), 3))).toEqual([
      ["source:openai", ["openai/gpt-4o", "openai/gpt-4o-mini"]],
      ["source:here", ["here/qwen-3"]],
    ]);
  });
});
