import { count } from "./count.js";

async function main(): Promise<void> {
    const response = await fetch("/trace");
    const trace = new Uint8Array(await response.arrayBuffer());
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    // At once: a worker that has no listener yet when its modules wait for something loses this message.
    worker.postMessage(trace);
    worker.onmessage = ({ data }) => {
        document.title = `page: ${count(trace)}; worker: ${data}`;
    };
}
void main();
