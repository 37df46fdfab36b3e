// Opens files of `dotnet-ipc convert` in speedscope: speedscope.mjs SPEEDSCOPE FOLDER. SPEEDSCOPE is the folder of its
// page. The other one is that of the test in cli/flame.rs: one trace in each format that speedscope reads.
import assert from "node:assert/strict";
import { join, resolve } from "node:path";
import { call, evaluate, open, problems, run, until } from "../../../../ipc-proto/wasm/tests/chromium.mjs";

const [speedscope, folder] = process.argv.slice(2);

/**
 * Returns the total of each thread, and the total and the own part of each visible function of the first one. One of these
 * functions has a name that begins with `name`: the page renders the rows of its table later than the table.
 */
async function load(file, name) {
    await open(join(speedscope, "index.html"));
    await evaluate("window.warnings = []; console.warn = console.error = (...texts) => warnings.push(texts.join(' '));");
    await until("document.querySelector('input[type=file]') !== null");
    const { root } = await call("DOM.getDocument");
    const { nodeId } = await call("DOM.querySelector", { nodeId: root.nodeId, selector: "input[type=file]" });
    await call("DOM.setFileInputFiles", { nodeId, files: [resolve(join(folder, file))] });
    await until("document.body.innerText.includes('Time Order')");
    // The view "Sandwich" has a table of functions.
    for (const type of ["keyDown", "keyUp"]) {
        await call("Input.dispatchKeyEvent", { type, key: "3", text: type === "keyDown" ? "3" : undefined });
    }
    const isThere = `(cell) => cell.innerText.startsWith(${JSON.stringify(name)})`;
    await until(`[...document.querySelectorAll('table td')].some(${isThere})`);
    const rows = await evaluate("[...document.querySelectorAll('table tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText))");
    assert.deepEqual(await evaluate("window.warnings"), [], file);
    const cells = rows.filter((row) => row.length === 3);
    const isThread = ([number]) => /^\d+$/.test(number);
    const threads = cells.filter(isThread).map(([, , total]) => total).sort();
    const functions = cells.filter((row) => !isThread(row)).map(([total, own, name]) => [name, { total, own }]);
    return { threads, functions: new Map(functions) };
}

await run(async () => {
    const evented = await load("evented.speedscope.json", "CPU_TIME");
    assert.deepEqual(evented.threads, ["1.05s", "419.84ms", "809.48ms", "819.31ms"]);
    assert.equal(evented.functions.get("CPU_TIME").own, "31.72ms (3.0%)");
    const chromium = await load("trace.chromium.json", "CPU_TIME");
    assert.deepEqual(chromium.threads, evented.threads);
    assert.deepEqual(chromium.functions.get("CPU_TIME"), evented.functions.get("CPU_TIME"));
    assert.deepEqual(problems.filter((problem) => !problem.includes('"source":"rendering"')), []);
});
console.log("files in speedscope: ok");
