// Tests the package as users have it, bundled and not, in Node and Chromium: bundles.mjs FOLDER TRACE. FOLDER has the
// compiled programs of tests/user, with the package installed. The bundlers are in NODE_PATH.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { open, problems, run, until } from "./chromium.mjs";

const [folder, trace] = process.argv.slice(2);
const tool = (name, ...args) =>
    execFileSync(join(process.env.NODE_PATH, ".bin", name), args, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
const esbuild = (out, format, entries, ...options) =>
    tool("esbuild", ...entries, "--bundle", "--log-level=warning", `--format=${format}`, `--outdir=${out}`, ...options);
const node = (program) => execFileSync(process.execPath, [join(folder, program), trace], { encoding: "utf8" });

/** Programs in Node. Where a bundle is, the package cannot be found. */
function testPrograms() {
    const expected = {
        "user.js": /^142 events, 0 lost; CollectTracing2, \d+ bytes\n$/,
        "common.cjs": /^142 events, 28 bytes\none package: true\n$/,
    };
    for (const [program, output] of Object.entries(expected)) {
        assert.match(node(program), output);
        for (const format of ["esm", "cjs", "iife"]) {
            // A bundle in the format `esm` cannot have the `require` of Node's own modules.
            if (program.endsWith(".js") || format !== "esm") {
                const extension = format === "esm" ? "mjs" : "cjs";
                esbuild(`../${format}`, format, [program], "--platform=node", `--out-extension:.js=.${extension}`);
                assert.match(node(`../${format}/${program.replace(/\.\w+$/, `.${extension}`)}`), output, format);
            }
        }
    }
}

// Pages with a worker, in folders below FOLDER. The first one has no bundler.
const pages = ["plain", "esm", "iife", "vite"].map((name) => `pages/${name}`);

function bundlePages() {
    for (const page of pages.slice(0, 3)) {
        mkdirSync(join(folder, page), { recursive: true });
        cpSync(join(folder, "index.html"), join(folder, page, "index.html"));
    }
    for (const file of ["page.js", "worker.js", "count.js"]) {
        cpSync(join(folder, file), join(folder, pages[0], file));
    }
    esbuild(pages[1], "esm", ["page.js", "worker.js"]);
    esbuild(pages[2], "iife", ["page.js", "worker.js"], "--define:import.meta.url=location.href");
    const page = join(folder, pages[2], "page.js");
    const text = readFileSync(page, "utf8");
    assert.ok(text.includes('type: "module"'));
    writeFileSync(page, text.replace('type: "module"', 'type: "classic"'));
    tool("vite", "build", "--logLevel=warn", "--base=./", `--outDir=${pages[3]}`);
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
        bundlePages();
        for (const page of pages) {
            await open(`http://127.0.0.1:${server.address().port}/${page}/index.html`);
            await until("document.title === 'page: 142 events, 28 bytes; worker: 142 events, 28 bytes'");
        }
        assert.deepEqual(problems.filter((problem) => !problem.includes("favicon")), []);
    });
} finally {
    server.close();
    server.closeAllConnections();
}
console.log("bundles in Node and Chromium: ok");
