import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { type Plugin, transformWithEsbuild } from "vite";
import { defineConfig } from "vitest/config";

/** /diagrams.html: mermaid and the script that asks it, in one file, because its policy lets it load nothing. */
function diagrams(): Plugin {
  async function page(): Promise<string> {
    const name = "src/text/frame.ts";
    const { code } = await transformWithEsbuild(await readFile(name, "utf-8"), name, { minify: true, target: "es2022" });
    const script = `${await readFile("node_modules/mermaid/dist/mermaid.min.js", "utf-8")}\n{${code}}`;
    if (/<\/?script/i.test(script)) throw new Error("mermaid's script cannot stand inside a page");
    return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Diagrams</title><body></body><script>${script}</script></html>`;
  }
  return {
    name: "diagrams",
    async config() {
      const digest = createHash("sha256").update(await page()).digest("hex").slice(0, 8);
      return { define: { DIAGRAMS_PAGE: JSON.stringify(`/diagrams.html?${digest}`) } };
    },
    async generateBundle() {
      this.emitFile({ type: "asset", fileName: "diagrams.html", source: await page() });
    },
    configureServer(server) {
      server.middlewares.use("/diagrams.html", async (_, answer) => {
        answer.setHeader("content-type", "text/html; charset=utf-8");
        answer.end(await page());
      });
    },
  };
}

/** KaTeX names each font in three forms; every browser of today takes the first. */
function modernFonts(): Plugin {
  return {
    name: "modern-fonts",
    enforce: "pre",
    transform(code, id) {
      if (!id.includes("katex.min.css")) return null;
      return code.replace(/,url\([^)]*\.(?:woff|ttf)\) format\("[^"]*"\)/g, "");
    },
  };
}

export default defineConfig({
  plugins: [svelte(), diagrams(), modernFonts()],
  build: {
    outDir: "../built",
    emptyOutDir: true,
    target: "es2022",
    // The policy of the page allows its scripts and one style by their digests, which the build writes into it. What is
    // imported later is held by an import map; a tag that loads it earlier would need its digest a second time.
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
  },
  server: { proxy: { "/everlong": "http://127.0.0.1:8787" } },
  test: { include: ["src/**/*.test.ts"] },
});
