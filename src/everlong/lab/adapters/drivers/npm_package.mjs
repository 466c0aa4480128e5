// The npm package of this checkout, built as npm would install it: into the folder that is named.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const source = fileURLToPath(new URL("../../../../../packages/everlong", import.meta.url));
const from = createRequire(process.env.NODE_PATH + "/here.js");

export function build(folder) {
  if (!existsSync(source)) throw new Error("the npm package is only in a checkout of everlong: packages/everlong");
  mkdirSync(folder, { recursive: true });
  execFileSync(process.execPath, [from.resolve("typescript/bin/tsc"), "-p", source, "--outDir", `${folder}/dist`]);
  for (const name of ["package.json", "openclaw.plugin.json"]) copyFileSync(`${source}/${name}`, `${folder}/${name}`);
  return folder;
}

// The lab reaches this file by a link.
if (import.meta.url === pathToFileURL(realpathSync(process.argv[1])).href) build(process.argv[2]);
