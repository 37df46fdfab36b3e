// Tests the viewer in Chromium: browser.mjs PAGE [PICTURE [TRACE]]. Drops traces on the page and looks at what it shows.
// PICTURE writes a picture of the page as it shows TRACE.
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { call, evaluate, open, picture as takePicture, problems, run, until } from "./chromium.mjs";

const [page, picture, shown] = process.argv.slice(2);

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
    await open(page);
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
        await takePicture(picture);
    }
}

await run(test);
console.log("the viewer in Chromium: ok");
