/**
 * A browser that was started without a language (LANG=C) names one that Intl refuses, such as "en-US@posix".
 *
 * Every formatter would then throw, also those of libraries. So this module, the first that the page imports, corrects
 * the name before anything else runs.
 */

/** A language name that Intl accepts.  "en-US@posix" -> "en-US", "C" -> "en-US", "zh-CN" -> "zh-CN" */
export function usable(language: string): string {
  for (const name of [language, language.split(/[@._]/)[0]]) {
    try {
      return Intl.getCanonicalLocales(name)[0] ?? "en-US";
    } catch {
      // try the next name
    }
  }
  return "en-US";
}

const named = globalThis.navigator?.language; // tests run without a browser
if (named && usable(named) !== named) Object.defineProperty(navigator, "language", { value: usable(named) });
