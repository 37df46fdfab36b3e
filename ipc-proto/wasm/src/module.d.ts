/** The WebAssembly module in base64, not compressed: inflating is not synchronous. `scripts/build.mjs` writes the file. */
export declare const base64: string;
