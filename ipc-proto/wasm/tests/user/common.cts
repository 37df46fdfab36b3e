// A user with `require`.
import { encode, TraceReader, type Batch } from "dotnet-ipc";
// @ts-expect-error: no types of Node are installed
import { readFileSync } from "node:fs";

declare const process: { argv: string[]; stdout: { write(text: string): void } };

const reader = new TraceReader();
reader.push(readFileSync(process.argv[2]));
let events = 0;
for (let batch: Batch | undefined = reader.next(); batch !== undefined; batch = reader.next()) {
    events += batch.length;
}
process.stdout.write(`${events} events, ${encode("StopTracing", { session_id: 1n }).length} bytes\n`);
// Where `require` loads modules, both ways to load the package have the same classes. Their types are not the same.
void import("dotnet-ipc").then(({ TraceReader: other }: { TraceReader: unknown }) => process.stdout.write(`one package: ${other === TraceReader}\n`));
