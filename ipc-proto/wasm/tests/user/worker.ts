import { count } from "./count.js";

onmessage = ({ data }: MessageEvent<Uint8Array>) => postMessage(count(data));
