/** Threads in groups by their age. Pure. */
import type { Thread } from "../api";

export type Age = "threads.today" | "threads.yesterday" | "threads.week" | "threads.older";
const AGES: { name: Age; days: number }[] = [
  { name: "threads.today", days: 0 },
  { name: "threads.yesterday", days: 1 },
  { name: "threads.week", days: 7 },
  { name: "threads.older", days: Infinity },
];
const DAY = 86_400_000;
const time = ({ updated }: Thread) => (typeof updated === "number" ? updated * 1_000 : Date.parse(updated));

/** The groups that hold something, newest first. */
export function byAge(threads: Thread[], now: Date): { name: Age; threads: Thread[] }[] {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const age = (thread: Thread): Age => {
    const days = Math.ceil((midnight - time(thread)) / DAY);
    return AGES.find((one) => days <= one.days)?.name ?? "threads.older";
  };
  return AGES.map(({ name }) => ({ name, threads: threads.filter((thread) => age(thread) === name) })).filter(
    (group) => group.threads.length > 0,
  );
}
