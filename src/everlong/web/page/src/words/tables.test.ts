import { expect, it } from "vitest";
import { en, type Key } from "./en";
import { TABLES } from "./tables";

const places = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([place]) => place).sort();

it.each(Object.keys(en) as Key[])("%s has the same places in all languages", (key) => {
  for (const table of Object.values(TABLES)) expect(places(table[key])).toEqual(places(en[key]));
});

it.each(Object.keys(TABLES))("%s has every word, and no other", (language) => {
  expect(Object.keys(TABLES[language]).sort()).toEqual(Object.keys(en).sort());
});
