// Prints src/commands.ts: the types of all requests, from the table of commands in the module.
const { commands } = await import("../dist/message.js");

const types = { u32: "number", u64: "number | bigint", bool: "boolean", Text: "string | null", Guid: "string", ClientData: "Uint8Array" };
const objects = new Set();
function typeOf(type) {
    const array = /^Array<(.*)>$/.exec(type);
    if (array) {
        return `${typeOf(array[1])}[]`;
    }
    if (/^(Provider|SessionConfig6?)$/.test(type)) {
        objects.add(type);
        return type;
    }
    // The other names are those of numbers.
    return types[type] ?? "number";
}

const hex = (code) => `0x${code.toString(16).padStart(4, "0")}`;
const rows = Object.entries(commands()).map(([name, row]) => {
    const comment = `    /** \`${row.specification_name}\` in the specification, ${hex(row.code)}; since .NET ${row.since}. */\n`;
    const fields = Object.entries(row.fields);
    const isSession = fields.length === 1 && fields[0][1].startsWith("SessionConfig");
    const list = fields.map(([field, type]) => `${field}: ${typeOf(type)}`);
    const type = isSession ? typeOf(fields[0][1]) : list.length === 0 ? "Record<string, never>" : `{ ${list.join("; ")} }`;
    return `${comment}    ${name}: ${type};\n`;
});
process.stdout.write(`// Written by scripts/commands.mjs from the table of commands: .ci/run bless.
import type { ${[...objects].sort().join(", ")} } from "./types.js";

/** The fields of each request. */
export interface Commands {
${rows.join("")}}

/** The name of a command, as in Microsoft's client. */
export type CommandName = keyof Commands;
`);
