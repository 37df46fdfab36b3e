#!/bin/sh
# Builds the library and installs it: `install.sh PREFIX`. Below PREFIX, it writes include/dotnet_ipc.h, both libraries in
# lib, lib/pkgconfig/dotnet_ipc.pc, and lib/cmake/dotnet_ipc/dotnet_ipc-config.cmake. The folder can be moved afterwards.
set -eu
[ $# = 1 ] || {
    echo "usage: install.sh PREFIX" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/target}
cargo build --quiet --release --locked --manifest-path "$here/Cargo.toml" --target-dir "$target"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml")

mkdir -p "$1/include" "$1/lib/pkgconfig" "$1/lib/cmake/dotnet_ipc"
cp "$here/include/dotnet_ipc.h" "$1/include/"
cp "$target/release/libdotnet_ipc.a" "$1/lib/"
cp "$target/release/libdotnet_ipc.so" "$1/lib/libdotnet_ipc.so.0"
ln -sf libdotnet_ipc.so.0 "$1/lib/libdotnet_ipc.so"

cat >"$1/lib/pkgconfig/dotnet_ipc.pc" <<END
prefix=\${pcfiledir}/../..
Name: dotnet_ipc
Description: The .NET Diagnostic IPC protocol and NetTrace
Version: $version
Cflags: -I\${prefix}/include
Libs: -L\${prefix}/lib -ldotnet_ipc
END

cat >"$1/lib/cmake/dotnet_ipc/dotnet_ipc-config.cmake" <<'END'
# The targets dotnet_ipc::static and dotnet_ipc::shared.
get_filename_component(_dotnet_ipc_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET dotnet_ipc::static)
    add_library(dotnet_ipc::static STATIC IMPORTED)
    set_target_properties(dotnet_ipc::static PROPERTIES
        IMPORTED_LOCATION "${_dotnet_ipc_prefix}/lib/libdotnet_ipc.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_dotnet_ipc_prefix}/include")
    add_library(dotnet_ipc::shared SHARED IMPORTED)
    set_target_properties(dotnet_ipc::shared PROPERTIES
        IMPORTED_LOCATION "${_dotnet_ipc_prefix}/lib/libdotnet_ipc.so.0"
        IMPORTED_SONAME libdotnet_ipc.so.0
        INTERFACE_INCLUDE_DIRECTORIES "${_dotnet_ipc_prefix}/include")
endif()
END
cat >"$1/lib/cmake/dotnet_ipc/dotnet_ipc-config-version.cmake" <<END
set(PACKAGE_VERSION "$version")
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
END
