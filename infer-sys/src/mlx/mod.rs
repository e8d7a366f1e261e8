//! The door to MLX.
//!
//! [`Api`] is the door: `Copy`, `Send` and `Sync`, with one method an entry of the table. What each entry does, and what it asks of its
//! caller, is written in `mlx_door.h`, from which `cargo xtask bindings` makes the [`bindings`]; nothing else of MLX is bound.
//!
//! What holds for all of them:
//!
//! - nothing is thrown: a C++ exception becomes a status, and a message that [`last_error`](Api::last_error) has, a thread its own;
//! - an entry that can fail returns [`INFER_MLX_OK`](bindings::INFER_MLX_OK) or a negative status, and writes its out parameters only in the
//!   first case;
//! - handles belong to the thread that made them: on another one they are refused, but for being freed;
//! - handles must be ones this table returned and that are not yet freed;
//! - the data of an array is only given once it is computed, and lives as long as the handle;
//! - callbacks must return: they may not unwind.

#[allow(
    missing_docs,
    non_camel_case_types,
    unreachable_pub,
    clippy::missing_safety_doc,
    clippy::multiple_unsafe_ops_per_block,
    clippy::undocumented_unsafe_blocks,
    reason = "generated; mlx_door.h has the documentation"
)]
#[rustfmt::skip]
pub mod bindings;
mod calls;
mod handshake;
mod loading;

use std::ffi::c_char;
use std::fmt;

use bindings::infer_mlx_table;

use crate::{Installed, LoadError, LoadOptions, door};
pub use loading::LIBRARY_VARIABLE;

/// The version of MLX that is pinned. A door to another one is refused.
pub const VERSION: &str = env!("INFER_MLX_VERSION");

/// The checked door to MLX.
///
/// Having one means that the table behind it has the shape this crate knows and that every entry is there. It is as cheap as a reference.
#[derive(Clone, Copy)]
pub struct Api {
    table: &'static infer_mlx_table,
}

// SAFETY: the table is never written after it was checked (the shim fills it once), and its pointers are to functions and to constant strings. What
// may be called on which thread is checked behind each entry (`mlx_door.h`: "Handles belong to the thread that made them").
unsafe impl Send for Api {}
// SAFETY: as for `Send`: shared access is reads of memory that nobody writes.
unsafe impl Sync for Api {}

impl Api {
    /// The door of a shared library, which is never closed again: MLX's threads and thread-local objects do not survive being unloaded.
    ///
    /// Where it is looked for is said at [`LoadOptions`]. May be called from several threads and several times.
    ///
    /// # Errors
    ///
    /// No library was found that this crate can use: the error lists every place and what was wrong with it.
    pub fn load(options: &LoadOptions) -> Result<Self, LoadError> {
        crate::library::load(options)
    }

    /// Every library that is there, each with its door or with what is wrong with it: those that [`load`](Self::load) could find, by the same rules,
    /// whatever their variant.
    #[must_use]
    pub fn installed(options: &LoadOptions) -> Vec<Installed<Self>> {
        crate::library::installed(options)
    }

    /// A door made of any table, checked like the others.
    ///
    /// # Safety
    ///
    /// The strings the table points to must live for ever, and every entry must do what `mlx_door.h` says of it: the crates above rely on that
    /// for memory safety.
    ///
    /// # Errors
    ///
    /// The table is not of the shape this crate knows.
    pub unsafe fn from_table(table: &'static infer_mlx_table) -> Result<Self, LoadError> {
        match door::check(|_| table, None) {
            Ok(table) => Ok(Self { table }),
            Err(refusal) => Err(door::refused::<infer_mlx_table>("a table in this program", refusal, "")),
        }
    }

    /// The table itself.
    #[must_use]
    pub fn table(self) -> &'static infer_mlx_table {
        self.table
    }

    /// What the MLX behind the door calls its version: "0.32.2".
    #[must_use]
    pub fn version(self) -> &'static str {
        self.string(self.table.mlx_version)
    }

    /// The version of mlx-c the door is made with.
    #[must_use]
    pub fn mlx_c_version(self) -> &'static str {
        self.string(self.table.mlx_c_version)
    }

    /// The variant the door was built as: "cpu", "metal", "cuda".
    #[must_use]
    pub fn variant(self) -> &'static str {
        self.string(self.table.variant)
    }

    fn string(self, text: *const c_char) -> &'static str {
        // SAFETY: a string of a table that was checked.
        unsafe { door::text(text) }.to_str().unwrap_or("")
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("version", &self.version())
            .field("mlx_c_version", &self.mlx_c_version())
            .field("variant", &self.variant())
            .finish()
    }
}
