// Builds the package: build.mjs MODULE, with the TypeScript compiler in NODE_PATH or node_modules.
import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const module = readFileSync(process.argv[2]);
process.chdir(new URL("..", import.meta.url).pathname);
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
rmSync("dist", { recursive: true, force: true });
try {
    // Comments are for readers of the types.
    for (const options of [["--declaration", "false", "--removeComments"], ["--emitDeclarationOnly"]]) {
        execFileSync(process.execPath, [tsc, ...options], { stdio: "inherit" });
    }
} catch {
    process.exit(1);
}
writeFileSync("dist/module.js", `export const base64 = "${module.toString("base64")}";\n`);
// Packages of npm contain no links.
for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
    copyFileSync(`../../${licence}`, `dist/${licence}`);
}
