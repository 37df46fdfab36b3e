// The golden messages of testdata/.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { check, commands, encode, initSync, MessageError, parseMessage } from "../dist/index.js";

const testdata = new URL("../../../testdata/", import.meta.url);

function load(path) {
    const text = readFileSync(new URL(path, testdata), "utf8").replace(/#.*/g, "").replace(/\s/g, "");
    return new Uint8Array(Buffer.from(text, "hex"));
}
const names = (folder, pattern) => readdirSync(new URL(folder, testdata)).filter((name) => pattern.test(name));

test("requests: parsed, and encoded to the same bytes", () => {
    const seen = new Set();
    for (const file of names("messages/", /\.request\.hex$/)) {
        const bytes = load(`messages/${file}`);
        const message = parseMessage(bytes);
        assert.equal(message.name, file.split(".")[0], file);
        assert.equal(message.code, commands()[message.name].code);
        assert.equal(message.length, bytes.length);
        assert.deepEqual(encode(message.name, message.fields), bytes, file);
        seen.add(message.name);
    }
    assert.deepEqual([...seen].sort(), Object.keys(commands()).sort());
});

test("parts follow each other without a gap", () => {
    for (const file of names("messages/", /\.(request|response|refusal)\.hex$/)) {
        const bytes = load(`messages/${file}`);
        const { parts } = parseMessage(bytes, file.split(".")[0]);
        let offset = 0;
        for (const part of parts) {
            assert.equal(part.offset, offset, `${file}: ${part.path}`);
            offset += part.length;
        }
        assert.equal(offset, bytes.length, file);
    }
});

test("answers", () => {
    const info = parseMessage(load("messages/GetProcessInfo3.net8.response.hex"), "GetProcessInfo3");
    assert.equal(info.name, "OK");
    assert.match(info.fields.clr_product_version, /^8\.0\./);
    assert.equal(typeof info.fields.process_id, "number");
    const refusal = parseMessage(load("messages/CollectTracing4.unknown-command.refusal.hex"), "CollectTracing4");
    assert.equal(refusal.name, "Error");
    const hresult = refusal.parts.find((part) => part.path === "hresult");
    assert.deepEqual([hresult.value, hresult.label], [0x80131385, "DS_IPC_E_UNKNOWN_COMMAND"]);
});

test("an incomplete message states how many bytes it needs", () => {
    const bytes = load("messages/CollectTracing2.four-providers.request.hex");
    for (let len = 0; len < bytes.length; len += 1) {
        assert.throws(() => parseMessage(bytes.subarray(0, len)),
            (error) => error instanceof MessageError && error.needed === (len < 20 ? 20 : bytes.length));
    }
    // Bytes after the message are not its own.
    assert.equal(parseMessage(Uint8Array.of(...bytes, 1, 2, 3)).length, bytes.length);
});

test("malformed messages are errors with an offset, as in Rust", () => {
    for (const file of names("malformed/", /\.hex$/)) {
        const bytes = load(`malformed/${file}`);
        const expected = readFileSync(new URL(`malformed/${file.replace(/hex$/, "txt")}`, testdata), "utf8");
        const [, offset, field] = /at byte (\d+), (.*)/.exec(expected) ?? [];
        let error;
        try {
            parseMessage(bytes);
        } catch (caught) {
            error = caught;
        }
        if (offset !== undefined) {
            assert.ok(error instanceof MessageError, file);
        }
        // Two faults: parsing finds the size first, inspecting the magic.
        if (offset !== undefined && error.needed === undefined && !file.startsWith("header.bad-magic-")) {
            assert.equal(error.offset, Number(offset), file);
            assert.ok(error.message.startsWith(`${field}: `), `${file}: ${error.message}`);
        }
    }
});

test("what runtimes refuse", () => {
    for (const file of names("refused/", /\.hex$/)) {
        const text = readFileSync(new URL(`refused/${file.replace(/hex$/, "txt")}`, testdata), "utf8");
        assert.equal(check(load(`refused/${file}`)), text.trimEnd().split("\n").at(-1), file);
    }
    for (const file of names("tolerated/", /\.hex$/)) {
        assert.equal(check(load(`tolerated/${file}`)), undefined, file);
    }
});

test("values that a field cannot have", () => {
    const provider = { keywords: -1, level: 4, name: "P", arguments: null };
    const session = { buffer_mb: 64, format: 1, rundown: false, providers: [provider] };
    assert.throws(() => encode("CollectTracing2", session), /^TypeError: providers\[0\]\.keywords must be an integer/);
    assert.throws(() => encode("StopTracing", {}), /^TypeError: session_id/);
    assert.throws(() => encode("ApplyStartupHook", { startup_hook_path: "x".repeat(40_000) }), MessageError);
    assert.equal(encode("SetEnvironmentVariable", { name: "A", value: "\u{1f600}" }).length, 20 + 8 + 10);
});

test("keywords as numbers and as bigints", () => {
    const provider = (keywords) => ({ keywords, level: 4, name: "P", arguments: null });
    const request = (keywords) =>
        encode("CollectTracing2", { buffer_mb: 64, format: 1, rundown: false, providers: [provider(keywords)] });
    for (const keywords of [0, 0x8000, 2 ** 53 - 1]) {
        assert.deepEqual(request(keywords), request(BigInt(keywords)));
    }
    assert.equal(parseMessage(request(2n ** 64n - 1n)).fields.providers[0].keywords, 2n ** 64n - 1n);
    // Such a number may have been another one before it was rounded.
    assert.throws(() => request(2 ** 53), /^TypeError: providers\[0\]\.keywords must be .* from 2\^53 on as a bigint, not 9007199254740992$/);
});

test("an argument of a wrong type is an error that names it", () => {
    const provider = { keywords: 0, level: 4, name: "P", arguments: null };
    const session = { buffer_mb: 64, format: 1, rundown: false, providers: [provider] };
    const streaming = { ...provider, filter: { enable: false, event_ids: [] } };
    const stream = { session_type: 0, buffer_mb: 1, format: 1, rundown_keyword: 0, stackwalk: true, providers: [streaming] };
    assert.equal(encode("CollectTracing5", stream).length, 20 + 4 + 4 + 4 + 8 + 1 + 4 + 29);
    for (const [call, message] of [
        [() => encode("Nope", {}), 'name must be the name of a command, a key of commands(), not "Nope"'],
        [() => encode("toString", {}), 'name must be the name of a command, a key of commands(), not "toString"'],
        [() => encode(undefined, {}), "name must be the name of a command, a key of commands(), not undefined"],
        [() => encode("StopTracing"), "fields must be an object with the fields of StopTracing, not undefined"],
        [() => encode("StopTracing", [1]), "fields must be an object with the fields of StopTracing, not an object of type Array"],
        [() => encode("StopTracing", { session_id: "1" }), 'session_id must be an integer from 0 to 2^64 - 1, from 2^53 on as a bigint, not "1"'],
        [() => encode("StopTracing", { session_id: 1, id: 1 }), 'StopTracing has no field "id": its fields are session_id'],
        [() => encode("GetProcessInfo", { pid: 1 }), 'GetProcessInfo has no field "pid": it has no fields'],
        [() => encode("CollectTracing2", { ...session, providers: "P" }), 'providers must be an array, not "P"'],
        [() => encode("CollectTracing2", { ...session, providers: [{ ...provider, keyword: 1 }] }),
            'providers[0] has no field "keyword": its fields are keywords, level, name, arguments'],
        [() => encode("CollectTracing5", { ...stream, rundown: true }),
            'CollectTracing5 has no field "rundown": its fields are session_type, buffer_mb, format, rundown_keyword, stackwalk, providers'],
        [() => encode("AttachProfiler", { attach_timeout: 1, profiler_guid: "1", profiler_path: null, client_data: null }),
            'profiler_guid must be a GUID, not "1"'],
        [() => parseMessage("00"), 'bytes must be a Uint8Array, not "00"'],
        [() => parseMessage([1, 2]), "bytes must be a Uint8Array, not an object of type Array"],
        [() => parseMessage(new Uint8Array(0), "Nope"), 'answerTo must be the name of a command, a key of commands(), not "Nope"'],
        [() => check(null), "request must be a Uint8Array, not null"],
        [() => initSync({}), "module must be a WebAssembly.Module, not an object of type Object"],
    ]) {
        assert.throws(call, { name: "TypeError", message });
    }
});

test("one module for a page and its workers", () => {
    assert.ok(initSync() instanceof WebAssembly.Module);
    assert.equal(initSync(initSync()), initSync());
});
