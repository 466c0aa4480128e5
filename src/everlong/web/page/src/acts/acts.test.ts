import { describe, expect, it } from "vitest";
import { actOf, exitOf, folderOf } from "./acts";
import { diffOf, readDiff } from "./diff";

const call = (name: string, given: unknown) => ({ id: "c", name, arguments: given });

describe("diffs", () => {
  it("have numbers and counts", () => {
    const diff = readDiff("@@ -3,3 +3,2 @@\n same\n-two\n-three\n+2\n\\ No newline at end of file");
    expect(diff.lines.map(({ tone, at }) => [tone, at])).toEqual([
      ["place", null],
      ["", 3],
      ["removed", 4],
      ["removed", 5],
      ["added", 4],
      ["place", null],
    ]);
    expect([diff.added, diff.removed]).toEqual([1, 2]);
  });
  it("tell no number behind lines that are left out", () => {
    expect(readDiff("@@ -1 +1 @@\n-a\n⟨20 lines⟩\n+b").lines.map((line) => line.at)).toEqual([null, 1, null, null]);
  });
  it("are made of two texts, and what both have stays", () => {
    expect(diffOf("a\nb\nc\n", "a\nB\nc\nd\n").lines.map((line) => line.text)).toEqual([" a", "-b", "+B", " c", "+d"]);
    expect(diffOf("", "a\n")).toMatchObject({ added: 1, removed: 0 });
    expect(diffOf("x\n".repeat(500), "y")).toMatchObject({ added: 1, removed: 500 });
  });
});

describe("acts", () => {
  it("are read from calls of our own tools", () => {
    expect(actOf(call("edit_file", { path: "a", old_text: "x", new_text: "y" }))).toMatchObject({ kind: "edit", path: "a" });
    expect(actOf(call("write_file", '{"path": "a", "content": "x\\ny"}'))).toMatchObject({ kind: "write", diff: { added: 2 } });
    expect(actOf(call("shell", { command: "ls" }))).toEqual({ kind: "command", command: "ls", folder: "." });
    for (const other of [call("shell", '{"comm'), call("recall", { words: "a" }), call("edit_file", { path: 3 })]) {
      expect(actOf(other)).toBeNull();
    }
  });
  it("end with a code, or in words", () => {
    expect(exitOf("hi\n[exit code 0]")).toEqual({ code: 0 });
    expect(exitOf("[exit code 0]\nno\n[exit code 2]\n[the sandbox has no network]")).toEqual({ code: 2 });
    expect(exitOf("[stopped after 5 seconds; give it more]")).toEqual({ words: "stopped after 5 seconds; give it more" });
    expect(exitOf("nothing of the kind")).toBeNull();
  });
  it("name their folder", () => {
    expect([folderOf("cd 'a b' && ls", "ls"), folderOf("ls", "ls"), folderOf("cd x && ls", "cd x && ls")]).toEqual(["'a b'", ".", "."]);
  });
});
