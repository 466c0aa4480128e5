import { expect, it } from "vitest";
import { en } from "./en";
import { zh } from "./zh";

const places = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).sort();

it.each(Object.keys(en) as (keyof typeof en)[])("%s has the same places in both languages", (key) => {
  expect(places(zh[key])).toEqual(places(en[key]));
});
