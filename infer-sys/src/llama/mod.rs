//! The door to llama.cpp.
//!
//! [`Api`] is the door: `Copy`, `Send` and `Sync`, with one method an entry of the table. What each entry does, and what it asks of its
//! caller, is written in `llama_door.h`, from which `cargo xtask bindings` makes the [`bindings`]; nothing else of llama.cpp is bound.
//!
//! What holds for all of them:
//!
//! - nothing is thrown: a C++ exception becomes a status and a message;
//! - an entry that can fail returns [`INFER_LLAMA_OK`](bindings::INFER_LLAMA_OK) or a negative status, and writes its
//!   `infer_llama_error` (which may be NULL) only in the second case;
//! - pointers must be ones this table returned and not yet freed; a vocabulary and every string of a model lives as long as the model, and contexts
//!   and adapters must be freed before it;
//! - a context is used by one thread at a time, a loaded model may be read by several;
//! - callbacks must return: they may not unwind.

#[allow(
    missing_docs,
    non_camel_case_types,
    unreachable_pub,
    clippy::missing_safety_doc,
    clippy::multiple_unsafe_ops_per_block,
    clippy::undocumented_unsafe_blocks,
    reason = "generated; llama_door.h and llama.h have the documentation"
)]
#[rustfmt::skip]
pub mod bindings;
mod calls;
pub mod fake;
mod handshake;
#[cfg(feature = "llama-load")]
mod loading;

use std::ffi::c_char;
use std::fmt;

use bindings::{infer_llama_field, infer_llama_table};

use crate::{LoadError, door};
#[cfg(feature = "llama-load")]
pub use loading::LIBRARY_VARIABLE;

/// The commit of llama.cpp that the bindings are made for. A door made from another one is refused.
pub const COMMIT: &str = env!("INFER_LLAMA_COMMIT");

/// The checked door to llama.cpp.
///
/// Having one means that the table behind it has the shape this crate knows and that every entry is there. It is as cheap as a reference.
#[derive(Clone, Copy)]
pub struct Api {
    table: &'static infer_llama_table,
}

// SAFETY: the table is never written after it was checked (`llama_door.h`: it "lives as long as the process" and the shim fills it once), and
// its pointers are to functions and to constant strings. Which entries may be called at the same time is part of each entry's contract.
unsafe impl Send for Api {}
// SAFETY: as for `Send`: shared access is reads of memory that nobody writes.
unsafe impl Sync for Api {}

impl Api {
    /// The door linked into this program.
    ///
    /// Where the build found no llama.cpp, this compiles and linking fails with a text that says what to do.
    ///
    /// # Errors
    ///
    /// The linked library is not the one this crate was made for, which takes a library given to the build from outside.
    #[cfg(feature = "llama-link")]
    #[inline]
    pub fn linked() -> Result<Self, LoadError> {
        // SAFETY: `infer_llama_api` takes any number and only returns a pointer to a static table, or NULL.
        let open = |version| unsafe { linked::infer_llama_api(version) };
        match door::check(open, None) {
            Ok(table) => Ok(Self { table }),
            Err(refusal) => {
                let hint = "the program has to be built anew, from one version of everything";
                Err(door::refused::<infer_llama_table>("linked into this program", refusal, hint))
            }
        }
    }

    /// The door of a shared library, which is never closed again: ggml's threads and its registries do not survive being unloaded.
    ///
    /// Where it is looked for is said at [`LoadOptions`](crate::LoadOptions). May be called from several threads and several times.
    ///
    /// # Errors
    ///
    /// No library was found that this crate can use: the error lists every place and what was wrong with it.
    #[cfg(feature = "llama-load")]
    pub fn load(options: &crate::LoadOptions) -> Result<Self, LoadError> {
        crate::library::load(options)
    }

    /// Every library that is there, each with its door or with what is wrong with it: those that [`load`](Self::load) could find, by the same rules,
    /// whatever their variant.
    #[cfg(feature = "llama-load")]
    #[must_use]
    pub fn installed(options: &crate::LoadOptions) -> Vec<crate::Installed<Self>> {
        crate::library::installed(options)
    }

    /// A door made of any table, checked like the others.
    ///
    /// # Safety
    ///
    /// The strings and fields the table points to must live for ever, and every entry must do what `llama_door.h` says of it: the crates
    /// above rely on that for memory safety.
    ///
    /// # Errors
    ///
    /// The table is not of the shape this crate knows.
    pub unsafe fn from_table(table: &'static infer_llama_table) -> Result<Self, LoadError> {
        match door::check(|_| table, None) {
            Ok(table) => Ok(Self { table }),
            Err(refusal) => Err(door::refused::<infer_llama_table>("a table in this program", refusal, "")),
        }
    }

    /// The table itself.
    #[must_use]
    pub fn table(self) -> &'static infer_llama_table {
        self.table
    }

    /// The commit of llama.cpp the door was made from.
    #[must_use]
    pub fn commit(self) -> &'static str {
        self.string(self.table.commit)
    }

    /// What llama.cpp calls its version. It names no commit.
    #[must_use]
    pub fn llama_version(self) -> &'static str {
        self.string(self.table.llama_version)
    }

    /// The variant the door was built as: "cpu", "vulkan", …
    #[must_use]
    pub fn variant(self) -> &'static str {
        self.string(self.table.variant)
    }

    /// How the compiler of the door laid out the structs that cross it.
    #[must_use]
    pub fn fields(self) -> &'static [infer_llama_field] {
        if self.table.fields.is_null() {
            return &[];
        }
        // SAFETY: the header has `fields` point to `n_fields` constants that live as long as the table.
        unsafe { std::slice::from_raw_parts(self.table.fields, self.table.n_fields) }
    }

    fn string(self, text: *const c_char) -> &'static str {
        // SAFETY: a string of a table that was checked.
        unsafe { door::text(text) }.to_str().unwrap_or("")
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("commit", &self.commit())
            .field("llama_version", &self.llama_version())
            .field("variant", &self.variant())
            .finish()
    }
}

#[cfg(all(feature = "llama-link", not(infer_llama_missing)))]
mod linked {
    pub(super) use super::bindings::infer_llama_api;
}

#[cfg(all(feature = "llama-link", infer_llama_missing))]
mod linked {
    use super::bindings::infer_llama_table;

    unsafe extern "C" {
        // The linker prints the name of a symbol it cannot find: this one says what to do.
        #[link_name = "llama.cpp was not found when infer-sys was built (`cargo build -vv` shows where it was looked for). \
                       Ways to provide it: in a checkout, `cargo xtask setup`; \
                       cmake, make or ninja, and a C++ compiler, which build the sources in the package; \
                       INFER_LLAMA_SOURCE, INFER_LLAMA_PREFIX or INFER_LLAMA_SYSTEM, for a tree or a library of your own; \
                       the feature llama-load instead of llama-link, which needs none of these"]
        pub(super) fn infer_llama_api(version: u32) -> *const infer_llama_table;
    }
}
