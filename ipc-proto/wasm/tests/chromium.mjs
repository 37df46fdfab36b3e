// Chromium for tests of pages, over its DevTools protocol.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const profile = mkdtempSync(join(tmpdir(), "page-"));
const browser = spawn("chromium", [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", `--user-data-dir=${profile}`, "--remote-debugging-pipe",
    "--window-size=1280,760", "about:blank",
], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const exited = new Promise((done) => browser.on("exit", done));

// The DevTools protocol: JSON messages, each with a NUL after it, on two pipes.
let lastId = 0;
const waiting = new Map();
/** Exceptions, entries of the console, and requests that leave the page. */
export const problems = [];
let received = "";
browser.stdio[4].setEncoding("utf8").on("data", (text) => {
    const messages = (received + text).split("\0");
    received = messages.pop();
    for (const message of messages.map((json) => JSON.parse(json))) {
        if (message.id !== undefined) {
            const { done, fail } = waiting.get(message.id);
            waiting.delete(message.id);
            message.error === undefined ? done(message.result) : fail(new Error(message.error.message));
        } else if (/exceptionThrown|entryAdded/.test(message.method)) {
            problems.push(JSON.stringify(message.params));
        } else if (message.method === "Network.requestWillBeSent" && !isOwn(message.params.request.url)) {
            problems.push(`a request to ${message.params.request.url}`);
        }
    }
});
let address = "file:";
const isOwn = (url) => /^(data|blob):/.test(url) || url.startsWith(address);
let sessionId;
export function call(method, params = {}) {
    lastId += 1;
    browser.stdio[3].write(`${JSON.stringify({ id: lastId, method, params, sessionId })}\0`);
    return new Promise((done, fail) => waiting.set(lastId, { done, fail }));
}

export async function evaluate(expression) {
    const { result, exceptionDetails } = await call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    assert.equal(exceptionDetails, undefined, expression);
    return result.value;
}

export async function until(expression, seconds = 30) {
    for (let n = 0; n < seconds * 20; n += 1) {
        if (await evaluate(expression)) {
            return;
        }
        await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`not within ${seconds} s: ${expression}; the page says: ${await evaluate("document.body.innerText")} ${problems}`);
}

/** Opens a page: a path, or the URL of a server whose other files are part of the page. */
export async function open(page, width = 1280, height = 760) {
    const { href, origin } = /^http:/.test(page) ? new URL(page) : pathToFileURL(resolve(page));
    address = origin === "null" ? "file:" : origin;
    const { targetId } = await call("Target.createTarget", { url: "about:blank" });
    ({ sessionId } = await call("Target.attachToTarget", { targetId, flatten: true }));
    for (const domain of ["Runtime", "Page", "Network", "Log"]) {
        await call(`${domain}.enable`);
    }
    await resize(width, height);
    await call("Page.navigate", { url: href });
    await until("document.readyState === 'complete' && location.href !== 'about:blank'");
}

export const resize = (width, height) =>
    call("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });

/** Writes a picture of the page. */
export async function picture(path) {
    const { data } = await call("Page.captureScreenshot", { format: "png" });
    writeFileSync(path, Buffer.from(data, "base64"));
}

/** Runs a test, and ends the browser. */
export async function run(test) {
    try {
        await test();
    } finally {
        sessionId = undefined;
        call("Browser.close").catch(() => {});
        await exited;
        // Its children end a moment later.
        rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    }
}
