// A user with `require`.
import { encode, TraceReader, type Batch } from "dotnet-ipc";
// @ts-expect-error: no types of Node are installed
import { readFileSync } from "node:fs";

declare const process: { argv: string[] };

const reader = new TraceReader();
reader.push(readFileSync(process.argv[2]));
let events = 0;
for (let batch: Batch | undefined = reader.next(); batch !== undefined; batch = reader.next()) {
    events += batch.length;
}
console.log(`${events} events, ${encode("StopTracing", { session_id: 1n }).length} bytes`);
// Both ways to load the package have the same classes.
void import("dotnet-ipc").then((imported) => console.log(`one package: ${imported.TraceReader === TraceReader}`));
