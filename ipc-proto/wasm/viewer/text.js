// The texts of events in the viewer.

/** A text of limited length. The names of fields can be much longer than the payload that refers to them. */
class LimitedText {
    constructor(limit) {
        [this.left, this.parts, this.isCut] = [limit, [], false];
    }

    add(text) {
        this.isCut ||= text.length > this.left;
        const part = text.slice(0, this.left);
        this.parts.push(part);
        this.left -= part.length;
    }

    /** Adds the values of an object or an array. */
    list(open, entries, close) {
        this.add(open);
        let comma = "";
        for (const [name, value] of entries) {
            if (this.isCut) {
                break;
            }
            this.add(comma);
            if (open === "{") {
                this.add(`${JSON.stringify(name.slice(0, this.left))}:`);
            }
            this.json(value);
            comma = ",";
        }
        this.add(close);
    }

    json(value) {
        if (isPlain(value)) {
            const text = plain(value);
            this.add(typeof value === "string" || value instanceof Object ? JSON.stringify(text) : text);
        } else if (Array.isArray(value)) {
            this.list("[", value.entries(), "]");
        } else {
            this.list("{", Object.entries(value), "}");
        }
    }

    value(value) {
        if (isPlain(value)) {
            this.add(plain(value));
        } else {
            this.json(value);
        }
    }

    toString() {
        return `${this.parts.join("")}${this.isCut ? "…" : ""}`;
    }
}

/** Whether a value is no object and no array of fields. */
function isPlain(value) {
    return !(value instanceof Object) || value instanceof Uint8Array || value instanceof Date;
}

/** The text of a plain value. */
function plain(value) {
    if (value instanceof Uint8Array) {
        return `${value.length} bytes ${Array.from(value.subarray(0, 24), (byte) => byte.toString(16).padStart(2, "0")).join(" ")}${value.length > 24 ? " …" : ""}`;
    }
    return value instanceof Date ? (Number.isNaN(value.getTime()) ? "no date" : value.toISOString()) : String(value);
}

/** The text of an event has as many characters at most, and more for each byte of its payload. */
const [EVENT_TEXT, EVENT_TEXT_PER_BYTE] = [4096, 64];
const limitOf = (event) => EVENT_TEXT + EVENT_TEXT_PER_BYTE * event.payload.length;

/** The fields in one line. */
export function summary(event) {
    const { fields, rest } = event.decode();
    const text = new LimitedText(limitOf(event));
    let space = "";
    for (const [name, value] of Object.entries(fields)) {
        if (text.isCut) {
            break;
        }
        text.add(space);
        text.add(name);
        text.add("=");
        text.value(value);
        space = "  ";
    }
    if (rest !== undefined) {
        text.add(space);
        text.value(rest);
    }
    return text.toString();
}

/** The most fields and addresses that are listed. */
const LISTED = 1000;

/** The fields, the other bytes, the fault and the stack, each as a name and a text. */
export function details(event) {
    const { fields, rest, fault } = event.decode();
    const texts = [];
    let left = limitOf(event);
    const add = (name, value) => {
        const [short, text] = [new LimitedText(left), new LimitedText(left)];
        short.add(name);
        text.value(value);
        left = Math.max(Math.min(left - name.length, text.left), 0);
        texts.push([String(short), String(text)]);
    };
    const entries = Object.entries(fields);
    for (const [name, value] of entries.slice(0, LISTED)) {
        if (left === 0) {
            break;
        }
        add(name, value);
    }
    if (texts.length < entries.length) {
        texts.push(["more fields", String(entries.length - texts.length)]);
    }
    if (rest !== undefined) {
        texts.push(["other bytes", plain(rest)]);
    }
    if (fault !== undefined) {
        texts.push(["fault", `${fault.message} at byte ${fault.offset}`]);
    }
    const { stack } = event;
    if (stack.length > 0) {
        const addresses = stack.slice(0, LISTED).map((address) => `0x${address.toString(16)}`);
        texts.push(["stack", addresses.join("\n") + (stack.length > LISTED ? `\nand ${stack.length - LISTED} more` : "")]);
    }
    return texts;
}
