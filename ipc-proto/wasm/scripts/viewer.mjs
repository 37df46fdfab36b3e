// Writes the viewer as one page: viewer.mjs OUT, after build.mjs.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const read = (path) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
// The modules in order; their names are different, so that one scope can have them all.
const script = ["dist/arguments.js", "dist/module.js", "dist/memory.js", "dist/trace.js", "viewer/text.js", "viewer/viewer.js"]
    .map((path) => read(path).replace(/^import .*$/gm, "").replace(/^export /gm, ""))
    .join("\n");
// Only this script may run, and nothing may be loaded or sent.
const hash = createHash("sha256").update(script).digest("base64");
const policy = `default-src 'none'; connect-src 'none'; form-action 'none'; base-uri 'none'; style-src 'unsafe-inline'; script-src 'sha256-${hash}' 'wasm-unsafe-eval'`;
writeFileSync(process.argv[2], read("viewer/index.html").replace("CSP", () => policy).replace("SCRIPT", () => script));
