// The events of the traces in testdata/: those of an independent reader, and those of `dotnet-ipc events --json`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { readTrace, TraceError, TraceReader } from "../dist/index.js";

const folder = new URL("../../../testdata/nettrace/", import.meta.url);
const traces = readdirSync(folder).filter((name) => /\.(nettrace|netperf)$/.test(name));
const load = (name) => new Uint8Array(readFileSync(new URL(name, folder)));
const lab = load("gen-net10-lab-small.nettrace");

/** The bytes of a GUID in .NET's order. */
function guidBytes(text) {
    const bytes = Buffer.alloc(16);
    if (text !== undefined) {
        const hex = Buffer.from(text.replaceAll("-", ""), "hex");
        [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].forEach((from, to) => (bytes[to] = hex[from]));
    }
    return bytes;
}

/** The digest that testdata/README.md describes. */
function digest(events, version) {
    const hash = createHash("sha256");
    const v3 = version === 3;
    for (const event of events) {
        const header = Buffer.alloc(48);
        const { batch } = event;
        header.writeUInt32LE(event.metadataId, 0);
        header.writeUInt32LE(v3 ? 0 : event.sequence, 4);
        const row = batch.rows.subarray(batch.places[event.index] * 16);
        header.writeUInt32LE(row[10], 8);
        header.writeUInt32LE(row[11], 12);
        header.writeBigUInt64LE(event.captureThread, 16);
        header.writeUInt32LE(event.processor ?? 0xffff_ffff, 24);
        header.writeUInt32LE(event.stackId, 28);
        header.writeBigUInt64LE(event.timestamp, 32);
        hash.update(header.subarray(0, 40));
        hash.update(version === 6 ? Buffer.alloc(16) : guidBytes(event.activityId));
        hash.update(version === 6 ? Buffer.alloc(16) : guidBytes(event.relatedActivityId));
        hash.update(Uint8Array.of(v3 || event.isSorted ? 1 : 0));
        const size = Buffer.alloc(4);
        size.writeUInt32LE(event.payload.length);
        hash.update(size);
        hash.update(event.payload);
    }
    return hash.digest("hex");
}

async function read(source) {
    const trace = readTrace(source, { tolerant: true });
    const events = [];
    for await (const event of trace) {
        events.push(event);
    }
    return { events, trace };
}

for (const name of traces) {
    test(`${name}: as an independent reader`, async () => {
        const expected = JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8"));
        const { events, trace } = await read(load(name));
        assert.equal(events.length, expected.events);
        assert.equal(trace.lost, expected.dropped_strict);
        assert.equal(digest(events, trace.info.version), expected.digest_sha256);
    });

    test(`${name}: as dotnet-ipc events --json`, { skip: !process.env.DOTNET_IPC && "DOTNET_IPC is not set" }, async () => {
        const { events, trace } = await read(load(name));
        let lines;
        try {
            const path = new URL(name, folder).pathname;
            lines = execFileSync(process.env.DOTNET_IPC, ["events", path, "--json"], { stdio: ["ignore", "pipe", "ignore"] });
        } catch (error) {
            assert.notEqual(trace.end.kind, "complete", error.message);
            lines = error.stdout;
        }
        const expected = lines.toString().trim().split("\n");
        assert.equal(events.length, expected.length);
        events.forEach((event, index) => compare(event, expected[index], index));
    });
}

/** Compares an event with a line of the tool. */
function compare(event, line, index) {
    // Numbers beyond 2^53 as texts, on both sides.
    const exact = line.replace(/([:[,])(-?\d{16,})(?=[,}\]])/g, '$1"$2"');
    const expected = JSON.parse(exact);
    assert.equal(String(event.nanoseconds), String(expected.time_ns), `time of event ${index}`);
    // For a thread of version 6 without an id, the tool has null, and the reader the index of the thread. Only lines of
    // version 6 have a trace id.
    const hasId = !("trace_id" in expected) || event.thread?.thread_id !== undefined;
    const threadId = hasId ? event.threadId : null;
    assert.equal(String(threadId), String(expected.thread_id));
    const kind = expected.provider === null ? ["", 0, 0, "", 0] :
        [expected.provider, expected.id, expected.version, expected.name ?? "", expected.level];
    assert.deepEqual([event.provider, event.id, event.version, event.name, event.level], kind);
    assert.equal(event.opcode ?? null, expected.opcode);
    assert.equal(event.keywords, BigInt(expected.keywords ?? 0));
    assert.equal(event.processor ?? null, expected.processor);
    assert.equal(event.activityId ?? null, expected.activity_id);
    assert.equal(event.relatedActivityId ?? null, expected.related_activity_id);
    assert.deepEqual(event.stack.map((address) => `0x${address.toString(16)}`), expected.stack);
    const { fields, rest, fault } = event.decode();
    const bytes = rest && Buffer.from(rest).toString("base64");
    if (expected.fields === undefined) {
        assert.equal(bytes ?? "", expected.payload);
    } else if (!expected.cut) {
        assert.deepEqual(plain(fields), plain(expected.fields), `fields of event ${index}`);
        assert.equal(bytes, expected.rest);
        assert.equal(fault !== undefined, expected.error !== undefined);
    }
}

/** Values as the tool prints them. */
function plain(value) {
    if (value instanceof Uint8Array) {
        return Buffer.from(value).toString("base64");
    }
    if (value instanceof Date) {
        return value.toISOString().slice(0, 23);
    }
    if (Array.isArray(value)) {
        return value.map(plain);
    }
    if (value !== null && typeof value === "object") {
        return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
    }
    if (typeof value === "bigint" || (typeof value === "number" && Math.abs(value) >= 1e15)) {
        return String(value);
    }
    if (typeof value === "number" && !Number.isInteger(value)) {
        return Math.fround(value); // the tool prints a Single with fewer digits
    }
    if (typeof value === "string") {
        // The tool prints a lone surrogate as U+FFFD.
        value = Buffer.from(value, "utf8").toString("utf8");
    }
    // The tool has seven decimals of a second.
    return typeof value === "string" && /^\d{4}-\d\d-\d\dT.*Z$/.test(value) ? value.slice(0, 23) : value;
}

test("pieces of any size give the same events", async () => {
    const whole = (await read(lab)).events;
    for (const size of [1, 7, 100, 4096]) {
        const pieces = [];
        for (let at = 0; at < lab.length; at += size) {
            pieces.push(lab.subarray(at, at + size));
        }
        const { events, trace } = await read(pieces);
        assert.equal(digest(events, 4), digest(whole, 4), `pieces of ${size} bytes`);
        assert.deepEqual(events.map((event) => event.fields), whole.map((event) => event.fields));
        assert.equal(trace.end.kind, "complete");
    }
});

test("all kinds of sources", async () => {
    const stream = () => new Blob([lab]).stream();
    async function* generator() {
        yield lab.subarray(0, 5000);
        yield lab.subarray(5000);
    }
    for (const source of [lab, lab.buffer.slice(lab.byteOffset, lab.byteOffset + lab.length), new Blob([lab]), stream(), generator(), [lab]]) {
        assert.equal((await read(source)).events.length, 142);
    }
});

test("a stream is cancelled if its reader leaves", async () => {
    let cancelled = false;
    const source = new ReadableStream({
        pull: (controller) => controller.enqueue(lab.slice()),
        cancel: () => { cancelled = true; },
    });
    for await (const event of readTrace(source)) {
        assert.ok(event.provider);
        break;
    }
    assert.ok(cancelled);
});

test("events stay valid", async () => {
    const { events } = await read(load("gen-net10-small-counters.nettrace"));
    const counter = events.find((event) => event.name === "EventCounters");
    assert.equal(typeof counter.field("Payload.Name"), "string");
    assert.equal(counter.field("Payload.Nothing"), undefined);
});

test("a damaged trace: the events before and after the damage, then an error", async () => {
    const expected = JSON.parse(readFileSync(new URL("synth-bad-block.nettrace.json", folder), "utf8"));
    let count = 0;
    await assert.rejects(async () => {
        for await (const _ of readTrace(load("synth-bad-block.nettrace"))) {
            count += 1;
        }
    }, (error) => error instanceof TraceError && error.end.kind === "corrupt" && error.end.offset > 0 && /corrupt at byte \d+/.test(error.message));
    assert.equal(count, expected.events);
});

test("a trace that is cut off anywhere: a prefix of the events, then an error", async () => {
    for (let len = 0; len < lab.length; len += 997) {
        const { events, trace } = await read(lab.subarray(0, len));
        assert.equal(trace.end.kind, "truncated");
        assert.ok(events.length <= 142);
        await assert.rejects(async () => {
            for await (const _ of readTrace(lab.subarray(0, len)));
        }, TraceError);
    }
});

test("other bytes are an error at byte 0", async () => {
    const { events, trace } = await read(new TextEncoder().encode("this is a text and not a trace"));
    assert.equal(events.length, 0);
    assert.deepEqual([trace.end.kind, trace.end.offset], ["corrupt", 0]);
});

test("changed bytes never fail", async () => {
    let seed = 1;
    const random = (limit) => {
        seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
        return (seed >>> 8) % limit;
    };
    for (let round = 0; round < 300; round += 1) {
        const bytes = load(traces[random(traces.length)]);
        for (let n = 0; n < 4; n += 1) {
            bytes[random(bytes.length)] = random(256);
        }
        const { events } = await read(bytes);
        events.slice(0, 200).forEach((event) => assert.equal(typeof event.decode(), "object"));
    }
});

test("a record that claims to be long takes no memory", () => {
    const reader = new TraceReader();
    reader.push(lab.subarray(0, 200));
    while (reader.next() !== undefined);
    assert.ok(reader.module.exports.memory.buffer.byteLength < 4 << 20);
});

test("an argument of a wrong type is an error that names it", async () => {
    const source = "source must be a Uint8Array, an ArrayBuffer, a Blob, or a stream or an iterable of Uint8Array, not ";
    const opened = ": a name must be opened, as by createReadStream of node:fs or by fetch";
    for (const [call, message] of [
        [() => readTrace("app.nettrace"), `${source}"app.nettrace"${opened}`],
        [() => readTrace({}), `${source}an object of type Object`],
        [() => readTrace(null), `${source}null`],
        [() => readTrace(), `${source}undefined`],
        [() => readTrace(new Uint16Array(4)), `${source}an object of type Uint16Array`],
        [() => readTrace(new DataView(lab.buffer)), `${source}an object of type DataView`],
        [() => readTrace(new Response(lab)), `${source}an object of type Response: pass its body`],
        [() => readTrace([1, 2]), "source[0] must be a Uint8Array, not 1"],
        [() => readTrace(lab, true), "options must be an object, not true"],
        [() => readTrace(lab, { tolerent: true }), 'options has no field "tolerent": its fields are tolerant'],
        [() => new TraceReader().push("Nettrace"), 'bytes must be a Uint8Array, not "Nettrace"'],
    ]) {
        assert.throws(call, { name: "TypeError", message });
    }
    const texts = () => new ReadableStream({
        start(controller) {
            controller.enqueue("a text");
            controller.close();
        },
    });
    for (const pieces of [texts(), new Set(["a text"]), (async function* () { yield "a text"; })()]) {
        await assert.rejects(read(pieces), { name: "TypeError", message: 'a piece of source must be a Uint8Array, not "a text"' });
    }
    // Those of another context, as tests with jest have them, are as good.
    const foreign = runInNewContext("new Uint8Array(4)");
    assert.ok(!(foreign instanceof Uint8Array));
    assert.equal((await read(foreign)).trace.end.offset, 0);
});

test("a trace is read once, and a reader is closed once", async () => {
    const { trace } = await read(lab);
    await assert.rejects(trace.batches().next(), /^Error: a trace can be read once/);
    await assert.rejects(trace[Symbol.asyncIterator]().next(), /^Error: a trace can be read once/);
    const reader = new TraceReader();
    reader.close();
    assert.throws(() => reader.push(lab), /^Error: no bytes can follow after close\(\)/);
});

test("events as JSON and as plain objects", async () => {
    for (const name of traces) {
        for (const event of (await read(load(name))).events) {
            const object = JSON.parse(JSON.stringify(event));
            assert.deepEqual(structuredClone(event.toJSON()).fields, event.toJSON().fields);
            assert.deepEqual([object.provider, object.keywords], [event.provider, String(event.keywords)]);
            assert.deepEqual(object.stack.map(BigInt), event.stack);
        }
    }
    const [first] = (await read(load("synth-v6-all.nettrace"))).events;
    const { fields } = JSON.parse(JSON.stringify(first));
    assert.deepEqual([fields.u64, fields.i64, fields.guid], ["9223372036854775813", -5000000000000, "03020100-0504-0706-0809-0a0b0c0d0e0f"]);
    assert.deepEqual(fields.obj, { x: 300, y: ["Hi", "Bye"] });
});

test("a stack does not keep the bytes around it", async () => {
    const { events } = await read(lab);
    const buffers = new Set();
    let bytes = 0;
    for (const { batch } of events) {
        for (const piece of batch.context.stacks.values()) {
            if (!buffers.has(piece.bytes.buffer)) {
                buffers.add(piece.bytes.buffer);
                bytes += piece.bytes.buffer.byteLength;
            }
        }
    }
    const frames = new Map(events.map((event) => [event.stackId, 8 * event.stack.length]));
    const needed = [...frames.values()].reduce((sum, len) => sum + len, 0);
    // Some stacks belong to no event.
    assert.ok(needed > 0 && bytes <= 2 * needed, `${bytes} bytes for stacks of ${needed}`);
});
