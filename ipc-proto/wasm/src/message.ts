// Messages of the Diagnostic IPC protocol.
import { checkBytes, checkFields, isBytes, isObject, mistake } from "./arguments.js";
import type { CommandName, Commands } from "./commands.js";
import { shapes } from "./types.js";
import { instance } from "./trace.js";
import type { Fault, Fields, Value } from "./memory.js";

/** A part of a message: a field of the header or of the payload. */
export interface Part {
    /** The name of the part, with the names of the parts that contain it: `providers[0].name`. */
    path: string;
    /** The offset of its bytes from the start of the message. */
    offset: number;
    /** The number of its bytes. */
    length: number;
    value: Value;
    /** The name of the value, if it is a number that has one. */
    label?: string;
}

/** A message: a request or an answer. */
export interface Message {
    /** The command set in the high byte, the command in the low byte: `0x0203`. */
    code: number;
    /** The name of the command; `OK` or `Error` for an answer; `undefined` for an unknown command. */
    name: string | undefined;
    /** The number of bytes of the message: those after it follow on the connection. */
    length: number;
    /** All parts in order, without a gap. */
    parts: Part[];
    /** The fields of the payload, without counts and reserved numbers, nested as in the message. */
    fields: Fields;
}

/** Bytes that are not a message, or a request that cannot be written. */
export class MessageError extends Error {
    /** The offset of the fault. */
    readonly offset: number;
    /** The number of bytes that are needed, as far as it is known, if the message is only incomplete. */
    readonly needed: number | undefined;
    /** The parts before the fault. */
    readonly parts: Part[];

    constructor(fault: Fault, parts: Part[] = [], needed?: number) {
        super(needed === undefined ? `${fault.message} (at byte ${fault.offset})` : `the message is not complete: ${needed} bytes are needed`);
        this.name = "MessageError";
        this.offset = fault.offset;
        this.needed = needed;
        this.parts = parts;
    }
}

/** A row of the table of commands. */
interface Row {
    code: number;
    specification_name: string;
    since: number;
    response: string;
    fields: { [name: string]: string };
}

let table: { [name in CommandName]: Row } | undefined;

/** The table of commands: code, name in the specification, first version of .NET, type of the answer, types of the fields. */
export function commands(): { readonly [name in CommandName]: Readonly<Row> } {
    if (table === undefined) {
        const module = instance();
        const { fields } = module.list((output) => module.exports.describe_commands(output)).object();
        // Types are in the words of Rust.
        const plain = (type: string): string => type.replace(/\s|'\w+,?\s*/g, "").replace(/<>/g, "");
        for (const row of Object.values(fields as unknown as { [name: string]: Row })) {
            row.fields = Object.fromEntries(Object.entries(row.fields).map(([name, type]) => [name, plain(type)]));
        }
        table = fields as unknown as { [name in CommandName]: Row };
    }
    return table;
}

/** Returns a command's row. `path` is the argument with its name. */
function row(path: string, name: string): Row {
    if (typeof name !== "string" || !Object.hasOwn(commands(), name)) {
        throw mistake(path, "the name of a command, a key of commands()", name);
    }
    return commands()[name as CommandName];
}

/**
 * Parses the message at the front of the bytes.
 *
 * `answerTo` is the command that an answer belongs to: an answer does not state it. Without it the payload of an answer is one
 * part. Fails with a {@link MessageError}.
 */
export function parseMessage(bytes: Uint8Array, answerTo?: CommandName): Message {
    checkBytes("bytes", bytes);
    const module = instance();
    const code = answerTo === undefined ? 0 : row("answerTo", answerTo).code;
    const [address] = module.input(bytes);
    const items = module.list((output) => module.exports.inspect_message(address, bytes.length, code, output));
    const fault = items.lastFault();
    const parts: Part[] = [];
    for (let index = 1; index < items.length - (fault === undefined ? 0 : 1); index += 1) {
        const label = items.label(index);
        parts.push({
            path: items.name(index),
            offset: items.offset(index),
            length: items.size(index),
            value: items.value(index),
            ...(label === undefined ? {} : { label }),
        });
    }
    if (fault !== undefined) {
        throw new MessageError(fault, parts, items.name(0) === "needed" ? (items.value(0) as number) : undefined);
    }
    const set = parts.find((part) => part.path === "command_set")?.value as number;
    const id = parts.find((part) => part.path === "command_id");
    return {
        code: set * 256 + (id?.value as number),
        name: id?.label,
        length: items.value(0) as number,
        parts,
        fields: nest(parts),
    };
}

/** The offset of the payload. */
const HEADER = 20;

/** Makes an object of the parts of the payload. */
function nest(parts: Part[]): Fields {
    const fields: Fields = {};
    for (const { path, offset, value } of parts) {
        if (offset < HEADER || path === "rest" || /(^|\.)reserved$/.test(path)) {
            continue;
        }
        const keys = path.split(/[.[\]]+/).filter((key) => key !== "");
        const isCount = keys[keys.length - 1] === "count";
        if (isCount) {
            keys.pop();
        }
        let inner = fields as { [key: string]: Value };
        keys.forEach((key, index) => {
            if (index + 1 < keys.length) {
                inner[key] ??= /^\d+$/.test(keys[index + 1]) ? [] : {};
                inner = inner[key] as { [key: string]: Value };
            } else if (!isCount) {
                inner[key] = value;
            } else if (keys.length > 0) {
                // The count of a list without items is all that says that there is a list; a text replaces its count.
                inner[key] ??= [];
            }
        });
    }
    return fields;
}

/** Writes the payload of a request. */
class Writer {
    private bytes = new Uint8Array(1024);
    private len = 0;

    private space(len: number): DataView {
        while (this.len + len > this.bytes.length) {
            const larger = new Uint8Array(2 * this.bytes.length);
            larger.set(this.bytes);
            this.bytes = larger;
        }
        this.len += len;
        return new DataView(this.bytes.buffer, this.len - len, len);
    }

    /** Writes a value of a type in the table or in {@link shapes}. */
    write(type: string, value: unknown, path: string): void {
        const wrong = (expected: string): TypeError => mistake(path, expected, value);
        const array = /^Array<(.*)>$/.exec(type);
        if (array !== null) {
            if (!Array.isArray(value)) {
                throw wrong("an array");
            }
            this.space(4).setUint32(0, value.length, true);
            value.forEach((item, index) => this.write(array[1], item, `${path}[${index}]`));
            return;
        }
        const shape = shapes[type];
        if (shape !== undefined) {
            if (!isObject(value)) {
                throw wrong("an object");
            }
            const fields = typeof shape === "function" ? shape(value) : shape;
            checkFields(path, value, Object.keys(fields));
            for (const [name, of] of Object.entries(fields)) {
                this.write(of, value[name], `${path}.${name}`);
            }
            return;
        }
        switch (type) {
            case "bool":
                if (typeof value !== "boolean") {
                    throw wrong("a boolean");
                }
                this.space(1).setUint8(0, Number(value));
                break;
            case "u64": {
                const number = typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : value;
                if (typeof number !== "bigint" || number < 0n || number >> 64n !== 0n) {
                    throw wrong("an integer from 0 to 2^64 - 1, from 2^53 on as a bigint");
                }
                this.space(8).setBigUint64(0, number, true);
                break;
            }
            case "Text":
                if (value !== null && typeof value !== "string") {
                    throw wrong("a string or null");
                }
                this.text(value);
                break;
            case "Guid": {
                const hex = typeof value === "string" ? value.replace(/[-{}]/g, "") : "";
                if (!/^[0-9a-f]{32}$/i.test(hex)) {
                    throw wrong("a GUID");
                }
                const space = this.space(16);
                [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15].forEach((from, to) => {
                    space.setUint8(to, Number.parseInt(hex.slice(2 * from, 2 * from + 2), 16));
                });
                break;
            }
            case "ClientData":
                if (!isBytes(value)) {
                    throw wrong("a Uint8Array");
                }
                this.space(4).setUint32(0, value.length, true);
                this.space(value.length);
                this.bytes.set(value, this.len - value.length);
                break;
            default:
                // The other names of the table are those of numbers of 32 bits.
                if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > 0xffff_ffff) {
                    throw wrong("an integer from 0 to 2^32 - 1");
                }
                this.space(4).setUint32(0, value, true);
        }
    }

    private text(value: string | null): void {
        this.space(4).setUint32(0, value === null ? 0 : value.length + 1, true);
        if (value !== null) {
            const units = this.space(2 * value.length + 2);
            for (let index = 0; index < value.length; index += 1) {
                units.setUint16(2 * index, value.charCodeAt(index), true);
            }
        }
    }

    finish(): Uint8Array {
        return this.bytes.subarray(0, this.len);
    }
}

/** The length of the longest message. */
const MAX_MESSAGE = 65_535;

/**
 * Returns the bytes of a request: `encode("StopTracing", { session_id: 7n })`.
 *
 * Fails with a `TypeError` for a value that its field cannot have, and with a {@link MessageError} if the message would be too
 * long. What a runtime would refuse is not checked: see {@link check}.
 */
export function encode<Name extends CommandName>(name: Name, fields: Commands[Name]): Uint8Array {
    const { code, fields: types } = row("name", name);
    const values: unknown = fields;
    if (!isObject(values)) {
        throw mistake("fields", `an object with the fields of ${name}`, values);
    }
    const writer = new Writer();
    const session = Object.values(types).find((type) => type.startsWith("SessionConfig"));
    if (session !== undefined) {
        // The fields of a session are those of the request.
        writer.write(session, values, name);
    } else {
        checkFields(name, values, Object.keys(types));
        for (const [field, type] of Object.entries(types)) {
            writer.write(type, values[field], field);
        }
    }
    const payload = writer.finish();
    const module = instance();
    const [address, space] = module.input(payload, new Uint8Array(MAX_MESSAGE));
    let len = 0;
    const items = module.list((output) => {
        len = module.exports.encode_request(code, address, payload.length, space, MAX_MESSAGE, output);
    });
    const fault = items.lastFault();
    if (fault !== undefined || len === 0) {
        throw new MessageError(fault ?? { message: "the payload is not that of the command", offset: HEADER });
    }
    return module.bytes.slice(space, space + len);
}

/**
 * Checks a request as a runtime does before it carries out the command. Returns the reason why it would be refused, or
 * `undefined`.
 */
export function check(request: Uint8Array): string | undefined {
    checkBytes("request", request);
    const module = instance();
    const [address] = module.input(request);
    return module.list((output) => module.exports.check_request(address, request.length, output)).lastFault()?.message;
}
