//! Programs that use the library as one in C does: by raw pointers. They run every kind of pointer handling, so that Miri
//! (`.github/workflows/miri.yml`) and AddressSanitizer can check it. The rules of the protocol have their tests in
//! `ipc_proto`.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::multiple_unsafe_ops_per_block,
    clippy::undocumented_unsafe_blocks,
    reason = "each test is one program in C, whose pointers come from `Memory`"
)]
mod exchanges;
mod misuse;
mod plans;
mod ports;
mod requests;
mod trace;

use core::ffi::{CStr, c_char, c_void};
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::{self, null, null_mut};
use std::collections::VecDeque;

use crate::advertise::*;
use crate::call::*;
use crate::columns::*;
use crate::command::*;
use crate::config::*;
use crate::connect::*;
use crate::environment::*;
use crate::exchange::*;
use crate::facts::*;
use crate::fallback::*;
use crate::fields::*;
use crate::hresult::*;
use crate::label::*;
use crate::message::*;
use crate::monitor::*;
use crate::payload::*;
use crate::request::*;
use crate::response::*;
use crate::serve::*;
use crate::session::*;
use crate::socket_name::*;
use crate::status::Status;
use crate::text::*;
use crate::trace::*;
use crate::writer::*;

/// Memory of a program in C. It is not initialised, has exactly the size of its objects, and nothing but `at` refers to it:
/// a reference would end the validity of the pointers that the library keeps.
struct Memory<T> {
    at: *mut T,
    count: usize,
}

impl<T> Memory<T> {
    fn array(count: usize) -> Self {
        let objects: Box<[MaybeUninit<T>]> = Box::new_uninit_slice(count);
        Self { at: Box::into_raw(objects).cast(), count }
    }

    fn one() -> Self {
        Self::array(1)
    }

    /// Returns one object that is all zeros.
    fn zeros() -> Self {
        let memory = Self::one();
        unsafe { memory.at.write_bytes(0, 1) };
        memory
    }

    fn of(value: T) -> Self {
        let memory = Self::one();
        unsafe { memory.at.write(value) };
        memory
    }

    fn from(values: &[T]) -> Self
    where
        T: Copy,
    {
        let memory = Self::array(values.len());
        unsafe { memory.at.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        memory
    }

    /// Copies the bytes to other memory, as `memcpy` does, and overwrites and frees the old memory.
    fn relocate(&mut self, count: usize) {
        let (other, both) = (Self::array(count), self.count.min(count));
        unsafe { other.at.copy_from_nonoverlapping(self.at, both) };
        unsafe { self.at.write_bytes(0xff, self.count) };
        *self = other;
    }

    /// Copies the object, which the library has stored.
    fn get(&self) -> T {
        unsafe { self.at.read() }
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        let objects = ptr::slice_from_raw_parts_mut(self.at.cast::<MaybeUninit<T>>(), self.count);
        drop(unsafe { Box::from_raw(objects) });
    }
}

#[track_caller]
fn ok(status: Status) {
    assert_eq!(status, Status::Ok);
}

/// Returns the text that a function writes into memory of each size, and checks what it writes if that is too small.
fn text_of(write: impl Fn(*mut c_char, usize, *mut usize) -> Status) -> String {
    let len = Memory::<usize>::one();
    assert_eq!(write(null_mut(), 0, len.at), Status::BufferTooSmall);
    let needed = len.get();
    let mut text = String::new();
    for size in 1..=needed {
        let space = Memory::<c_char>::array(size);
        let status = write(space.at, size, len.at);
        assert_eq!(status, if size < needed { Status::BufferTooSmall } else { Status::Ok });
        assert_eq!(len.get(), if size < needed { needed } else { needed - 1 });
        text = unsafe { CStr::from_ptr(space.at) }.to_str().unwrap().into();
        assert!(text.len() < size);
    }
    text
}
