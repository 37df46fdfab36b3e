// Tests the package as users have it, bundled and not, in Node, Deno, Bun and Chromium: bundles.mjs FOLDER TRACE. FOLDER
// has the compiled programs of tests/user, with the package installed. The bundlers, Deno and Bun are in NODE_PATH.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { open, problems, run, until } from "./chromium.mjs";

const [folder, trace] = process.argv.slice(2);
const bin = (name) => join(process.env.NODE_PATH, ".bin", name);
const tool = (name, ...args) =>
    execFileSync(bin(name), args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
const esbuild = (out, format, entries, ...options) =>
    tool("esbuild", ...entries, "--bundle", "--log-level=warning", `--format=${format}`, `--outdir=${out}`, ...options);
const output = (program, ...args) => execFileSync(program, [...args, trace], { cwd: folder, encoding: "utf8" });
const node = (...args) => output(process.execPath, ...args);

/** Programs in Node, Deno and Bun. Where a bundle is, the package cannot be found. */
function testPrograms() {
    const expected = {
        "user.js": /^142 events, 0 lost; CollectTracing2, \d+ bytes; 142 lines\n$/,
        "common.cjs": /^142 events, 28 bytes\none package: true\n$/,
    };
    const two = /^142 events, 28 bytes\none package: false\n$/;
    for (const [program, shown] of Object.entries(expected)) {
        assert.match(node(program), shown);
        assert.match(output(bin("bun"), program), program.endsWith(".js") ? shown : two, "Bun");
        assert.match(output(bin("deno"), "run", "--quiet", "--allow-read", "--node-modules-dir=manual", program), shown, "Deno");
        for (const format of ["esm", "cjs", "iife"]) {
            // A bundle in the format `esm` cannot have the `require` of Node's own modules.
            if (program.endsWith(".js") || format !== "esm") {
                const extension = format === "esm" ? "mjs" : "cjs";
                esbuild(`../${format}`, format, [program], "--platform=node", `--out-extension:.js=.${extension}`);
                assert.match(node(`../${format}/${program.replace(/\.\w+$/, `.${extension}`)}`), shown, format);
            }
        }
    }
    // Node before 20.19 cannot load modules by `require`, so it gets the other build of the package.
    assert.match(node("--no-experimental-require-module", "common.cjs"), two);
}

// Pages with a worker and a service worker, in folders below FOLDER. The first one has no bundler.
const pages = ["plain", "esm", "iife", "webpack", "vite"].map((name) => `pages/${name}`);

async function bundlePages() {
    for (const page of pages.slice(0, 4)) {
        mkdirSync(join(folder, page), { recursive: true });
        cpSync(join(folder, "index.html"), join(folder, page, "index.html"));
    }
    for (const file of ["page.js", "worker.js", "service.js", "count.js"]) {
        cpSync(join(folder, file), join(folder, pages[0], file));
    }
    const entries = ["page.js", "worker.js", "service.js"];
    esbuild(pages[1], "esm", entries);
    esbuild(pages[2], "iife", entries, "--define:import.meta.url=location.href");
    const page = join(folder, pages[2], "page.js");
    const text = readFileSync(page, "utf8");
    assert.equal(text.split('type: "module"').length, 3);
    writeFileSync(page, text.replaceAll('type: "module"', 'type: "classic"'));

    const webpack = createRequire(join(process.env.NODE_PATH, "webpack", "package.json"))("webpack");
    const stats = await new Promise((done, fail) => webpack({
        mode: "production",
        context: folder,
        entry: { page: "./page.js", service: "./service.js" },
        output: { path: join(folder, pages[3]) },
        // The package is a part of each bundle, as a text.
        performance: false,
    }, (error, result) => (error ? fail(error) : done(result))));
    assert.ok(!stats.hasErrors() && !stats.hasWarnings(), stats.toString());

    const input = { index: "index.html", service: "service.js" };
    const config = { base: "./", build: { outDir: pages[4], rollupOptions: { input, output: { entryFileNames: "[name].js" } } } };
    writeFileSync(join(folder, "vite.config.js"), `export default ${JSON.stringify(config)};\n`);
    tool("vite", "build", "--logLevel=warn");
}

const types = { ".html": "text/html", ".js": "text/javascript" };
const server = createServer(({ url }, response) => {
    const path = url === "/trace" ? trace : join(folder, url);
    let body;
    try {
        body = readFileSync(path);
    } catch {
        response.writeHead(404).end();
        return;
    }
    // What an import map does, which workers do not have.
    if (url.startsWith(`/${pages[0]}/`)) {
        body = body.toString().replace('"dotnet-ipc"', '"/node_modules/dotnet-ipc/dist/index.js"');
    }
    const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";
    response.writeHead(200, { "Content-Type": types[extname(path)] ?? "", "Content-Security-Policy": policy }).end(body);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
try {
    await run(async () => {
        testPrograms();
        await bundlePages();
        for (const page of pages) {
            await open(`http://127.0.0.1:${server.address().port}/${page}/index.html`);
            await until("document.title === 'page: 142 events, 28 bytes; worker: 142 events, 28 bytes; service worker: 142 events, 28 bytes'");
        }
        assert.deepEqual(problems.filter((problem) => !problem.includes("favicon")), []);
    });
} finally {
    server.close();
    server.closeAllConnections();
}
console.log("the package in Node, Deno, Bun and Chromium, and in bundles: ok");
