// What pages and workers of a user do.
import { encode, TraceReader } from "dotnet-ipc";

export function count(trace: Uint8Array): string {
    const reader = new TraceReader();
    reader.push(trace);
    let events = 0;
    for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
        events += batch.length;
    }
    return `${events} events, ${encode("StopTracing", { session_id: 1n }).length} bytes`;
}
