import { describe, expect, it } from "vitest";
import { changesPrefix, formOf, NO_OPTIONS, readForm } from "./form";

const FULL = { system: "Be brief.", temperature: 0.7, top_p: 0.9, max_tokens: 4000, tools: false };

describe("the form of the options", () => {
  it("says what the options say, and the other way round", () => {
    for (const options of [FULL, NO_OPTIONS]) expect(readForm(formOf(options))).toEqual({ options, wrong: {} });
  });
  it("takes numbers as people write them", () => {
    const read = readForm({ ...formOf(NO_OPTIONS), temperature: " 0,7 ", max_tokens: "4,000" });
    expect(read).toEqual({ options: { ...NO_OPTIONS, temperature: 0.7, max_tokens: 4000 }, wrong: {} });
  });
  it("names every field that is wrong", () => {
    const wrong = { system: "x".repeat(32_001), temperature: "2.1", top_p: "0", max_tokens: "1.5", tools: "on" as const };
    expect(Object.keys(readForm(wrong).wrong)).toEqual(["system", "temperature", "top_p", "max_tokens"]);
    expect(readForm({ ...formOf(NO_OPTIONS), temperature: "warm" }).wrong).toEqual({ temperature: "options.temperature_wrong" });
  });
  it("knows what costs the cache", () => {
    expect(changesPrefix(NO_OPTIONS, { ...NO_OPTIONS, temperature: 1 })).toBe(false);
    expect(changesPrefix(NO_OPTIONS, { ...NO_OPTIONS, system: "a" })).toBe(true);
    expect(changesPrefix(NO_OPTIONS, { ...NO_OPTIONS, tools: true })).toBe(true);
  });
});
