/work/w-port/ipc-proto/proof/target/release/deps/byteorder-42b58e30b20eda0c.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/byteorder-1.5.0/src/lib.rs

/work/w-port/ipc-proto/proof/target/release/deps/libbyteorder-42b58e30b20eda0c.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/byteorder-1.5.0/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/byteorder-1.5.0/src/lib.rs:
