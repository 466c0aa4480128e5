/** The languages of the page: a language is one table and one row here. The server accepts the same names as a setting. */
import { en, type Table } from "./en";
import { zh } from "./zh";

export const TABLES: Record<string, Table> = { en, zh };
/** Spoken where no table fits. */
export const FALLBACK = "en";
