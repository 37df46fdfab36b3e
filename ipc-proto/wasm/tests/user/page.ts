import { initSync } from "dotnet-ipc";
import { count } from "./count.js";

/** Resolves with the next message. */
const answer = (from: EventTarget): Promise<string> =>
    new Promise((done) => from.addEventListener("message", (event) => done((event as MessageEvent<string>).data), { once: true }));

async function main(): Promise<void> {
    const response = await fetch("/trace");
    const trace = new Uint8Array(await response.arrayBuffer());
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    // At once: a worker that has no listener yet when its modules wait for something loses this message.
    worker.postMessage({ trace, module: initSync() });
    const counted = await answer(worker);

    const registration = await navigator.serviceWorker.register("./service.js", { type: "module" });
    const service = registration.installing ?? registration.waiting ?? registration.active;
    const heard = answer(navigator.serviceWorker);
    navigator.serviceWorker.startMessages();
    service!.postMessage({ trace });
    document.title = `page: ${count(trace)}; worker: ${counted}; service worker: ${await heard}`;
}
void main();
