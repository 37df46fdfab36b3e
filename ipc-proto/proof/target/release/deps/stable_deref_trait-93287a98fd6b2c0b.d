/work/w-port/ipc-proto/proof/target/release/deps/stable_deref_trait-93287a98fd6b2c0b.d: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/stable_deref_trait-1.2.1/src/lib.rs

/work/w-port/ipc-proto/proof/target/release/deps/libstable_deref_trait-93287a98fd6b2c0b.rmeta: /root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/stable_deref_trait-1.2.1/src/lib.rs

/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/stable_deref_trait-1.2.1/src/lib.rs:
