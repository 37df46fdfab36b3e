import { initSync } from "dotnet-ipc";
import { count } from "./count.js";

onmessage = ({ data }: MessageEvent<{ trace: Uint8Array; module: object }>) => {
    if (initSync(data.module) !== data.module) {
        throw new Error("the worker has compiled a module of its own");
    }
    postMessage(count(data.trace));
};
