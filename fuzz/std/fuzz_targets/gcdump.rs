//! Fuzz target of the property of the same name.
#![cfg_attr(fuzzing, no_main)]
ipc_fuzz::target!(ipc_std_fuzz::gcdump);
