import { count } from "./count.js";

addEventListener("message", (event) => {
    const { data, source } = event as MessageEvent<{ trace: Uint8Array }>;
    source!.postMessage(count(data.trace));
});
