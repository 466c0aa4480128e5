import { expect, it } from "vitest";
import { usable } from "./browser";

it.each([
  ["en-US", "en-US"],
  ["zh-CN", "zh-CN"],
  ["en-US@posix", "en-US"],
  ["zh_CN.UTF-8", "zh"],
  ["C", "en-US"],
  ["", "en-US"],
])("reads the language %j as %j", (language, expected) => expect(usable(language)).toBe(expected));
