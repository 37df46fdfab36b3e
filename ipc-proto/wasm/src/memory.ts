// The WebAssembly module, and its memory: values that go in as addresses, and lists of items that come out.
import { mistake } from "./arguments.js";
import { base64 } from "./module.js";

/** A value of a field, as JavaScript has it. */
export type Value = boolean | number | bigint | string | null | Date | Uint8Array | Value[] | { [name: string]: Value };

/** An object of fields. */
export type Fields = { [name: string]: Value };

/** @internal */
interface Exports {
    memory: WebAssembly.Memory;
    __heap_base: WebAssembly.Global;
    reader_size(): number;
    reader_init(reader: number): void;
    reader_read(reader: number, window: number, len: number, rows: number, activities: number, capacity: number): void;
    reader_finish(reader: number, window: number, len: number): void;
    reader_end_text(reader: number, output: number): void;
    describe_trace(reader: number, pairs: number, len: number, output: number): void;
    description_size(): number;
    describe_metadata(
        version: number, pointerSize: number, record: number, len: number, description: number, output: number,
    ): void;
    payload_values(description: number, payload: number, len: number, output: number): void;
    describe_thread(entries: number, len: number, output: number): void;
    describe_labels(labels: number, len: number, output: number): void;
    describe_commands(output: number): void;
    inspect_message(bytes: number, len: number, answerTo: number, output: number): void;
    encode_request(code: number, payload: number, len: number, buf: number, size: number, output: number): number;
    check_request(bytes: number, len: number, output: number): void;
}

let compiled: WebAssembly.Module | undefined;

/**
 * Compiles the WebAssembly module, and returns it: a `WebAssembly.Module`. Without this call, the first other call does it.
 * A page can send the module to its workers, which pass it here and so do not compile their own.
 */
export function initSync(module?: object): object {
    if (module !== undefined && !(module instanceof WebAssembly.Module)) {
        throw mistake("module", "a WebAssembly.Module", module);
    }
    compiled ??= module;
    return compile();
}

/**
 * Returns the module, which the first call compiles. Nothing here waits, so nor does the import of the package: bundles
 * other than modules cannot, and a worker loses the messages that arrive meanwhile.
 */
function compile(): WebAssembly.Module {
    if (compiled === undefined) {
        const text = atob(base64);
        const bytes = new Uint8Array(text.length);
        // Much faster than `Uint8Array.from` with a function.
        for (let index = 0; index < bytes.length; index += 1) {
            bytes[index] = text.charCodeAt(index);
        }
        compiled = new WebAssembly.Module(bytes);
    }
    return compiled;
}

// The kinds of items: the order is that of `Kind` in rust/output.rs.
export const enum Kind {
    BeginObject, BeginArray, EndObject, EndArray, Boolean, CodeUnit, Int, UInt, Float, Decimal, DateTime, Guid, Text, Bytes,
    Null, Rest, Error,
}

const ITEM = 48;
const OUTPUT = 24;
const TEXT = 64 << 10;
/** More items are not values of a payload but an attack on memory. */
const MAX_ITEMS = 1 << 20;
const PAGE = 64 << 10;

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const utf16 = new TextDecoder("utf-16le", { ignoreBOM: true });

/** A fault that the module reports. */
export interface Fault {
    message: string;
    offset: number;
}

/** Memory of the module: areas that grow, one after the other. Each instance has its own. */
export class Instance {
    /** @internal */
    readonly exports: Exports;
    /** The first address of the last area, which can grow. */
    private top: number;
    private readonly output: number;
    private readonly text: number;
    private items = 0;
    private capacity = 0;
    private inputs = 0;
    private inputsLen = 0;

    constructor() {
        this.exports = new WebAssembly.Instance(compile(), {}).exports as unknown as Exports;
        this.top = this.exports.__heap_base.value;
        this.output = this.allocate(OUTPUT);
        this.text = this.allocate(TEXT);
        this.makeItems(256);
    }

    get bytes(): Uint8Array {
        return new Uint8Array(this.exports.memory.buffer);
    }

    get view(): DataView {
        return new DataView(this.exports.memory.buffer);
    }

    /** Returns the address of new memory, which stays. */
    allocate(len: number): number {
        const address = (this.top + 15) & ~15;
        this.top = address + len;
        const missing = this.top - this.exports.memory.buffer.byteLength;
        if (missing > 0) {
            this.exports.memory.grow(Math.ceil(missing / PAGE));
        }
        return address;
    }

    private makeItems(capacity: number): void {
        this.items = this.allocate(capacity * ITEM);
        this.capacity = capacity;
    }

    /** Copies inputs of a call into the module, and returns their addresses. They are valid up to the next call. */
    input(...pieces: Uint8Array[]): number[] {
        const len = sizeOf(pieces);
        if (len > this.inputsLen) {
            this.inputsLen = Math.max(2 * len, 4096);
            this.inputs = this.allocate(this.inputsLen);
        }
        return this.copy(pieces, this.inputs);
    }

    /** As {@link input}, but they stay valid. */
    keep(...pieces: Uint8Array[]): number[] {
        return this.copy(pieces, this.allocate(sizeOf(pieces)));
    }

    private copy(pieces: Uint8Array[], first: number): number[] {
        let address = first;
        const bytes = this.bytes;
        return pieces.map((piece) => {
            const start = address;
            bytes.set(piece, start);
            address = (start + piece.length + 15) & ~15;
            return start;
        });
    }

    /** Calls a function that fills a list of items, and returns them. */
    list(call: (output: number) => void): Items {
        for (;;) {
            const view = this.view;
            view.setUint32(this.output, this.items, true);
            view.setUint32(this.output + 4, this.capacity, true);
            view.setUint32(this.output + 8, this.text, true);
            view.setUint32(this.output + 12, TEXT, true);
            call(this.output);
            const len = this.view.getUint32(this.output + 16, true);
            if (len <= this.capacity) {
                return new Items(this.exports.memory.buffer, this.items, len);
            }
            if (len > MAX_ITEMS) {
                throw new RangeError(`a payload of ${len} values`);
            }
            this.makeItems(2 * len);
        }
    }

    /** Calls a function that writes a text, and returns it. */
    textOf(call: (output: number) => void): string {
        this.list(call);
        const len = Math.min(this.view.getUint32(this.output + 20, true), TEXT);
        return utf8.decode(this.bytes.subarray(this.text, this.text + len));
    }
}

/** The number of bytes that inputs take, each at an address of its own that is a multiple of 16. */
function sizeOf(pieces: Uint8Array[]): number {
    return pieces.reduce((sum, piece) => sum + piece.length + 16, 0);
}

/** Names of fields, each decoded once: the values of an array of objects refer to the same names many times. */
export class Names {
    /** The names by their address. */
    readonly texts = new Map<number, string>();
    /** The texts `name#number` of each name, by the number. */
    private readonly repetitions = new Map<string, string[]>();

    /** Returns `name#number`. */
    numbered(name: string, number: number): string {
        let numbered = this.repetitions.get(name);
        if (numbered === undefined) {
            this.repetitions.set(name, (numbered = []));
        }
        return (numbered[number] ??= `${name}#${number}`);
    }
}

/** A list of items. It is valid until the module is called again. */
export class Items {
    private readonly view: DataView;
    private readonly bytes: Uint8Array;

    constructor(buffer: ArrayBuffer, private readonly start: number, readonly length: number) {
        this.view = new DataView(buffer);
        this.bytes = new Uint8Array(buffer);
    }

    kind(index: number): Kind {
        return this.bytes[this.start + index * ITEM] as Kind;
    }

    private decode(isWide: boolean, address: number, len: number): string {
        if (len === 0) {
            return "";
        }
        // Most names are short and ASCII, for which a loop is faster than a decoder.
        if (len <= 64) {
            let text = "";
            const step = isWide ? 2 : 1;
            let at = address;
            const end = address + len;
            for (; at < end; at += step) {
                const unit = this.bytes[at];
                if (unit >= 0x80 || unit === 0 || (isWide && this.bytes[at + 1] !== 0)) {
                    break;
                }
                text += String.fromCharCode(unit);
            }
            if (at >= end) {
                return text;
            }
        }
        const text = (isWide ? utf16 : utf8).decode(this.bytes.subarray(address, address + len));
        if (!isWide || !text.includes("\ufffd")) {
            return text;
        }
        // A lone surrogate, which a string of JavaScript can have.
        let exact = "";
        for (let at = address; at + 1 < address + len; at += 2) {
            exact += String.fromCharCode(this.view.getUint16(at, true));
        }
        return exact;
    }

    name(index: number, names?: Names): string {
        const at = this.start + index * ITEM;
        const [address, len] = [this.view.getUint32(at + 4, true), this.view.getUint32(at + 8, true)];
        if (len === 0) {
            return "";
        }
        let name = names?.texts.get(address);
        if (name === undefined) {
            name = this.decode(this.bytes[at + 1] !== 0, address, len);
            names?.texts.set(address, name);
        }
        return name;
    }

    /** The name of a number. */
    label(index: number): string | undefined {
        const at = this.start + index * ITEM + 12;
        const address = this.view.getUint32(at, true);
        return address === 0 ? undefined : this.decode(false, address, this.view.getUint32(at + 4, true));
    }

    /** The offset of the value. */
    offset(index: number): number {
        return this.view.getUint32(this.start + index * ITEM + 20, true);
    }

    /** The number of bytes of the value. */
    size(index: number): number {
        return this.view.getUint32(this.start + index * ITEM + 24, true);
    }

    /** Bytes of the item; they are copied. */
    slice(index: number): Uint8Array {
        const at = this.start + index * ITEM + 28;
        const address = this.view.getUint32(at, true);
        return this.bytes.slice(address, address + this.view.getUint32(at + 4, true));
    }

    value(index: number): Value {
        const item = this.start + index * ITEM;
        const at = item + 28;
        const view = this.view;
        switch (this.kind(index)) {
            case Kind.Boolean:
                return view.getUint32(at, true) !== 0;
            case Kind.CodeUnit:
                return String.fromCharCode(view.getUint32(at, true));
            case Kind.Int: {
                const high = view.getInt32(at + 4, true);
                const number = high * 0x1_0000_0000 + view.getUint32(at, true);
                return Number.isSafeInteger(number) ? number : view.getBigInt64(at, true);
            }
            case Kind.UInt: {
                const number = view.getUint32(at + 4, true) * 0x1_0000_0000 + view.getUint32(at, true);
                return Number.isSafeInteger(number) ? number : view.getBigUint64(at, true);
            }
            case Kind.Float:
                return view.getFloat64(at, true);
            case Kind.DateTime:
                return new Date(Number(view.getBigUint64(at, true) / 10_000n) - 11_644_473_600_000);
            case Kind.Guid:
                return guid(this.bytes, at);
            case Kind.Decimal:
                return this.bytes.slice(at, at + 16);
            case Kind.Text: {
                const wide = this.bytes[item + 2] !== 0;
                return this.decode(wide, view.getUint32(at, true), view.getUint32(at + 4, true));
            }
            case Kind.Bytes:
            case Kind.Rest:
                return this.slice(index);
            default:
                return null;
        }
    }

    /**
     * The values as an object, with the bytes after them and the fault that ended them. `names` are those of a
     * description that stays in memory.
     */
    object(names: Names = new Names()): { fields: Fields; rest?: Uint8Array; fault?: Fault } {
        const result: { fields: Fields; rest?: Uint8Array; fault?: Fault } = { fields: {} };
        const open: (Fields | Value[])[] = [];
        const repeated = new Map<Fields, Map<string, number>>();
        let inner: Fields | Value[] = result.fields;
        const add = (index: number, value: Value): void => {
            if (Array.isArray(inner)) {
                inner.push(value);
            } else {
                set(inner, this.name(index, names), value, repeated, names);
            }
        };
        for (let index = 0; index < this.length; index += 1) {
            switch (this.kind(index)) {
                case Kind.BeginObject:
                case Kind.BeginArray: {
                    open.push(inner);
                    const isObject = this.kind(index) === Kind.BeginObject;
                    // The fields of an object that is the whole payload are those of the event.
                    if (isObject && inner === result.fields && this.name(index, names) === "") {
                        break;
                    }
                    const next: Fields | Value[] = isObject ? {} : [];
                    add(index, next);
                    inner = next;
                    break;
                }
                case Kind.EndObject:
                case Kind.EndArray:
                    inner = open.pop() ?? result.fields;
                    break;
                case Kind.Rest:
                    result.rest = this.slice(index);
                    break;
                case Kind.Error:
                    result.fault = this.fault(index);
                    break;
                default:
                    add(index, this.value(index));
            }
        }
        return result;
    }

    fault(index: number): Fault {
        const at = this.start + index * ITEM + 28;
        const message = this.decode(false, this.view.getUint32(at, true), this.view.getUint32(at + 4, true));
        return { message, offset: this.offset(index) };
    }

    /** The fault that is the last item, if one is. */
    lastFault(): Fault | undefined {
        const last = this.length - 1;
        return last >= 0 && this.kind(last) === Kind.Error ? this.fault(last) : undefined;
    }
}

/**
 * Sets a property: a second one of the same name is `name#2`, the third `name#3`. `repeated` has, for each object and
 * each name that it has more than once, the number after the last one: the search for a free name begins there.
 */
function set(object: Fields, name: string, value: Value, repeated: Map<Fields, Map<string, number>>, names: Names): void {
    let key = name;
    if (Object.hasOwn(object, name)) {
        let numbers = repeated.get(object);
        if (numbers === undefined) {
            repeated.set(object, (numbers = new Map()));
        }
        let n = numbers.get(name) ?? 2;
        do {
            key = names.numbered(name, n);
            n += 1;
        } while (Object.hasOwn(object, key));
        numbers.set(name, n);
    }
    if (key === "__proto__") {
        Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
    } else {
        object[key] = value;
    }
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** The text of a GUID in .NET's order: the first three groups are little-endian numbers. */
export function guid(bytes: Uint8Array, at: number): string {
    const order = [3, 2, 1, 0, -1, 5, 4, -1, 7, 6, -1, 8, 9, -1, 10, 11, 12, 13, 14, 15];
    return order.map((index) => (index < 0 ? "-" : HEX[bytes[at + index]])).join("");
}
