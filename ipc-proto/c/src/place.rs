//! Opaque structs in memory of the caller.
use crate::memory;
use crate::status::{Failure, Reported, Status, report};

/// A struct of the header whose content only the library knows.
///
/// # Safety
/// `TAG` is different for each implementation.
pub(crate) unsafe trait Opaque: Sized {
    /// The content.
    type Content;
    /// Identifies an initialised struct.
    const TAG: u64;
}

/// The content after its tag.
#[repr(C)]
struct Tagged<T> {
    tag: u64,
    content: T,
}

/// The size of an opaque struct is that of the header; this fails to compile if the content does not fit.
struct Fits<O>(O);

impl<O: Opaque> Fits<O> {
    const CHECK: () = assert!(
        size_of::<Tagged<O::Content>>() <= size_of::<O>()
            && align_of::<Tagged<O::Content>>() <= align_of::<O>(),
        "an opaque struct is too small for its content"
    );
}

/// Initialises an opaque struct.
///
/// # Safety
/// `at` points to space for it.
pub(crate) unsafe fn place<O: Opaque>(at: *mut O, content: O::Content) -> Result<(), Failure> {
    const { Fits::<O>::CHECK };
    memory::check(at, 1)?;
    // SAFETY: it fits, and the caller vouches for the pointer.
    unsafe { memory::store(at.cast(), Tagged { tag: O::TAG, content }) }
}

/// Returns the content of an opaque struct.
///
/// # Safety
/// `at` points to such a struct, all zeros or initialised, that nothing else uses during `'a`.
pub(crate) unsafe fn content<'a, O: Opaque>(at: *mut O) -> Result<&'a mut O::Content, Failure> {
    // SAFETY: the caller vouches for the memory at `at`.
    unsafe { check_tag(at) }?;
    // SAFETY: `place` has stored this type here, as the tag shows.
    let tagged = unsafe { &mut *at.cast::<Tagged<O::Content>>() };
    Ok(&mut tagged.content)
}

/// Runs a function with the content of an opaque struct, and reports its result.
///
/// # Safety
/// `at` points to such a struct that nothing else uses, and `detail` to a number or nowhere.
pub(crate) unsafe fn with<O: Opaque, R: Reported>(
    at: *mut O,
    detail: *mut usize,
    run: impl FnOnce(&mut O::Content) -> R,
) -> Status {
    // SAFETY: the caller vouches for the memory at `at`.
    let outcome = unsafe { content(at) }.and_then(|content| run(content).outcome());
    // SAFETY: the caller vouches for `detail`.
    unsafe { report(outcome, detail) }
}

/// Takes the content out of an opaque struct, which is no longer initialised then.
///
/// # Safety
/// `at` points to such a struct, all zeros or initialised, that nothing else uses.
pub(crate) unsafe fn take<O: Opaque>(at: *mut O) -> Result<O::Content, Failure> {
    // SAFETY: the caller vouches for the memory at `at`.
    unsafe { check_tag(at) }?;
    // SAFETY: `place` has stored this type here, as the tag shows.
    let tagged = unsafe { at.cast::<Tagged<O::Content>>().read() };
    // SAFETY: the caller vouches for the memory at `at`; the tag comes first. Nothing reads the content again.
    unsafe { at.cast::<u64>().write(0) };
    Ok(tagged.content)
}

/// Returns the content of an opaque struct that others can read too.
///
/// # Safety
/// `at` points to such a struct, all zeros or initialised, that does not change during `'a`.
pub(crate) unsafe fn shared<'a, O: Opaque>(at: *const O) -> Result<&'a O::Content, Failure> {
    // SAFETY: the caller vouches for the memory at `at`.
    unsafe { check_tag(at) }?;
    // SAFETY: `place` has stored this type here, as the tag shows.
    let tagged = unsafe { &*at.cast::<Tagged<O::Content>>() };
    Ok(&tagged.content)
}

/// Checks that an opaque struct is initialised.
///
/// # Safety
/// `at` points to such a struct, all zeros or initialised.
unsafe fn check_tag<O: Opaque>(at: *const O) -> Result<(), Failure> {
    memory::check(at, 1)?;
    // SAFETY: the caller vouches for the memory at `at`; the tag comes first.
    let tag = unsafe { at.cast::<u64>().read() };
    if tag == O::TAG { Ok(()) } else { Err(Status::WrongKind.into()) }
}
