/** The little of Node that vite.config.ts uses. */
declare module "node:crypto" {
  export function createHash(name: "sha256"): { update(text: string): { digest(form: "hex"): string } };
}
declare module "node:fs/promises" {
  export function readFile(path: string, encoding: "utf-8"): Promise<string>;
}
