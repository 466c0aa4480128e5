import { expect, it } from "vitest";
import { escapeHtml, highlight } from "./highlight";

const CASES: [string, string, string, string][] = [
  ["a word", "js", "return x", '<span class="word">return</span> x'],
  ["a string", "py", "'a'", '<span class="string">&#39;a&#39;</span>'],
  ["a hash is a note in python", "python", "# why", '<span class="note"># why</span>'],
  ["a hash is none in javascript", "js", "#x", "#x"],
  ["plain text keeps its look", "text", "return 1", "return 1"],
  ["no language", "", "<b>", "&lt;b&gt;"],
  ["HTML in a note stays text", "js", "// <script>", '<span class="note">// &lt;script&gt;</span>'],
];
it.each(CASES)("%s", (_, language, code, html) => expect(highlight(code, language)).toBe(html));

it("never loses a letter", () => {
  const code = "/* open \"<x>\" `tick` 'a\\'b' 1e9 #&";
  for (const language of ["js", "py", "sh", ""]) {
    const text = highlight(code, language).replace(/<\/?span[^>]*>/g, "");
    expect(text).toBe(escapeHtml(code));
  }
});
