/**
 * The keys of the gateway's clients: the calls of its API, and the limits that a key may have.
 *
 * From this machine, the server accepts the calls; from elsewhere it needs an operator's key, which stays in memory.
 */
import { ApiError } from "../api";

/** Every limit, in the order in which they are shown. */
export const LIMITS = [
  "requests_per_minute",
  "tokens_per_minute",
  "at_once",
  "requests_per_day",
  "tokens_per_day",
  "dollars_per_day",
  "dollars_per_month",
] as const;
export type Limit = (typeof LIMITS)[number];
export type Limits = Partial<Record<Limit, number>>;

export interface Spent {
  requests: number;
  prompt: number;
  output: number;
  dollars: number;
  summaries: number;
  unpriced: number;
}

export interface GatewayKey {
  name: string;
  operator: boolean;
  limits: Limits;
  source: "store" | "file";
  created: string | null;
  revoked: string | null;
  last_used: string | null;
  today: Spent;
  month: Spent;
}

export interface Spending {
  days: string[];
  keys: { name: string; total: Spent; days: (Spent & { day: string })[] }[];
}

/** A key with its secret, which the server sends only once, when the key is made. */
export type MadeKey = GatewayKey & { key: string };

let operator = "";

/** Use the key of an operator from now on; "" for none. */
export function useOperator(key: string): void {
  operator = key.trim();
}

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = operator ? { authorization: `Bearer ${operator}` } : {};
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(`/everlong/${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new ApiError(0, "offline", "offline");
  }
  if (answer.ok) return (await answer.json()) as T;
  const told = (await answer.json().catch(() => ({}))) as { error?: { message?: string; code?: string } };
  throw new ApiError(answer.status, told.error?.code ?? "http", told.error?.message ?? `${answer.status}`);
}

const one = (name: string) => `keys/${encodeURIComponent(name)}`;

export const keys = {
  list: async () => (await ask<{ keys: GatewayKey[] }>("GET", "keys")).keys,
  spending: (days: number) => ask<Spending>("GET", `spend?days=${days}`),
  create: (name: string, given: { operator: boolean; limits: Limits }) => ask<MadeKey>("POST", "keys", { name, ...given }),
  /** Send every limit: a missing one is removed. */
  change: (name: string, limits: Limits) =>
    ask<GatewayKey>("PATCH", one(name), { limits: Object.fromEntries(LIMITS.map((each) => [each, limits[each] ?? null])) }),
  rotate: (name: string) => ask<MadeKey>("POST", `${one(name)}/rotate`, {}),
  revoke: (name: string) => ask<GatewayKey>("DELETE", one(name)),
};

/** The limits in the fields of a form. An empty field means no limit; null if a field is not a valid figure. */
export function readLimits(written: Partial<Record<Limit, string>>): Limits | null {
  const limits: Limits = {};
  for (const name of LIMITS) {
    const text = (written[name] ?? "").trim().replace(",", ".");
    if (!text) continue;
    const figure = Number(text);
    if (!Number.isFinite(figure) || figure <= 0 || (!inDollars(name) && !Number.isInteger(figure))) return null;
    limits[name] = figure;
  }
  return limits;
}

export function inDollars(name: Limit): boolean {
  return name.startsWith("dollars");
}

/** What all keys spent on each day: dollars, or tokens if nothing has a price. */
export function perDay(spending: Spending): { priced: boolean; values: number[] } {
  const priced = spending.keys.some((key) => key.total.dollars > 0);
  const figure = (spent: Spent) => (priced ? spent.dollars : spent.prompt + spent.output);
  const values = spending.days.map((_, at) => spending.keys.reduce((sum, key) => sum + figure(key.days[at]), 0));
  return { priced, values };
}
