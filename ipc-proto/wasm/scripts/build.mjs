// Builds the package: build.mjs [MODULE], with the TypeScript compiler in NODE_PATH or node_modules. Without MODULE, cargo
// builds it, for which Rust needs its library for the target wasm32-unknown-unknown: rustup target add NAME.
import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

const target = "wasm32-unknown-unknown";
const given = process.argv[2] === undefined ? undefined : resolve(process.argv[2]);
process.chdir(new URL("..", import.meta.url).pathname);
const run = (program, ...options) => execFileSync(program, options, { stdio: "inherit" });
try {
    if (given === undefined) {
        run("cargo", "build", "--release", "--locked", "--target", target, "--target-dir", "target");
    }
    const base64 = readFileSync(given ?? `target/${target}/release/dotnet_ipc.wasm`).toString("base64");
    const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
    rmSync("dist", { recursive: true, force: true });
    // Modules, and the same for `require`. Comments are for readers of the types.
    for (const [folder, module] of [["dist", "esnext"], ["dist/cjs", "commonjs"]]) {
        const options = ["--outDir", folder, "--module", module, "--moduleResolution", module === "commonjs" ? "node10" : "bundler"];
        run(process.execPath, tsc, ...options, "--declaration", "false", "--removeComments");
        run(process.execPath, tsc, ...options, "--emitDeclarationOnly");
    }
    writeFileSync("dist/module.js", `export const base64 = "${base64}";\n`);
    writeFileSync("dist/cjs/module.js", `exports.base64 = "${base64}";\n`);
    writeFileSync("dist/cjs/package.json", '{ "type": "commonjs" }\n');
    // Packages of npm contain no links.
    for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) {
        copyFileSync(`../../${licence}`, `dist/${licence}`);
    }
} catch (error) {
    // The program has said what is wrong.
    console.error(`error: the package was not built: ${error.message}`);
    process.exit(1);
}
