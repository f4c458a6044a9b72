// Builds the pages, scripts and styles that the Python package serves. With --check it writes nothing and lists what differs.
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";

const here = fileURLToPath(new URL(".", import.meta.url));
const webFolder = join(here, "../src/citewell/web");
const ENTRIES = {
  "chat.js": "pages/chat-page.ts",
  "widget.js": "pages/widget.ts",
  "library.js": "pages/library-page.ts",
  "math.js": "markdown/typeset.ts",
};
const MAX_BYTES = 25_000; // gzipped, for each script
const MAX_BYTES_OF = { "math.js": 65_000 }; // only fetched where a formula is shown

async function buildInto(folder) {
  for (const [fileName, entry] of Object.entries(ENTRIES)) {
    await build({
      root: here,
      configFile: false,
      logLevel: "warn",
      build: {
        outDir: folder,
        emptyOutDir: false,
        target: "es2022",
        cssTarget: ["chrome123", "firefox120", "safari17.5"], // these support light-dark() and nesting
        minify: true,
        rolldownOptions: { output: { minify: true } }, // otherwise an ES module keeps its whitespace
        lib: {
          entry: join(here, "src", entry),
          formats: [fileName === "math.js" ? "es" : "iife"],
          name: "citewell",
          fileName: () => fileName,
        },
      },
    });
  }
  await mkdir(join(folder, "languages"), { recursive: true });
  await cp(join(here, "src/i18n/languages"), join(folder, "languages"), { recursive: true });
  await cp(join(here, "pages"), folder, { recursive: true });
  await cp(join(here, "node_modules/temml/LICENSE"), join(folder, "math.LICENSE"));
}

/** The content of every file below a folder, by its path in there. */
async function readFiles(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const paths = files.map((file) => join(file.parentPath, file.name)).sort();
  return new Map(await Promise.all(paths.map(async (path) => [path.slice(folder.length + 1), await readFile(path)])));
}

const outputFolder = await mkdtemp(join(tmpdir(), "citewell-web-"));
try {
  await buildInto(outputFolder);
  const built = await readFiles(outputFolder);
  const errors = [];
  for (const [name, bytes] of built) {
    if (!name.endsWith(".js")) continue;
    const size = gzipSync(bytes, { level: 9 }).length;
    const maxSize = MAX_BYTES_OF[name] ?? MAX_BYTES;
    console.log(`${name}: ${size} bytes gzipped`);
    if (size > maxSize) errors.push(`${name} has ${size} bytes gzipped; the limit is ${maxSize}`);
  }
  if (process.argv.includes("--check")) {
    const committed = await readFiles(webFolder);
    for (const name of new Set([...built.keys(), ...committed.keys()])) {
      if (!built.get(name)?.equals(committed.get(name) ?? Buffer.of()))
        errors.push(`src/citewell/web/${name} differs from what widget/ builds; run \`make web\``);
    }
  } else {
    await rm(webFolder, { recursive: true, force: true });
    for (const [name, bytes] of built) {
      await mkdir(dirname(join(webFolder, name)), { recursive: true });
      await writeFile(join(webFolder, name), bytes);
    }
  }
  for (const error of errors) console.error(error);
  process.exitCode = errors.length ? 1 : 0;
} finally {
  await rm(outputFolder, { recursive: true });
}
