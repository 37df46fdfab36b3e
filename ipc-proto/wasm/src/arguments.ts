// Checks of the arguments of callers in JavaScript, which no compiler checks. An error names the argument.

/** Returns an error that names an argument and its value. */
export function mistake(path: string, expected: string, value: unknown): TypeError {
    return new TypeError(`${path} must be ${expected}, not ${named(value)}`);
}

/** The type of a value, by which a caller finds the mistake; the value itself if it is short. */
function named(value: unknown): string {
    switch (typeof value) {
        case "string":
            return value.length <= 64 ? JSON.stringify(value) : `a string of ${value.length} characters`;
        case "number":
        case "boolean":
        case "undefined":
            return String(value);
        case "bigint":
            return `${value}n`;
        case "object":
            return value === null ? "null" : `an object of type ${typeName(value)}`;
        default:
            return `a ${typeof value}`;
    }
}

/** The type of an object, also of one that another window or context has made, to which `instanceof` is blind. */
export function typeName(value: object): string {
    return Object.prototype.toString.call(value).slice(8, -1);
}

export function isBytes(value: unknown): value is Uint8Array {
    return typeof value === "object" && value !== null && typeName(value) === "Uint8Array";
}

export function isObject(value: unknown): value is { [name: string]: unknown } {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Fails unless the value is a `Uint8Array`. A `Buffer` of Node is one. */
export function checkBytes(path: string, value: unknown): void {
    if (!isBytes(value)) {
        throw mistake(path, "a Uint8Array", value);
    }
}

/** Fails if an object has a field of another name than these: it is misspelled, or belongs to another command. */
export function checkFields(path: string, object: { [name: string]: unknown }, names: string[]): void {
    const other = Object.keys(object).find((name) => !names.includes(name));
    if (other !== undefined) {
        const has = names.length === 0 ? "it has no fields" : `its fields are ${names.join(", ")}`;
        throw new TypeError(`${path} has no field ${JSON.stringify(other)}: ${has}`);
    }
}
