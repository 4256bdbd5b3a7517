// Bundles the code and the styles of the pages of `spawnscope html` and `spawnscope diff -o` into the directory from which spawnscope includes
// them. `node build.mjs --check` fails if the bundle that is checked in differs from a fresh one.
import { readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

process.chdir(new URL(".", import.meta.url).pathname);

const bundle = new URL("../src/present/html/bundle/", import.meta.url);

const bundleFiles = (entryPoints, banner) => build({
  entryPoints,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  charset: "ascii",
  legalComments: "none",
  outdir: "out",
  write: false,
  banner,
});
const results = await Promise.all([
  // Every page contains a copy of uPlot, whose licence must be part of every copy.
  bundleFiles({ page: "src/main.ts" }, {
    js: `/*! Built from crates/spawnscope/html. Contains uPlot:\n\n${await readFile("node_modules/uplot/LICENSE", "utf8")}*/`,
    css: "/*! Built from crates/spawnscope/html. Contains styles of uPlot (MIT). */",
  }),
  bundleFiles({ difference: "src/difference.ts" }, { js: "/*! Built from crates/spawnscope/html. */" }),
]);

let differs = false;
for (const file of results.flatMap((result) => result.outputFiles)) {
  const name = file.path.split("/").at(-1);
  const destination = new URL(name, bundle);
  if (process.argv.includes("--check")) {
    const current = await readFile(destination, "utf8").catch(() => "");
    if (current !== file.text) {
      console.error(`${destination.pathname} is not what crates/spawnscope/html builds: run \`npm ci && npm run build\` there`);
      differs = true;
    }
  } else {
    await writeFile(destination, file.text);
    console.log(`${name}: ${file.contents.length} bytes`);
  }
}
process.exitCode = differs ? 1 : 0;
