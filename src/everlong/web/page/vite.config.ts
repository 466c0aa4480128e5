import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: "../built",
    emptyOutDir: true,
    target: "es2022",
    // The policy of the server is `default-src 'self'`: nothing may be inlined as data: or as script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8787" } },
  test: { include: ["src/**/*.test.ts"] },
});
