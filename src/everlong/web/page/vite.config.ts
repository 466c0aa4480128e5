import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: "../built",
    emptyOutDir: true,
    target: "es2022",
    // The policy of the page allows one script and one style, by their digests, which the build writes into it.
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    rollupOptions: { output: { inlineDynamicImports: true } },
  },
  server: { proxy: { "/everlong": "http://127.0.0.1:8787" } },
  test: { include: ["src/**/*.test.ts"] },
});
