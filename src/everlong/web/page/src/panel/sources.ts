/** Where the figure of a window comes from, in words. */
import { t } from "../words";

const SOURCES = ["user", "given", "learned", "asked", "served", "registry", "default"] as const;

/** "registry" -> "from the model list" */
export function windowSource(source: string): string {
  const known = SOURCES.find((name) => name === source);
  return known ? t(`panel.source.${known}`) : source;
}
