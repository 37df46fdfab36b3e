// The golden messages of testdata/.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { check, commands, encode, MessageError, parseMessage } from "../dist/index.js";

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
