// Tests the viewer in Chromium: browser.mjs PAGE [PICTURE [TRACE]]. Drops traces on the page and looks at what it shows.
// PICTURE writes a picture of the page as it shows TRACE.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [page, picture, shown] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), "viewer-"));
const browser = spawn("chromium", [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", `--user-data-dir=${profile}`, "--remote-debugging-pipe",
    "--window-size=1280,760", "about:blank",
], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
const exited = new Promise((done) => browser.on("exit", done));

// The DevTools protocol: JSON messages, each with a NUL after it, on two pipes.
let lastId = 0;
const waiting = new Map();
const problems = [];
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
        } else if (message.method === "Network.requestWillBeSent" && !/^(file|data|blob):/.test(message.params.request.url)) {
            problems.push(`a request to ${message.params.request.url}`);
        }
    }
});
let sessionId;
function call(method, params = {}) {
    lastId += 1;
    browser.stdio[3].write(`${JSON.stringify({ id: lastId, method, params, sessionId })}\0`);
    return new Promise((done, fail) => waiting.set(lastId, { done, fail }));
}

async function evaluate(expression) {
    const { result, exceptionDetails } = await call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    assert.equal(exceptionDetails, undefined, expression);
    return result.value;
}

async function until(expression, seconds = 30) {
    for (let n = 0; n < seconds * 20; n += 1) {
        if (await evaluate(expression)) {
            return;
        }
        await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`not within ${seconds} s: ${expression}; the page says: ${await evaluate("document.body.innerText")} ${problems}`);
}

/** Drops a file on the page, as a person does. */
async function drop(path) {
    await evaluate("delete document.body.dataset.ready, delete document.body.dataset.shown");
    const data = { items: [], files: [path], dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"]) {
        await call("Input.dispatchDragEvent", { type, x: 640, y: 400, data });
    }
    await until("document.body.dataset.shown !== undefined");
}

async function type(text) {
    const box = "document.getElementById('search')";
    await evaluate(`delete document.body.dataset.shown; ${box}.value = ''; ${box}.focus()`);
    await (text === "" ? evaluate(`${box}.dispatchEvent(new Event('input'))`) : call("Input.insertText", { text }));
    await until("document.body.dataset.shown !== undefined");
    return Number(await evaluate("document.body.dataset.shown"));
}

const click = (text) => evaluate(`delete document.body.dataset.shown;
    [...document.querySelectorAll('.pick')].find((pick) => pick.firstChild.textContent === ${JSON.stringify(text)}).click()`);
const facts = () => evaluate("document.getElementById('facts').innerText");
const lines = () => evaluate("[...document.querySelectorAll('#rows .line')].map((line) => line.innerText)");
const trace = (name) => fileURLToPath(new URL(`../../../testdata/nettrace/${name}`, import.meta.url));

async function test() {
    const { targetId } = await call("Target.createTarget", { url: "about:blank" });
    ({ sessionId } = await call("Target.attachToTarget", { targetId, flatten: true }));
    for (const domain of ["Runtime", "Page", "Network", "Log"]) {
        await call(`${domain}.enable`);
    }
    await call("Emulation.setDeviceMetricsOverride", { width: 1280, height: 760, deviceScaleFactor: 1, mobile: false });
    await call("Page.navigate", { url: pathToFileURL(resolve(page)).href });
    await until("document.readyState === 'complete' && document.ondrop !== null");

    await drop(trace("gen-net10-lab-small.nettrace"));
    assert.match(await facts(), /^142 events/);
    assert.match(await facts(), /no event lost\s+complete/);
    assert.ok((await lines()).length > 10 && (await lines()).length < 60, "only visible rows have elements");
    const times = (await lines()).map((line) => Number(line.split("\n")[0]));
    assert.deepEqual(times, [...times].sort((a, b) => a - b));

    // A search in names, in fields, by thread, and without a result.
    const provider = await evaluate("document.querySelectorAll('.pick')[1].firstChild.textContent");
    const inNames = await type(provider.toLowerCase());
    assert.ok(inNames > 0 && inNames < 142, `${inNames} events of ${provider}`);
    await type("");
    const field = await evaluate("[...document.querySelectorAll('#rows .fields')].map((cell) => cell.textContent).find((text) => text.includes('='))");
    const inFields = await type(field.split("=")[0]);
    assert.ok(inFields > 0 && inFields <= 142);
    assert.ok((await evaluate("document.querySelectorAll('mark').length")) > 0);
    const thread = (await lines())[0].split("\n")[1];
    assert.ok((await type(`thread:${thread}`)) > 0);
    assert.equal(await type("no such text anywhere"), 0);
    assert.ok(await evaluate("!document.getElementById('none').hidden"));
    assert.equal(await type(""), 142);

    // A filter by provider, then by event.
    await click(provider);
    await until("document.body.dataset.shown !== undefined");
    const ofProvider = Number(await evaluate("document.body.dataset.shown"));
    assert.equal(await evaluate("document.querySelector('.pick.on .count').textContent"), String(ofProvider));
    const event = await evaluate("[...document.querySelectorAll('.pick')].at(-1).firstChild.textContent");
    await click(event);
    await until("document.body.dataset.shown !== undefined");
    assert.ok(Number(await evaluate("document.body.dataset.shown")) <= ofProvider);
    assert.ok((await lines()).every((line) => line.split("\n")[3] === event));

    // One event with all its fields.
    await evaluate("document.querySelector('#rows .line').click()");
    assert.match(await evaluate("document.getElementById('detail').innerText"), /time\s+[\d.]+ ms/);

    // Damaged and cut traces: their events, and where they end.
    await drop(trace("synth-bad-block.nettrace"));
    assert.match(await facts(), /corrupt at byte \d+/);
    assert.ok((await lines()).length > 0);
    await drop(trace("synth-cut-in-block.nettrace"));
    assert.match(await facts(), /truncated at byte \d+/);
    await drop(trace("synth-v6-all.nettrace"));
    await drop(fileURLToPath(import.meta.url));
    assert.match(await facts(), /^0 events[^]*corrupt at byte 0/);

    // The page cannot connect.
    assert.equal(await evaluate("fetch('https://localhost:1/').then(() => 'sent', () => 'refused')"), "refused");
    const refused = problems.filter((problem) => !/connect-src|violat/i.test(problem));
    assert.deepEqual(refused, []);

    if (picture !== undefined) {
        const start = Date.now();
        await drop(resolve(shown));
        console.log(`${await facts()} ${Date.now() - start} ms`);
        await click("Microsoft-Windows-DotNETRuntime");
        await until("document.body.dataset.shown !== undefined");
        const found = Date.now();
        console.log(`${await type("dictionary")} events found in ${Date.now() - found} ms`);
        await evaluate("document.querySelectorAll('#rows .line')[6].click()");
        await new Promise((done) => setTimeout(done, 300));
        const { data } = await call("Page.captureScreenshot", { format: "png" });
        writeFileSync(picture, Buffer.from(data, "base64"));
    }
}

try {
    await test();
    console.log("the viewer in Chromium: ok");
} finally {
    sessionId = undefined;
    call("Browser.close").catch(() => {});
    await exited;
    // Its children end a moment later.
    rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
