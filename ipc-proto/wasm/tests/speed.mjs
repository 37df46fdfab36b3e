// Measures one pass over a trace in memory, in processor time: speed.mjs FILE
// The median of some passes, as benches/beside reads it: speed.mjs bench FILE RUNS
//
// The pass copies the trace into the module piece by piece, fills the table of rows, and counts the events of each
// description in the table. `batches` is the same through the interface, whose events stay valid.
import { readFileSync } from "node:fs";
import { TraceReader } from "../dist/index.js";

const isBench = process.argv[2] === "bench";
const bytes = new Uint8Array(readFileSync(process.argv[isBench ? 3 : 2]));

function onePass() {
    const reader = new TraceReader();
    const counts = new Uint32Array(65536);
    let events = 0;
    reader.read = function () {
        const { module } = this;
        module.exports.reader_read(this.reader, this.window + this.windowStart, this.windowEnd - this.windowStart, this.rows, this.activities, 8192);
        const rows = new Uint32Array(module.exports.memory.buffer, this.rows, this.report(0) * 16);
        for (let at = 0; at < rows.length; at += 16) {
            if (rows[at] === 0) {
                counts[rows[at + 1] & 0xffff] += 1;
                events += 1;
            }
        }
        this.windowStart += this.report(4);
        this.status = this.report(8);
    };
    reader.push(bytes);
    reader.next();
    return events;
}

if (isBench) {
    const times = [];
    let events = onePass();
    for (let run = 0; run < Number(process.argv[4]); run += 1) {
        const start = performance.now();
        events = onePass();
        times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    console.log(`events=${events} median=${times[times.length >> 1]} ms`);
    process.exit();
}

function measure(name, rounds, run) {
    let best = Infinity;
    let events = 0;
    for (let round = 0; round < rounds; round += 1) {
        const before = process.cpuUsage();
        events = run();
        const { user, system } = process.cpuUsage(before);
        best = Math.min(best, user + system);
    }
    console.log(`${name}: ${events} events, ${(events / best).toFixed(1)} million a second`);
}

measure("one pass", 40, onePass);

measure("batches", 15, () => {
    const reader = new TraceReader();
    const counts = new Map();
    let events = 0;
    reader.push(bytes);
    for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
        events += batch.length;
        for (const kind of batch.kinds) {
            counts.set(kind, (counts.get(kind) ?? 0) + 1);
        }
    }
    return events;
});
