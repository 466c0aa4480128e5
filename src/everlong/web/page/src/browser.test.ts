import { expect, it } from "vitest";
import { usable } from "./browser";

it.each([
  ["en-US", "en-US"],
  ["zh-CN", "zh-CN"],
  ["en-US@posix", "en-US"],
  ["fr_FR.UTF-8", "fr"],
  ["C", "en-US"],
  ["", "en-US"],
])("reads the language %j as %j", (language, expected) => expect(usable(language)).toBe(expected));
