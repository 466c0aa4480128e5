/** What a compaction says about itself: its figures, fixed when it happened, and why it came. Pure. */
import type { CompactionOutcome, Row } from "../api";
import { number, t, type Key } from "../words";

/** The engine's reasons by their first words, also of earlier versions; other reasons mean nothing to a reader. */
const REASONS: [string, Key][] = [
  ["threshold reached", "cut.reason.threshold"],
  ["larger than the window", "cut.reason.window"],
  ["larger than the limit in bytes", "cut.reason.bytes"],
  ["requested", "cut.reason.by_hand"],
  ["high mark", "cut.reason.threshold"],
  ["more than the window takes", "cut.reason.window"],
  ["more bytes than it takes", "cut.reason.bytes"],
  ["cold cache", "cut.reason.idle"],
  ["overflow", "cut.reason.overflow"],
  ["asked for", "cut.reason.by_hand"],
];

/** "before → after tokens"; "" if they are unknown, or if the compaction does not change what is sent. */
export function sizes(row: Pick<Row, "tokens_before" | "tokens_after">): string {
  if (!row.tokens_before || !row.tokens_after) return "";
  return t("chat.tokens", { before: number(row.tokens_before), after: number(row.tokens_after) });
}

/** How many messages it covers; "" for a compaction of an earlier version, which did not count them. */
export function covered(row: Pick<Row, "messages">): string {
  if (!row.messages) return "";
  return t(row.messages === 1 ? "cut.messages_one" : "cut.messages_other", { count: number(row.messages) });
}

/** What happened to the messages; the parts add up to all of them.  "12 in the summary · 3 shortened · 5 sent whole" */
export function fates(row: Row): string {
  if (!row.messages) return "";
  const parts: [number | null, Key][] = [
    [row.left_out, row.kind === "summary" ? "cut.in_summary" : "cut.left_out"],
    [row.shortened, "cut.shortened"],
    [row.kept, "cut.kept"],
  ];
  return parts.flatMap(([count, key]) => (count ? [t(key, { count: number(count) })] : [])).join(" · ");
}

export function because(row: Pick<Row, "reason">): string {
  const found = REASONS.find(([start]) => row.reason.startsWith(start));
  return found ? t(found[1]) : "";
}

/** Why there is no summary: the words for each reason that the server names. */
const WHYS: Record<string, Key> = {
  nothing_new: "outcome.reason.nothing_new",
  no_gain: "outcome.reason.no_gain",
  changed: "outcome.reason.changed",
  cancelled: "outcome.reason.cancelled",
  interrupted: "outcome.reason.interrupted",
  no_author: "outcome.reason.no_author",
  resting: "outcome.reason.resting",
  slow: "outcome.reason.slow",
  length: "outcome.reason.length",
  window: "outcome.reason.window",
  busy: "outcome.reason.busy",
  key: "outcome.reason.key",
  away: "outcome.reason.away",
  refused: "outcome.reason.refused",
  store: "outcome.reason.store",
  wrong: "outcome.reason.wrong",
};

export type Ended = { state: string; reason: string } & Partial<CompactionOutcome>;

function filled(now: Ended): { count: string; before: string; after: string } {
  return { count: number(now.messages ?? 0), before: number(now.tokens_before ?? 0), after: number(now.tokens_after ?? 0) };
}

/** How a compaction ended, in one line: with its figures, or with why there is no summary. */
export function ending(now: Ended): string {
  if (now.state === "done") return now.messages ? t("outcome.done", filled(now)) : t("outcome.ready");
  const reason = t(WHYS[now.reason] ?? "outcome.reason.refused", { model: now.model || t("outcome.some_model") });
  if (now.state === "skipped") return t("outcome.skipped", { reason });
  return now.state === "failed" ? t("outcome.failed", { reason }) : "";
}

/** What happens after a failure. */
export function whatNow(now: Ended): string {
  if (now.state !== "failed") return "";
  return now.by_rules && now.messages ? t("outcome.next_by_rules", filled(now)) : t("outcome.next");
}

/** What the model's server said, as a detail. */
export function itsWords(now: Ended): string {
  return now.state === "failed" && now.detail ? t("outcome.said", { detail: now.detail }) : "";
}
