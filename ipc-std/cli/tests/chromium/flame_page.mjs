// Tests pages of `dotnet-ipc flame` in Chromium: flame_page.mjs FOLDER [PICTURES]. The folder is that of the test in
// cli/flame_page.rs. PICTURES is a folder for pictures of them.
import assert from "node:assert/strict";
import { join } from "node:path";
import { call, evaluate, open, picture, problems, resize, run, until } from "../../../../ipc-proto/wasm/tests/chromium.mjs";

const [folder, pictures] = process.argv.slice(2);
const ROW = 20;
const text = (id) => evaluate(`document.getElementById('${id}').innerText`);
const drawn = () => evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))");

async function save(name) {
    await drawn();
    if (pictures !== undefined) {
        await picture(join(pictures, name));
    }
}

/** A place in a row of the graph. */
async function at(part, row) {
    const { left, top, width } = await evaluate("(({ left, top, width }) => ({ left, top, width }))(document.getElementById('graph').getBoundingClientRect())");
    return { x: left + part * (width - 2) + 1, y: top + 4 + (row + 0.5) * ROW };
}

/** Moves the mouse there, and returns the name of the call. */
async function hover(part, row) {
    await call("Input.dispatchMouseEvent", { type: "mouseMoved", ...(await at(part, row)) });
    return text("name");
}

async function click(part, row) {
    for (const type of ["mousePressed", "mouseReleased"]) {
        await call("Input.dispatchMouseEvent", { type, button: "left", clickCount: 1, ...(await at(part, row)) });
    }
}

/** The colour of a pixel. */
async function colour(part, row) {
    await drawn();
    const { x, y } = await at(part, row);
    return evaluate(`(() => {
        const canvas = document.getElementById("graph"), box = canvas.getBoundingClientRect();
        const pixel = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        pixel.drawImage(canvas, box.left - ${x}, box.top - ${y} + ${ROW / 2 - 2});
        return [...pixel.getImageData(0, 0, 1, 1).data].join(" ");
    })()`);
}

async function key(name) {
    for (const type of ["keyDown", "keyUp"]) {
        await call("Input.dispatchKeyEvent", { type, key: name, windowsVirtualKeyCode: { Enter: 13, Escape: 27 }[name] ?? 0, ...(name === "/" && type === "keyDown" ? { text: "/" } : {}) });
    }
}

const tab = (label) => evaluate(`[...document.querySelectorAll('.tabs button')].find((tab) => tab.textContent === ${JSON.stringify(label)}).click()`);
const pressed = () => evaluate("[...document.querySelectorAll('#clocks [aria-pressed=true]')].map((tab) => tab.textContent).join()");
const choose = (value) => evaluate(`(() => { const list = document.getElementById("thread"); list.value = "${value}"; list.dispatchEvent(new Event("change")); })()`);
const threads = () => evaluate("[...document.getElementById('thread').options].map((option) => [option.value, option.textContent])");
const light = (scheme) => call("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
/** The number of samples in the line of details. */
const samples = async (kind = "total") => Number((await text("numbers")).match(new RegExp(`${kind} [\\d.]+ % \\(([\\d,]+)`))[1].replaceAll(",", ""));

async function aRealTrace() {
    await open(join(folder, "startup.html"));
    await light("light");
    await until("document.getElementById('title').textContent === 'net10-startup.nettrace'");
    assert.equal(await pressed(), "Wall clock");
    const all = await samples();
    assert.match(await text("name"), /^All: samples of all threads/);
    assert.match(await text("notes"), /^[\d.]+ % of frames without a name/);
    await save("light.png");

    // The details are those of the call below the mouse. Callees are below their callers, the heaviest at the left.
    const [first, last] = [await hover(0, 1), await hover(0.999, 1)];
    assert.notEqual(first, last);
    assert.match(first, /!/);
    await hover(0, 1);
    const heaviest = await samples();
    await hover(0.999, 1);
    const lightest = await samples();
    assert.ok(heaviest > lightest && heaviest < all, `${heaviest} ${lightest} ${all}`);

    // A click zooms: the call fills the window. The root zooms out.
    assert.ok(await evaluate("document.getElementById('reset').disabled"));
    await click(0, 1);
    assert.deepEqual([await hover(0, 1), await hover(0.999, 1)], [first, first]);
    await hover(0.5, 2);
    assert.match(await text("numbers"), /% of the zoomed call$/);
    await save("zoomed.png");
    await click(0.5, 0);
    assert.equal(await hover(0.999, 1), last);

    // Reset, and Escape.
    await click(0, 1);
    await evaluate("document.getElementById('reset').click()");
    assert.equal(await hover(0.999, 1), last);
    await click(0, 1);
    await key("Escape");
    assert.equal(await hover(0.999, 1), last);

    // A search has another colour, and the share of what it matches; of the zoomed call, if one is.
    const before = await colour(0.001, 1);
    await key("/");
    assert.equal(await evaluate("document.activeElement.id"), "search");
    await call("Input.insertText", { text: first.slice(0, -1).toUpperCase() });
    const [, share] = (await text("matched")).match(/^([\d.]+) % in 1 function$/);
    assert.equal(share, ((100 * heaviest) / all).toFixed(2));
    assert.notEqual(await colour(0.001, 1), before);
    await save("search.png");
    // Enter selects the heaviest match, and zooms to it.
    await key("Enter");
    assert.equal(await evaluate("document.activeElement.id"), "graph");
    await key("Enter");
    assert.equal(await hover(0.999, 1), first);
    assert.match(await text("matched"), /^100\.00 % in 1 function$/);
    // Escape ends the search, then the zoom.
    await key("Escape");
    assert.equal(await text("matched"), "");
    assert.equal(await hover(0.999, 1), first);
    await key("Escape");
    assert.equal(await hover(0.999, 1), last);
    assert.equal(await colour(0.001, 1), before);
    await evaluate("document.getElementById('search').value = 'no such name', document.getElementById('search').dispatchEvent(new Event('input'))");
    assert.equal(await text("matched"), "0.00 % in 0 functions");
    await key("Escape");

    // Arrow keys.
    await call("Input.dispatchMouseEvent", { type: "mouseMoved", x: 5, y: 5 });
    await evaluate("document.getElementById('graph').focus()");
    await key("ArrowDown");
    assert.equal(await text("name"), first);
    await key("ArrowRight");
    assert.notEqual(await text("name"), first);
    await key("ArrowLeft");
    assert.equal(await text("name"), first);
    await key("ArrowDown");
    await key("ArrowUp");
    assert.equal(await text("name"), first);
    await key("ArrowUp");
    assert.match(await text("name"), /^All/);
    await key("Escape");

    // One thread, and all: their samples add up.
    const list = await threads();
    assert.equal(list[0][1], `All ${list.length - 1} threads`);
    let sum = 0;
    for (const [value] of list.slice(1)) {
        await choose(value);
        sum += await samples();
    }
    assert.equal(sum, all);
    await choose(list[1][0]);
    const ofThread = await samples();
    assert.ok(ofThread < all);

    // Other clocks: a thread stays chosen if it has something there.
    await tab("CPU");
    assert.equal(await pressed(), "CPU");
    assert.ok((await samples()) < all);
    await choose(-1);
    await tab("Thread time");
    assert.match(await text("numbers"), /total 100\.00 % \([\d,]+\.\d{3} ms\)/);
    await tab("Exceptions");
    assert.match(await text("numbers"), /total 100\.00 % \(\d+ events?\)/);
    await tab("Wall clock");
    await choose(-1);
    assert.equal(await samples(), all);

    // Dark, and narrow: the page does not scroll sideways.
    const back = await evaluate("getComputedStyle(document.body).backgroundColor");
    await light("dark");
    assert.notEqual(await evaluate("getComputedStyle(document.body).backgroundColor"), back);
    assert.notEqual(await colour(0.001, 1), before);
    await save("dark.png");
    await resize(360, 640);
    await drawn();
    assert.ok(await evaluate("document.documentElement.scrollWidth <= 360 && document.getElementById('graph').clientHeight > 200"));
    assert.equal(await hover(0, 1), first);
    await save("narrow.png");
}

async function hostileNames() {
    await open(join(folder, "hostile.html"));
    const names = ["All: samples of threads in managed code"];
    for (let row = 1; row <= 7; row += 1) {
        names.push(await hover(0, row));
    }
    assert.equal(names[1], "ManagedModule!T.</script><script>document.title='out'</script>()");
    assert.equal(names[2], "ManagedModule!T.<img src=x onerror=\"document.title='out'\">()");
    assert.equal(names[3], "ManagedModule!T.<!--<script>()");
    assert.equal(names[4], "ManagedModule!T.quotes \"'`${0}\\()");
    assert.equal(names[5], "ManagedModule!T.line\\nbreak\\u{1b}[31m\\u{202e}()");
    assert.equal(names[6], "ManagedModule!T.{DATA}{SCRIPT}()");
    assert.equal(names[7], "ManagedModule!T.A\ufffdB()");
    assert.notEqual(await evaluate("document.title"), "out");
    assert.equal(await evaluate("document.querySelectorAll('script, img').length"), 2);
}

async function sizes() {
    await open(join(folder, "one.html"));
    assert.equal(await hover(0.999, 1), "ManagedModule!T.Deep0()");
    assert.match(await text("numbers"), /^self 100\.00 % \(1 sample\) · total 100\.00 % \(1 sample\)$/);
    assert.match(await hover(0.5, 2), /^All/);
    // Rows that do not fit the window are a scroll away.
    await open(join(folder, "deep.html"));
    await evaluate("document.getElementById('scroll').scrollTop = 1e6");
    await drawn();
    const names = [];
    const rows = Math.floor(await evaluate("document.getElementById('graph').clientHeight") / ROW);
    for (let row = 0; row < rows; row += 1) {
        names.push(await hover(0.5, row));
    }
    assert.ok(names.includes("ManagedModule!T.Deep99()"), `${names}`);
}

async function differences() {
    await open(join(folder, "diff.html"));
    await light("light");
    assert.match(await text("title"), /^net10-startup.nettrace compared with net31-sampled.nettrace$/);
    await hover(0, 1);
    assert.match(await text("numbers"), /before [\d.]+ % \([\d,]+ samples?\), after [\d.]+ % \([\d,]+ samples?\), \+[\d.]+ %/);
    const after = await text("name");
    await save("diff.png");
    await tab("Before");
    assert.notEqual(await hover(0, 1), after);
    assert.match(await text("numbers"), /after 0\.00 % \(0 samples\), -[\d.]+ %/);
    await save("diff-before.png");
}

await run(async () => {
    await aRealTrace();
    await hostileNames();
    await sizes();
    await differences();
    assert.deepEqual(problems, []);
    // The page cannot connect.
    assert.equal(await evaluate("fetch('https://localhost:1/').then(() => 'sent', () => 'refused')"), "refused");
});
console.log("flame graphs in Chromium: ok");
