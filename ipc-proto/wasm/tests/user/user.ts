// A user of the package, in a folder of its own.
import { encode, parseMessage, readTrace, type Provider } from "dotnet-ipc";
// @ts-expect-error: no types of Node are installed
import { readFile } from "node:fs/promises";

declare const process: { argv: string[]; stdout: { write(text: string): void } };

async function main(): Promise<void> {
    let events = 0;
    const trace = readTrace(await readFile(process.argv[2]));
    const lines: string[] = [];
    for await (const event of trace) {
        const name: string = event.provider;
        events += Number(name !== "");
        lines.push(JSON.stringify(event));
    }
    const provider: Provider = { keywords: 1n, level: 4, name: "Microsoft-Windows-DotNETRuntime", arguments: null };
    const request = encode("CollectTracing2", { buffer_mb: 64, format: 1, rundown: false, providers: [provider] });
    // @ts-expect-error: a request has types
    void (() => encode("StopTracing", { session_id: "1" }));
    process.stdout.write(`${events} events, ${trace.lost} lost; ${parseMessage(request).name}, ${request.length} bytes; ${lines.length} lines\n`);
}
void main();
