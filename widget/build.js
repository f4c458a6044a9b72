// Builds what the Python package serves. With --check it builds beside and says what differs; nothing is written then.
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "vite";

const here = fileURLToPath(new URL(".", import.meta.url));
const served = join(here, "../src/citewell/web");
const SCRIPTS = { page: "chat.js", widget: "widget.js", library: "library.js", typeset: "math.js" };
const MOST_BYTES = 25_000; // gzipped, each
const MOST_FOR = { "math.js": 65_000 }; // only fetched where a formula is shown

async function into(folder) {
  for (const [entry, fileName] of Object.entries(SCRIPTS)) {
    await build({
      root: here,
      configFile: false,
      logLevel: "warn",
      build: {
        outDir: folder,
        emptyOutDir: false,
        target: "es2022",
        cssTarget: ["chrome123", "firefox120", "safari17.5"], // those know light-dark() and nesting
        minify: true,
        rolldownOptions: { output: { minify: true } }, // else a module keeps its spaces
        lib: {
          entry: join(here, `src/${entry}.ts`),
          formats: [entry === "typeset" ? "es" : "iife"],
          name: "citewell",
          fileName: () => fileName,
        },
      },
    });
  }
  await mkdir(join(folder, "languages"), { recursive: true });
  await cp(join(here, "src/languages"), join(folder, "languages"), { recursive: true });
  await cp(join(here, "pages"), folder, { recursive: true });
  await cp(join(here, "node_modules/temml/LICENSE"), join(folder, "math.LICENSE"));
}

async function contents(folder) {
  const names = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((one) => one.isFile());
  const paths = names.map((one) => join(one.parentPath, one.name)).sort();
  return new Map(await Promise.all(paths.map(async (path) => [path.slice(folder.length + 1), await readFile(path)])));
}

const fresh = await mkdtemp(join(tmpdir(), "citewell-web-"));
try {
  await into(fresh);
  const made = await contents(fresh);
  const faults = [];
  for (const [name, bytes] of made) {
    const size = gzipSync(bytes, { level: 9 }).length;
    if (name.endsWith(".js")) console.log(`${name}: ${size} bytes gzipped`);
    const most = MOST_FOR[name] ?? MOST_BYTES;
    if (name.endsWith(".js") && size > most) faults.push(`${name} has ${size} bytes gzipped; ${most} are allowed`);
  }
  if (process.argv.includes("--check")) {
    const there = await contents(served);
    for (const name of new Set([...made.keys(), ...there.keys()])) {
      if (!made.get(name)?.equals(there.get(name) ?? Buffer.of()))
        faults.push(`src/citewell/web/${name} is not what widget/ gives; run \`make web\``);
    }
  } else {
    await rm(served, { recursive: true, force: true });
    for (const [name, bytes] of made) {
      await mkdir(dirname(join(served, name)), { recursive: true });
      await writeFile(join(served, name), bytes);
    }
  }
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length ? 1 : 0;
} finally {
  await rm(fresh, { recursive: true });
}
