// NetTrace: events from a stream of bytes.
import { checkBytes, checkFields, isBytes, isObject, mistake, typeName } from "./arguments.js";
import { guid, Instance, Names, type Fields, type Value } from "./memory.js";

/** What a stream states about itself. */
export interface TraceInfo {
    /** The layout of the stream: 3 (NetPerf), 4 or 6. */
    version: number;
    /** Bytes of an address in a stack: 4 or 8. */
    pointerSize: number;
    /** Ticks of {@link TraceEvent.timestamp} per second. */
    frequency: number;
    /** The timestamp at the start of the session. */
    startTimestamp: bigint;
    /** When the session started; `null` if the trace states no date that exists. */
    start: Date | null;
    processId: number | null;
    processors: number | null;
    /** Nanoseconds between two samples of the sampling profiler. */
    samplingInterval: number | null;
    /** Pairs of strings; version 6 only. */
    pairs: { [key: string]: string };
}

/** How a stream ended. */
export interface TraceEnd {
    /** Complete: the stream has its end mark. Truncated: it has none. Corrupt: it has bytes that are not NetTrace. */
    kind: "complete" | "truncated" | "corrupt";
    /** The offset of the end or of the fault in the stream; 0 for a complete stream. */
    offset: number;
    /** A sentence. */
    message: string;
}

/** A thread of version 6, which states more than an id. */
export interface TraceThread {
    name?: string;
    process_id?: number;
    thread_id?: number;
    [key: string]: Value | undefined;
}

/** The description of a kind of event in the memory of a module. @internal */
interface Description {
    module: Instance;
    address: number;
    names: Names;
}

/** A kind of event: what a trace states once for all events of the kind. */
export class EventKind {
    /** The name of the provider. */
    readonly provider: string;
    /** The number of the event at its provider. */
    readonly id: number;
    /** The name of the event; empty if it has none. */
    readonly name: string;
    /** The version of its fields. */
    readonly version: number;
    /** From 1, critical, to 5, verbose; 0 is always on. */
    readonly level: number;
    /** 1 is start, 2 is stop; `undefined` if it is not stated. */
    readonly opcode: number | undefined;
    /** The provider's keywords that enable the event. */
    readonly keywords: bigint;
    /** Whether the fields of the payload are described. */
    readonly hasFields: boolean;
    /** Texts that version 6 can state: `message_template`, `description`, `provider_guid`, `attributes`. */
    readonly more: Fields;
    /** The first fault of the description, if it has one: fields from there on are missing. */
    readonly problem: string | undefined;

    /** @internal */
    constructor(
        fields: Fields,
        problem: string | undefined,
        /** @internal */ readonly description?: Description,
    ) {
        const { provider, id, name, version, level, opcode, keywords, has_fields: hasFields, metadata_id: _, ...more } = fields;
        this.provider = provider as string;
        this.id = id as number;
        this.name = name as string;
        this.version = version as number;
        this.level = level as number;
        this.opcode = opcode as number | undefined;
        this.keywords = BigInt(keywords as number | bigint);
        this.hasFields = (hasFields as boolean) && description !== undefined;
        this.more = more;
        this.problem = problem;
    }
}

/** The kind of events whose description is missing, which is possible after a damaged block. */
const UNKNOWN = new EventKind(
    { provider: "", id: 0, name: "", version: 0, level: 0, keywords: 0, has_fields: false },
    "the stream does not describe this event",
);

/** A trace that is damaged or cut off. All events that can be read were delivered before. */
export class TraceError extends Error {
    /** How the stream ended. */
    readonly end: TraceEnd;

    constructor(end: TraceEnd) {
        super(`the trace is ${end.message}`);
        this.name = "TraceError";
        this.end = end;
    }
}

// The kinds of rows: the order is that of `RowKind` in rust/trace.rs.
const enum RowKind { Event, Metadata, Stack, Trace, SequencePoint, Thread, RemoveThread, LabelList, BadBlock }

/** The words of a row. */
const WORDS = 16;
const enum Word {
    Kind, Id, Start, Len, Stack, Processor, Sequence, LabelList, Timestamp, TimestampHigh, Thread, ThreadHigh, CaptureThread,
    CaptureThreadHigh, Activities, IsSorted,
}
const OWN_STACK = 0xffff_ffff;
const NO_PROCESSOR = 0xffff_ffff;
/** Rows of a table. With a window of 256 KiB, the window nearly always ends first. */
const CAPACITY = 8192;
const WINDOW = 256 << 10;
/** The number of bytes that all descriptions of a trace may take. */
const DESCRIPTIONS = 32 << 20;

const latin1 = new TextDecoder("latin1");

/** Bytes that events refer to: those of a batch, or a copy of them. @internal */
interface Piece {
    bytes: Uint8Array;
    start: number;
    len: number;
    /** The labels, once an event was asked for them: any number of events can refer to a list of any length. */
    labels?: Fields;
}

/** What a thread is from a context on. @internal */
interface ThreadVersion {
    /** {@link Context.replaced} of the first context that has this version. */
    since: number;
    thread: TraceThread;
}

/** What the events of a batch refer to. @internal */
interface Context {
    info: TraceInfo;
    stacks: Map<number, Piece>;
    labels: Map<number, Piece>;
    /**
     * The versions of each thread, in their order. A version that replaces another one begins a context. They stay until
     * the stream removes all threads.
     */
    threads: Map<number, ThreadVersion[]>;
    /** The number of versions that replaced others. */
    replaced: number;
}

let shared: Instance | undefined;

/** The instance for everything that has no state. */
export function instance(): Instance {
    shared ??= new Instance();
    return shared;
}

/** Events of a trace that were read together: at most 8,192. */
export class Batch {
    /** The number of events. */
    readonly length: number;

    /** @internal */
    constructor(
        /** @internal */ readonly context: Context,
        /** The kind of each event. */
        readonly kinds: readonly EventKind[],
        /** @internal */ readonly places: Uint32Array,
        /** @internal */ readonly rows: Uint32Array,
        /** @internal */ readonly bytes: Uint8Array,
        /** @internal */ readonly activities: Uint8Array,
    ) {
        this.length = kinds.length;
    }

    /** Returns an event. */
    event(index: number): TraceEvent {
        return new TraceEvent(this, index);
    }

    /** Returns the milliseconds from the start of the trace to an event. */
    time(index: number): number {
        const at = this.places[index] * WORDS;
        const { info } = this.context;
        const start = info.startTimestamp;
        const high = this.rows[at + Word.TimestampHigh] - Number(start >> 32n);
        const low = this.rows[at + Word.Timestamp] - Number(start & 0xffff_ffffn);
        return ((high * 0x1_0000_0000 + low) * 1000) / info.frequency;
    }

    *[Symbol.iterator](): Generator<TraceEvent, void, undefined> {
        for (let index = 0; index < this.length; index += 1) {
            yield this.event(index);
        }
    }
}

/** An event. It stays valid, and so does the memory of its batch. */
export class TraceEvent {
    /** The kind of the event. */
    readonly kind: EventKind;

    /** @internal */
    constructor(private readonly batch: Batch, private readonly index: number) {
        this.kind = batch.kinds[index];
    }

    private word(word: Word): number {
        return this.batch.rows[this.batch.places[this.index] * WORDS + word];
    }

    private long(word: Word): bigint {
        return (BigInt(this.word(word + 1)) << 32n) | BigInt(this.word(word));
    }

    private double(word: Word): number {
        return this.word(word + 1) * 0x1_0000_0000 + this.word(word);
    }

    /** The name of the provider. */
    get provider(): string {
        return this.kind.provider;
    }
    /** The number of the event at its provider. */
    get id(): number {
        return this.kind.id;
    }
    /** The name of the event; empty if it has none. */
    get name(): string {
        return this.kind.name;
    }
    /** The version of its fields. */
    get version(): number {
        return (this.labels.version as number | undefined) ?? this.kind.version;
    }
    /** From 1, critical, to 5, verbose; 0 is always on. */
    get level(): number {
        return (this.labels.level as number | undefined) ?? this.kind.level;
    }
    /** 1 is start, 2 is stop; `undefined` if it is not stated. */
    get opcode(): number | undefined {
        return (this.labels.opcode as number | undefined) ?? this.kind.opcode;
    }
    /** The provider's keywords that enable the event. */
    get keywords(): bigint {
        const { keywords } = this.labels;
        return keywords === undefined ? this.kind.keywords : BigInt(keywords as number | bigint);
    }
    /** The milliseconds from the start of the trace. */
    get time(): number {
        return this.batch.time(this.index);
    }
    /** The nanoseconds from the start of the trace, rounded down. */
    get nanoseconds(): bigint {
        const { info } = this.batch.context;
        const scaled = BigInt.asIntN(64, this.timestamp - info.startTimestamp) * 1_000_000_000n;
        const frequency = BigInt(info.frequency);
        const quotient = scaled / frequency;
        return scaled < 0n && quotient * frequency !== scaled ? quotient - 1n : quotient;
    }
    /** The time by the clock of the machine that recorded it; `null` if the trace states no date that exists. */
    get date(): Date | null {
        const { start } = this.batch.context.info;
        const date = start && new Date(start.getTime() + this.time);
        return date && !Number.isNaN(date.getTime()) ? date : null;
    }
    /** The time in ticks: see {@link TraceInfo.frequency}. */
    get timestamp(): bigint {
        return this.long(Word.Timestamp);
    }
    /** The operating system's id of the thread; in version 6 the thread's index if the stream states no id. */
    get threadId(): number {
        return this.thread?.thread_id ?? this.double(Word.Thread);
    }
    /** The thread with its name and its process; version 6 only. */
    get thread(): TraceThread | undefined {
        const { threads, replaced } = this.batch.context;
        const versions = threads.get(this.double(Word.Thread)) ?? [];
        let [first, end] = [0, versions.length];
        while (end - first > 1) {
            const middle = (first + end) >> 1;
            if (versions[middle].since <= replaced) {
                first = middle;
            } else {
                end = middle;
            }
        }
        return versions[first]?.since <= replaced ? versions[first].thread : undefined;
    }
    /** The processor, if it was recorded. */
    get processor(): number | undefined {
        const processor = this.word(Word.Processor);
        return processor === NO_PROCESSOR ? undefined : processor;
    }
    /** The number of the event among those of the thread that wrote it. */
    get sequence(): number {
        return this.word(Word.Sequence);
    }
    /** The thread that wrote the event, in the numbers of the stream. */
    get captureThread(): bigint {
        return this.long(Word.CaptureThread);
    }
    /** Whether no later event of the stream is older than this one. */
    get isSorted(): boolean {
        return this.word(Word.IsSorted) !== 0;
    }
    /** The number of the description in the stream. */
    get metadataId(): number {
        return this.word(Word.Id);
    }
    /** The id of the activity. */
    get activityId(): string | undefined {
        return (this.labels.activity_id as string | undefined) ?? this.activity(0);
    }
    /** The id of the activity that started this one. */
    get relatedActivityId(): string | undefined {
        return (this.labels.related_activity_id as string | undefined) ?? this.activity(16);
    }

    private activity(offset: number): string | undefined {
        const place = this.word(Word.Activities);
        if (place === 0) {
            return undefined;
        }
        const at = (place - 1) * 32 + offset;
        const { activities } = this.batch;
        return activities.subarray(at, at + 16).some((byte) => byte !== 0) ? guid(activities, at) : undefined;
    }

    /** The labels of the event; version 6 only. */
    get labels(): Fields {
        const list = this.word(Word.LabelList);
        const piece = list === 0 ? undefined : this.batch.context.labels.get(list);
        return piece === undefined ? NONE : (piece.labels ??= Object.freeze(describe(piece, "describe_labels")));
    }

    /** The number of the stack in the stream; 0 for none. */
    get stackId(): number {
        const id = this.word(Word.Stack);
        return id === OWN_STACK ? 0 : id;
    }

    /** The addresses of the stack, the innermost first; empty if there is none. */
    get stack(): bigint[] {
        const id = this.word(Word.Stack);
        if (id === 0) {
            return [];
        }
        const { context, rows, bytes, places } = this.batch;
        // The row before that of the event is that of its stack.
        const own = (places[this.index] - 1) * WORDS;
        const piece =
            id === OWN_STACK
                ? { bytes, start: rows[own + Word.Start], len: rows[own + Word.Len] }
                : context.stacks.get(id);
        if (piece === undefined) {
            return [];
        }
        const size = context.info.pointerSize === 4 ? 4 : 8;
        const view = new DataView(piece.bytes.buffer, piece.bytes.byteOffset + piece.start, piece.len);
        const stack: bigint[] = [];
        for (let at = 0; at + size <= piece.len; at += size) {
            stack.push(size === 4 ? BigInt(view.getUint32(at, true)) : view.getBigUint64(at, true));
        }
        return stack;
    }

    /** The bytes of the fields. */
    get payload(): Uint8Array {
        const start = this.word(Word.Start);
        return this.batch.bytes.subarray(start, start + this.word(Word.Len));
    }

    /** The fields of the event by name; those before the fault, if the payload does not fit its description. */
    get fields(): Fields {
        return this.decode().fields;
    }

    /**
     * Returns the value of a field; `"Payload.Mean"` is the field `Mean` of the object `Payload`. `undefined` if there is none.
     */
    field(path: string): Value | undefined {
        return find(this.fields, path);
    }

    /** Returns the fields, the bytes after them, and the fault if the payload does not fit its description. */
    decode(): { fields: Fields; rest?: Uint8Array; fault?: { message: string; offset: number } } {
        const { kind: { description, hasFields }, payload } = this;
        if (!hasFields || description === undefined) {
            return payload.length === 0 ? { fields: {} } : { fields: {}, rest: payload };
        }
        const { module, address, names } = description;
        const [bytes] = module.input(payload);
        return module.list((output) => module.exports.payload_values(address, bytes, payload.length, output)).object(names);
    }

    /**
     * The event as a plain object, for `JSON.stringify` and `structuredClone`: integers from 2^53 on are decimal texts, bytes
     * are hexadecimal digits, and addresses, keywords and the timestamp are always texts.
     */
    toJSON(): PlainEvent {
        const { fields, rest, fault } = this.decode();
        return {
            provider: this.provider,
            id: this.id,
            version: this.version,
            name: this.name,
            level: this.level,
            opcode: this.opcode ?? null,
            keywords: String(this.keywords),
            time: this.time,
            timestamp: String(this.timestamp),
            date: this.date?.toISOString() ?? null,
            threadId: this.threadId,
            processor: this.processor ?? null,
            activityId: this.activityId ?? null,
            relatedActivityId: this.relatedActivityId ?? null,
            labels: toPlain(this.labels) as { [name: string]: Plain },
            stack: this.stack.map(String),
            fields: toPlain(fields) as { [name: string]: Plain },
            ...(rest === undefined ? {} : { rest: hex(rest) }),
            ...(fault === undefined ? {} : { fault }),
        };
    }
}

/** A value as JSON has it. */
export type Plain = boolean | number | string | null | Plain[] | { [name: string]: Plain };

/** What {@link TraceEvent.toJSON} returns. */
export interface PlainEvent {
    provider: string;
    id: number;
    version: number;
    name: string;
    level: number;
    opcode: number | null;
    keywords: string;
    time: number;
    timestamp: string;
    date: string | null;
    threadId: number;
    processor: number | null;
    activityId: string | null;
    relatedActivityId: string | null;
    labels: { [name: string]: Plain };
    stack: string[];
    fields: { [name: string]: Plain };
    /** The bytes after the fields. */
    rest?: string;
    /** Why fields are missing. */
    fault?: { message: string; offset: number };
}

function hex(bytes: Uint8Array): string {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function toPlain(value: Value): Plain {
    if (typeof value === "bigint") {
        return String(value);
    }
    if (value === null || typeof value !== "object") {
        return value;
    }
    if (Array.isArray(value)) {
        return value.map(toPlain);
    }
    if (value instanceof Uint8Array) {
        return hex(value);
    }
    if (value instanceof Date) {
        return Number.isNaN(value.getTime()) ? null : value.toISOString();
    }
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, toPlain(inner)]));
}

const NONE: Fields = Object.freeze({});

function find(value: Value, path: string): Value | undefined {
    if (value === null || typeof value !== "object" || Array.isArray(value) || value instanceof Uint8Array || value instanceof Date) {
        return undefined;
    }
    if (Object.hasOwn(value, path)) {
        return value[path];
    }
    for (let dot = path.indexOf("."); dot >= 0; dot = path.indexOf(".", dot + 1)) {
        const name = path.slice(0, dot);
        const found = Object.hasOwn(value, name) ? find(value[name], path.slice(dot + 1)) : undefined;
        if (found !== undefined) {
            return found;
        }
    }
    return undefined;
}

function describe(piece: Piece, name: "describe_labels" | "describe_thread"): Fields {
    const module = instance();
    const [address] = module.input(piece.bytes.subarray(piece.start, piece.start + piece.len));
    return module.list((output) => module.exports[name](address, piece.len, output)).object().fields;
}

/** Whether a row is what later events refer to by its number. */
function isShared(kind: number, id: number): boolean {
    return (kind === RowKind.Stack && id !== OWN_STACK) || kind === RowKind.LabelList;
}

/**
 * Copies the stacks and label lists of rows, which can stay long after the events around them. Returns their copies in the
 * order of the rows.
 */
function copyShared(rows: Uint32Array, count: number, bytes: Uint8Array): { next(start: number, len: number): Piece } {
    let size = 0;
    for (let at = 0; at < count * WORDS; at += WORDS) {
        size += isShared(rows[at], rows[at + Word.Id]) ? rows[at + Word.Len] : 0;
    }
    const copy = new Uint8Array(size);
    let end = 0;
    return {
        next(start, len) {
            copy.set(bytes.subarray(start, start + len), end);
            end += len;
            return { bytes: copy, start: end - len, len };
        },
    };
}

/**
 * Reads a trace from bytes that arrive in pieces of any size. {@link readTrace} is this class around a source of bytes.
 */
export class TraceReader {
    private readonly module = new Instance();
    private readonly reader: number;
    private readonly rows: number;
    private readonly activities: number;
    /** The window is from `windowStart` to `windowEnd` in memory of `size` bytes at `window`. */
    private window: number;
    private size = WINDOW;
    private windowStart = 0;
    private windowEnd = 0;
    private pending: Uint8Array = new Uint8Array(0);
    private isClosed = false;
    private status = 1;
    private kinds: (EventKind | undefined)[] = [];
    private moreKinds = new Map<number, EventKind>();
    private context: Context = {
        info: {
            version: 4, pointerSize: 8, frequency: 1_000_000_000, startTimestamp: 0n, start: new Date(0), processId: null,
            processors: null, samplingInterval: null, pairs: {},
        },
        stacks: new Map(),
        labels: new Map(),
        threads: new Map(),
        replaced: 0,
    };
    /** The kinds of events by the bytes of their description. */
    private described = new Map<string, { id: number; kind: EventKind }>();
    /** The number of bytes that further descriptions may take. */
    private room = DESCRIPTIONS;
    private known = false;
    private readonly batches: Batch[] = [];
    private endText: TraceEnd | undefined;

    constructor() {
        const { exports } = this.module;
        this.reader = this.module.allocate(exports.reader_size());
        this.rows = this.module.allocate(CAPACITY * WORDS * 4);
        this.activities = this.module.allocate(CAPACITY * 32);
        this.window = this.module.allocate(this.size);
        exports.reader_init(this.reader);
    }

    /** Adds the next bytes of the stream. They must not change until {@link next} has returned `undefined`. */
    push(bytes: Uint8Array): void {
        checkBytes("bytes", bytes);
        if (this.isClosed) {
            throw new Error("no bytes can follow after close()");
        }
        if (this.pending.length === 0) {
            this.pending = bytes;
        } else {
            const joined = new Uint8Array(this.pending.length + bytes.length);
            joined.set(this.pending);
            joined.set(bytes, this.pending.length);
            this.pending = joined;
        }
    }

    /** Reports the end of the input. */
    close(): void {
        this.isClosed = true;
    }

    /** Returns the next events, or `undefined` if more bytes are needed, or at the end. */
    next(): Batch | undefined {
        for (;;) {
            const batch = this.batches.shift();
            if (batch !== undefined) {
                return batch;
            }
            if (this.status === 2) {
                return undefined;
            }
            if (this.status === 1 && !this.fill()) {
                if (this.isClosed) {
                    this.module.exports.reader_finish(this.reader, this.window + this.windowStart, this.windowEnd - this.windowStart);
                    this.status = 2;
                    this.ends();
                }
                return undefined;
            }
            this.read();
        }
    }

    /** What the stream states about itself, which is known with the first event at the latest. */
    get info(): TraceInfo | undefined {
        return this.known ? this.context.info : undefined;
    }

    /** How the stream ended, once its last byte was read. */
    get end(): TraceEnd | undefined {
        return this.endText;
    }

    /** How many events the runtime dropped because its buffer was full, as Microsoft's reader counts them. */
    get lost(): number {
        return this.reportLong(32);
    }

    /** How many events the runtime dropped before the first one of their thread. */
    get lostAtStart(): number {
        return this.reportLong(40);
    }

    private report(offset: number): number {
        return this.module.view.getUint32(this.reader + offset, true);
    }

    private reportLong(offset: number): number {
        return Number(this.module.view.getBigUint64(this.reader + offset, true));
    }

    /** Moves pending bytes into the window. Returns whether there were any. */
    private fill(): boolean {
        if (this.pending.length === 0) {
            return false;
        }
        const { bytes } = this.module;
        const needed = this.report(12);
        if (this.windowStart > 0 && this.size - this.windowEnd < this.size / 2) {
            bytes.copyWithin(this.window, this.window + this.windowStart, this.window + this.windowEnd);
            this.windowEnd -= this.windowStart;
            this.windowStart = 0;
        }
        if (this.windowEnd === this.size) {
            // A record that claims to be long gets memory as its bytes arrive.
            const size = Math.max(2 * this.size, Math.min(needed, 4 * this.size));
            const window = this.module.allocate(size);
            this.module.bytes.copyWithin(window, this.window, this.window + this.windowEnd);
            this.window = window;
            this.size = size;
        }
        const len = Math.min(this.pending.length, this.size - this.windowEnd);
        this.module.bytes.set(this.pending.subarray(0, len), this.window + this.windowEnd);
        this.windowEnd += len;
        this.pending = this.pending.subarray(len);
        return true;
    }

    private read(): void {
        const { module } = this;
        const window = this.window + this.windowStart;
        module.exports.reader_read(this.reader, window, this.windowEnd - this.windowStart, this.rows, this.activities, CAPACITY);
        const [rows, used] = [this.report(0), this.report(4)];
        this.status = this.report(8);
        if (rows > 0) {
            // The copies belong to the batches: their events stay valid.
            const { buffer } = module.exports.memory;
            const table = new Uint32Array(buffer.slice(this.rows, this.rows + rows * WORDS * 4));
            const bytes = module.bytes.slice(window, window + used);
            const activities = module.bytes.slice(this.activities, this.activities + this.report(56) * 32);
            this.split(table, rows, bytes, activities);
        }
        this.windowStart += used;
        if (this.status === 2) {
            this.ends();
        }
    }

    /** Makes batches of rows: one for the events between two rows that replace what events refer to. */
    private split(rows: Uint32Array, count: number, bytes: Uint8Array, activities: Uint8Array): void {
        const copies = copyShared(rows, count, bytes);
        let kinds: EventKind[] = [];
        let events = 0;
        const places = new Uint32Array(count);
        const cut = (): void => {
            if (kinds.length > 0) {
                const own = places.subarray(events - kinds.length, events);
                this.batches.push(new Batch(this.context, kinds, own, rows, bytes, activities));
                kinds = [];
            }
        };
        for (let row = 0; row < count; row += 1) {
            const at = row * WORDS;
            const kind = rows[at] as RowKind;
            if (kind === RowKind.Event) {
                const id = rows[at + Word.Id];
                places[events] = row;
                events += 1;
                kinds.push((id < 4096 ? this.kinds[id] : this.moreKinds.get(id)) ?? UNKNOWN);
                continue;
            }
            const id = rows[at + Word.Id];
            const [start, len] = [rows[at + Word.Start], rows[at + Word.Len]];
            const thread = rows[at + Word.ThreadHigh] * 0x1_0000_0000 + rows[at + Word.Thread];
            switch (kind) {
                case RowKind.Metadata:
                    this.addKind(bytes.subarray(start, start + len));
                    break;
                case RowKind.Stack:
                    if (id !== OWN_STACK) {
                        this.context.stacks.set(id, copies.next(start, len));
                    }
                    break;
                case RowKind.LabelList:
                    this.context.labels.set(id, copies.next(start, len));
                    break;
                case RowKind.Trace:
                    cut();
                    this.described.clear();
                    this.context = { ...this.context, info: this.describeTrace(bytes.subarray(start, start + len)) };
                    this.known = true;
                    break;
                case RowKind.SequencePoint:
                    cut();
                    this.context = {
                        ...this.context,
                        stacks: new Map(),
                        labels: new Map(),
                        threads: (id & 1) !== 0 ? new Map() : this.context.threads,
                    };
                    if ((id & 2) !== 0) {
                        this.kinds = [];
                        this.moreKinds.clear();
                    }
                    break;
                case RowKind.Thread:
                    this.addThread(thread, describe({ bytes, start, len }, "describe_thread") as TraceThread, cut);
                    break;
                default:
            }
        }
        cut();
    }

    /** Adds a thread; `cut` ends the batch of the events before it. */
    private addThread(index: number, thread: TraceThread, cut: () => void): void {
        const versions = this.context.threads.get(index);
        if (versions === undefined) {
            this.context.threads.set(index, [{ since: this.context.replaced, thread }]);
            return;
        }
        cut();
        this.context = { ...this.context, replaced: this.context.replaced + 1 };
        versions.push({ since: this.context.replaced, thread });
    }

    private addKind(record: Uint8Array): void {
        const key = latin1.decode(record);
        // A stream can describe the same kinds again after each sequence point.
        const described = this.described.get(key) ?? this.describeKind(record);
        if (described === undefined) {
            return;
        }
        const { id, kind } = described;
        if (kind.description !== undefined) {
            this.described.set(key, described);
        }
        if (id < 4096) {
            this.kinds[id] = kind;
        } else {
            this.moreKinds.set(id, kind);
        }
    }

    /** Describes a kind of event. Its description stays in the memory of the module, where events use it. */
    private describeKind(record: Uint8Array): { id: number; kind: EventKind } | undefined {
        const { version, pointerSize } = this.context.info;
        const { exports } = this.module;
        const description = new Uint8Array(exports.description_size());
        const size = description.length + record.length;
        const hasRoom = this.room >= size;
        this.room -= hasRoom ? size : 0;
        const module = hasRoom ? this.module : instance();
        const [address, bytes] = hasRoom ? module.keep(description, record) : module.input(description, record);
        const items = module.list((output) => {
            module.exports.describe_metadata(version, pointerSize, bytes, record.length, address, output);
        });
        const { fields, fault } = items.object();
        const id = fields.metadata_id as number | undefined;
        if (id === undefined) {
            return undefined;
        }
        const problem = hasRoom ? fault?.message : "there is no room for its fields";
        return { id, kind: new EventKind(fields, problem, hasRoom ? { module, address, names: new Names() } : undefined) };
    }

    private describeTrace(pairs: Uint8Array): TraceInfo {
        const { module } = this;
        const [address] = module.input(pairs);
        const items = module.list((output) => {
            module.exports.describe_trace(this.reader, address, pairs.length, output);
        });
        const { fields } = items.object();
        return {
            version: fields.version as number,
            pointerSize: fields.pointer_size as number,
            frequency: Number(fields.frequency) || 1_000_000_000,
            startTimestamp: BigInt(fields.sync_ticks as number | bigint),
            start: fields.start === null ? null : new Date(Number(fields.start)),
            processId: fields.process_id as number | null,
            processors: fields.processors as number | null,
            samplingInterval: fields.sampling_interval as number | null,
            pairs: fields.pairs as { [key: string]: string },
        };
    }

    private ends(): void {
        const message = this.module.textOf((output) => this.module.exports.reader_end_text(this.reader, output));
        const kinds = ["complete", "truncated", "corrupt"] as const;
        this.endText = { kind: kinds[this.report(20)], offset: this.reportLong(24), message };
    }
}

/** A `Blob` or a `File`. Its own type would need the types of browsers. */
export interface BlobSource {
    readonly size: number;
    slice(start: number, end: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

/** A `ReadableStream` of bytes, as the `body` of a `Response`. */
export interface StreamSource {
    getReader(): { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>; cancel(): Promise<void> };
}

/** Bytes of a trace. */
export type Source =
    | Uint8Array
    | ArrayBuffer
    | BlobSource
    | StreamSource
    | AsyncIterable<Uint8Array>
    | Iterable<Uint8Array>;

/** Options of {@link readTrace}. */
export interface Options {
    /** Do not throw a {@link TraceError} at the end of a trace that is cut off or damaged. */
    tolerant?: boolean;
}

/** The events of a trace, while they are read. It can be iterated once. */
export class Trace implements AsyncIterable<TraceEvent> {
    private readonly reader = new TraceReader();
    private isRead = false;

    /** @internal */
    constructor(private readonly source: Source, private readonly options: Options) {
        checkSource(source);
        if (!isObject(options)) {
            throw mistake("options", "an object", options);
        }
        checkFields("options", options, ["tolerant"]);
    }

    /** What the trace states about itself; `undefined` before the first event. */
    get info(): TraceInfo | undefined {
        return this.reader.info;
    }
    /** How the trace ended; `undefined` before its end. */
    get end(): TraceEnd | undefined {
        return this.reader.end;
    }
    /** How many events the runtime dropped because its buffer was full, as Microsoft's reader counts them. */
    get lost(): number {
        return this.reader.lost;
    }
    /** How many events the runtime dropped before the first one of their thread. */
    get lostAtStart(): number {
        return this.reader.lostAtStart;
    }

    /** The events in batches, which is several times as fast. */
    async *batches(): AsyncGenerator<Batch, void, undefined> {
        if (this.isRead) {
            throw new Error("a trace can be read once: call readTrace again, with a new source if it is a stream");
        }
        this.isRead = true;
        const { reader } = this;
        for await (const bytes of pieces(this.source)) {
            reader.push(bytes);
            for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
                yield batch;
            }
            if (reader.end !== undefined) {
                break;
            }
        }
        reader.close();
        for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
            yield batch;
        }
        if (reader.end !== undefined && reader.end.kind !== "complete" && this.options.tolerant !== true) {
            throw new TraceError(reader.end);
        }
    }

    async *[Symbol.asyncIterator](): AsyncGenerator<TraceEvent, void, undefined> {
        for await (const batch of this.batches()) {
            yield* batch;
        }
    }
}

/**
 * Reads the events of a trace in the order of the stream: `for await (const event of readTrace(stream))`.
 *
 * A trace that is cut off or damaged ends with a {@link TraceError}, after all events that can be read.
 */
export function readTrace(source: Source, options: Options = {}): Trace {
    return new Trace(source, options);
}

/** Fails for a value that is no source. */
function checkSource(source: unknown): void {
    if (isObject(source)) {
        const isArray = ArrayBuffer.isView(source) && !isBytes(source);
        if (!isArray && (isBytes(source) || isBuffer(source) || isBlob(source) || "getReader" in source || isIterable(source))) {
            return;
        }
    } else if (Array.isArray(source)) {
        source.forEach((piece, index) => checkBytes(`source[${index}]`, piece));
        return;
    }
    const hint =
        typeof source === "string" ? ": a name must be opened, as by createReadStream of node:fs or by fetch"
        : isObject(source) && "body" in source ? ": pass its body"
        : "";
    const error = mistake("source", "a Uint8Array, an ArrayBuffer, a Blob, or a stream or an iterable of Uint8Array", source);
    error.message += hint;
    throw error;
}

function isBuffer(source: object): source is ArrayBuffer {
    return typeName(source) === "ArrayBuffer";
}

function isBlob(source: object): source is BlobSource {
    return "size" in source && "slice" in source && !isBytes(source);
}

function isIterable(source: object): boolean {
    return Symbol.asyncIterator in source || Symbol.iterator in source;
}

/** The bytes of a source, piece by piece. A stream is cancelled if its reader leaves. */
async function* pieces(source: Source): AsyncGenerator<Uint8Array, void, undefined> {
    if (isBytes(source)) {
        yield source;
    } else if (isBuffer(source)) {
        yield new Uint8Array(source);
    } else if (isBlob(source)) {
        const size = 4 << 20;
        for (let at = 0; at < source.size; at += size) {
            yield new Uint8Array(await source.slice(at, at + size).arrayBuffer());
        }
    } else if ("getReader" in source) {
        const reader = source.getReader();
        try {
            for (let step = await reader.read(); !step.done; step = await reader.read()) {
                checkBytes("a piece of source", step.value);
                yield step.value as Uint8Array;
            }
        } finally {
            await reader.cancel();
        }
    } else {
        for await (const piece of source as AsyncIterable<Uint8Array>) {
            checkBytes("a piece of source", piece);
            yield piece;
        }
    }
}
