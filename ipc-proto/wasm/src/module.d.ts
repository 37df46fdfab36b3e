/** The WebAssembly module, compressed by gzip, in base64. `scripts/build.mjs` writes the file. */
export declare const gzip: string;
