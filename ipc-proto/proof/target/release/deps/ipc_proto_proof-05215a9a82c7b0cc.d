/work/w-port/ipc-proto/proof/target/release/deps/ipc_proto_proof-05215a9a82c7b0cc.d: /work/w-port/clippy.toml src/lib.rs src/command.rs src/exchange.rs src/legacy.rs src/nettrace.rs src/port.rs src/user_events.rs src/wire.rs Cargo.toml

/work/w-port/ipc-proto/proof/target/release/deps/libipc_proto_proof-05215a9a82c7b0cc.rmeta: /work/w-port/clippy.toml src/lib.rs src/command.rs src/exchange.rs src/legacy.rs src/nettrace.rs src/port.rs src/user_events.rs src/wire.rs Cargo.toml

/work/w-port/clippy.toml:
src/lib.rs:
src/command.rs:
src/exchange.rs:
src/legacy.rs:
src/nettrace.rs:
src/port.rs:
src/user_events.rs:
src/wire.rs:
Cargo.toml:

# env-dep:CLIPPY_ARGS=
# env-dep:CLIPPY_CONF_DIR
