/** What the next message will do to the context, in words: what the server says will happen, and nothing else. */
import type { Context } from "../contract";
import { number, t } from "../words";

/** One sentence on when the next compaction comes. */
export function prediction(context: Context, busy = false): string {
  if (busy) return t("panel.next.running");
  if (!context.known) return t("panel.switch_unknown");
  if (context.next === "trim") return t("panel.next.trim");
  if (!context.auto_on) return t("panel.next.off");
  if (context.next !== "nothing") return t(`panel.next.${context.next}`);
  const { soon, high, tokens } = context;
  if (soon === null || high === null) return t("panel.next.rules");
  const fills = { soon: number(soon), high: number(high), room: number(Math.max(0, soon - tokens)) };
  if (context.undone) return t("panel.next.undone", fills);
  return t(soon < high ? "panel.next.from" : "panel.next.at", fills);
}

/** What a change of the model means for the thread, in words; null if the model is the same. */
export function switched(before: Context, now: Context): string | null {
  if (before.model === now.model) return null;
  const model = now.model.slice(now.model.indexOf("/") + 1);
  if (now.window === null) return t("panel.switched_unknown", { model, assumed: number(now.assumed ?? 0) });
  const fills = { model, window: number(now.window) };
  const larger = (before.window ?? before.assumed ?? 0) <= now.window;
  if (now.next !== "compaction" && now.next !== "trim") return t("panel.switched_fits", fills);
  // In a window that is no smaller, it was due before the change.
  if (larger) return t(`panel.next.${now.next}`);
  return t(now.next === "trim" ? "panel.switched_trim" : "panel.switched_smaller", fills);
}
