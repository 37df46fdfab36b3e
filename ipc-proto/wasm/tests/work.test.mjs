// The work for a trace is proportional to its bytes, whatever they are. It is counted in operations, not in time.
import assert from "node:assert/strict";
import { test } from "node:test";

let operations = 0;

/** Counts the calls of a method, each as `weigh` says. */
function counted(object, name, weigh = () => 1) {
    const original = object[name];
    object[name] = function (...args) {
        operations += weigh(...args);
        return original.apply(this, args);
    };
}

counted(Object, "hasOwn");
counted(String, "fromCharCode");
counted(Map.prototype, "get");
counted(Map.prototype, "set");
counted(DataView.prototype, "getUint32");
counted(TextDecoder.prototype, "decode", (bytes) => bytes.length);
counted(Object.getPrototypeOf(Uint8Array.prototype), "set", (bytes) => bytes.length);
globalThis.Uint32Array = new Proxy(Uint32Array, {
    construct(type, args) {
        operations += typeof args[0] === "number" ? args[0] : 1;
        return new type(...args);
    },
});

const { TraceReader } = await import("../dist/index.js");
const { details, summary } = await import("../viewer/text.js");

const bytesOf = (text) => [...Buffer.from(text)];
const u16 = (number) => [number & 0xff, number >> 8];
const u32 = (number) => [...u16(number & 0xffff), ...u16(number >>> 16)];
const repeat = (count, make) => Array.from({ length: count }, (_, index) => make(index)).flat();

function varint(number) {
    const bytes = [];
    for (; number >= 0x80; number = Math.floor(number / 0x80)) {
        bytes.push((number & 0x7f) | 0x80);
    }
    return [...bytes, number];
}

// Parts of a stream of version 6.
const BLOCKS = { trace: 1, events: 2, metadata: 3, point: 4, stacks: 5, threads: 6, labels: 8 };
const block = (kind, body) => [...u32(body.length).slice(0, 3), BLOCKS[kind], ...body];
const row = (bytes) => [...u16(bytes.length), ...bytes];
const text = (value) => [...varint(value.length), ...bytesOf(value)];
const START = [
    ...bytesOf("Nettrace"), ...u32(0), ...u32(6), ...u32(0),
    ...block("trace", [
        ...[2026, 1, 1, 1, 0, 0, 0, 0].flatMap(u16), ...repeat(8, () => 0), ...u32(1_000_000_000), ...u32(0), ...u32(8), ...u32(0),
    ]),
];
const END = [0, 0, 0, 0];
const [OBJECT, BYTE, ARRAY] = [1, 6, 19];
const field = (name, type) => row([...text(name), ...type]);
const description = (fields) =>
    block("metadata", [0, 0, ...row([1, ...text("P"), 1, ...text("E"), ...u16(fields.length), ...fields.flat(), 0, 0])]);

/** A block of events with the same payload and label list. */
const events = (count, payload = [], labels = 0, thread = 1) => block("events", [
    20, 0, 1, 0, ...repeat(16, () => 0),
    0x9f, 1, 1, 1, 0, ...varint(thread), 0, 1, labels, ...varint(payload.length), ...payload,
    ...repeat(count - 1, () => [0, 1, ...payload]),
]);

/** Reads a trace as the viewer does that shows each event. Returns the operations and the characters of the texts. */
function work(...parts) {
    const bytes = Uint8Array.from([...START, ...parts.flat(), ...END]);
    const before = operations;
    let characters = 0;
    const reader = new TraceReader();
    reader.push(bytes);
    reader.close();
    let number = 0;
    for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
        for (const event of batch) {
            number += 1;
            characters += summary(event).length;
            characters += details(event).flat().join("").length;
            assert.ok(event.threadId + event.level + event.version >= 0);
        }
    }
    assert.equal(reader.end.kind, "complete", reader.end.message);
    return { bytes: bytes.length, number, cost: operations - before + characters };
}

/**
 * Checks that four times the trace takes at most five times the work, and at most 5,000 operations for a byte: the text
 * of an event of a few bytes has up to 4,096 characters.
 */
function isLinear(make) {
    const [small, large] = [make(1), make(4)];
    assert.ok(small.number > 0);
    assert.ok(large.cost < 5 * small.cost + 50_000, `${small.cost} and ${large.cost} operations`);
    assert.ok(large.cost < 5000 * large.bytes, `${large.cost} operations for ${large.bytes} bytes`);
}

test("fields of one name", () => {
    isLinear((size) => work(description(repeat(2000 * size, () => [field("a", [BYTE])])), events(2, repeat(2000 * size, () => 1))));
});

test("fields of one long name", () => {
    const [name, count] = ["a".repeat(1000), 10];
    isLinear((size) => work(description(repeat(count, () => [field(name, [BYTE])])), events(1000 * size, repeat(count, () => 1))));
});

test("an array of objects whose field has a long name", () => {
    const fields = (size) => [field("A", [ARRAY, OBJECT, ...u16(1), ...field("n".repeat(5000 * size), [BYTE])])];
    isLinear((size) => work(description(fields(size)), events(2, [...u16(2000 * size), ...repeat(2000 * size, () => 1)])));
});

test("many events of a long description", () => {
    const fields = (size) => repeat(1000 * size, (index) => [field(`f${index}`, [BYTE])]);
    isLinear((size) => work(description(fields(size)), events(2000 * size, [1])));
});

test("a sequence point after each event", () => {
    const point = block("point", [...repeat(8, () => 0), ...u32(0), ...u32(0)]);
    isLinear((size) => work(description([]), repeat(500 * size, () => [...events(1), ...point])));
});

test("threads that are described again after each event", () => {
    const thread = (id) => block("threads", row([...varint(id), 3, 1]));
    isLinear((size) => {
        const count = 500 * size;
        return work(description([]), repeat(count, thread), repeat(count, (id) => [...events(1, [], 0, id), ...thread(id)]));
    });
});

test("many events with a long list of labels", () => {
    const labels = (size) => block("labels", [...u32(1), ...u32(1), ...repeat(2000 * size - 1, () => [0x07, 5]), 0x87, 5]);
    isLinear((size) => work(description([]), labels(size), events(2000 * size, [], 1)));
});

test("a text that is cut ends with a mark, and no other one does", () => {
    const [event, shown] = [{ payload: [], stack: [] }, (fields) => summary({ ...event, decode: () => ({ fields }) })];
    const limit = 4096;
    const long = (len) => "v".repeat(len);
    assert.equal(shown({ a: long(limit - 2) }), `a=${long(limit - 2)}`);
    // The limit is at the end of a field, of its name, of a comma, and of an array.
    for (const fields of [
        { a: long(limit - 1) },
        { a: long(limit - 2), b: 1 },
        { a: long(limit - 4), b: 1 },
        { a: long(limit - 5), b: 1 },
        { a: long(limit - 6), b: 1 },
        { a: [long(limit - 5), 1] },
        { a: [long(limit - 6), 1] },
        { a: [long(limit - 5)] },
        { a: { b: long(limit - 9), c: 1 } },
    ]) {
        assert.match(shown(fields), /^[^…]{4096}…$/);
    }
    const values = { n: 1n, t: true, z: null, s: "x", b: Uint8Array.of(1), d: new Date(0) };
    const day = "1970-01-01T00:00:00.000Z";
    assert.equal(shown(values), `n=1  t=true  z=null  s=x  b=1 bytes 01  d=${day}`);
    assert.equal(shown({ o: values }), `o={"n":1,"t":true,"z":null,"s":"x","b":"1 bytes 01","d":"${day}"}`);
});

test("a description that comes again takes its memory once", () => {
    const point = block("point", [...repeat(8, () => 0), ...u32(2), ...u32(0)]);
    const parts = repeat(1000, () => [...description([field("n".repeat(200), [BYTE])]), ...events(1, [1]), ...point]);
    const reader = new TraceReader();
    const room = reader.room;
    reader.push(Uint8Array.from([...START, ...parts, ...END]));
    for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
        assert.equal(Object.keys(batch.event(0).fields)[0].length, 200);
    }
    assert.ok(room - reader.room < 2000);
});
