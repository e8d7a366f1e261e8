//! What all doors have in common: a table that is compared before anybody calls through it, and a method for each of its entries.

use std::ffi::{CStr, c_char};
use std::mem::size_of;

use crate::{LoadError, Looked, Refusal};

/// The table of one runtime's door.
///
/// # Safety
///
/// A table of this type, of whatever version, begins with two `u32`, its size and then its version. A table of [`VERSION`](Self::VERSION)
/// with the size of the type is the type: aligned, its strings NUL or constants that end with NUL, alive as long as the process, and never
/// written after it was given away.
pub(crate) unsafe trait Table: Sized + 'static {
    /// The version that the bindings are made for.
    const VERSION: u32;

    /// What a door has to be, in words.
    fn wanted(variant: Option<&str>) -> String;
    /// What speaks against the release of the runtime that the door was made from.
    fn release(&self) -> Result<(), Refusal>;
    /// What the door was built as: "cpu", …
    fn variant(&self) -> &'static CStr;
    /// Name, our size and the door's size of every struct that crosses.
    fn struct_sizes(&self) -> impl IntoIterator<Item = (&'static str, u32, u32)>;
    /// The first entry that is NULL.
    fn first_missing(&self) -> Option<&'static str>;
}

/// Opens a table and compares it with what this crate was made for.
///
/// `open` is the one symbol of the door, or stands for it: NULL for a version it does not speak, whatever table it has for version 0.
pub(crate) fn check<T: Table>(open: impl Fn(u32) -> *const T, variant: Option<&str>) -> Result<&'static T, Refusal> {
    let mut table = open(T::VERSION);
    if table.is_null() {
        table = open(0);
    }
    if table.is_null() || !table.is_aligned() {
        return Err(Refusal::NoTable);
    }
    // The table may be shorter than ours, so that nothing but its first two numbers is read before they are known.
    // SAFETY: every table begins with these two, whatever its version (the contract of `Table`).
    let [size, version] = unsafe { table.cast::<[u32; 2]>().read() };
    shape::<T>(version, size)?;
    // SAFETY: it is aligned, has the size and the version of the type, lives for ever, and is never written again.
    let table: &'static T = unsafe { &*table };

    table.release()?;
    if let Some(wanted) = variant {
        let found = table.variant().to_string_lossy();
        if found != wanted {
            return Err(Refusal::Variant { wanted: wanted.to_owned(), found: found.into_owned() });
        }
    }
    for (name, wanted, found) in table.struct_sizes() {
        if wanted != found {
            return Err(Refusal::StructSize { name, wanted, found });
        }
    }
    table.first_missing().map_or(Ok(table), |name| Err(Refusal::Entry(name)))
}

/// Compares the first two numbers of a table: what may be known of it before anything else is.
pub(crate) fn shape<T: Table>(version: u32, size: u32) -> Result<(), Refusal> {
    if version != T::VERSION {
        return Err(Refusal::Version { wanted: T::VERSION, found: version });
    }
    let known = size_u32::<T>();
    if size != known {
        return Err(Refusal::TableSize { wanted: known, found: size });
    }
    Ok(())
}

/// A table that was not taken, as an error: where it came from, and what to do.
pub(crate) fn refused<T: Table>(place: &'static str, refusal: Refusal, hint: &'static str) -> LoadError {
    LoadError::new(T::wanted(None), vec![Looked::new(place, None, refusal)], hint)
}

pub(crate) const fn size_u32<T>() -> u32 {
    let size = size_of::<T>();
    assert!(size <= u32::MAX as usize);
    size as u32
}

/// A string of a table; empty where there is none.
///
/// # Safety
///
/// NULL, or a constant that ends with NUL and lives for ever.
pub(crate) unsafe fn text(pointer: *const c_char) -> &'static CStr {
    if pointer.is_null() {
        return c"";
    }
    // SAFETY: not NULL, and the rest is the caller's promise.
    unsafe { CStr::from_ptr(pointer) }
}

/// Makes the methods of `Api`, and what the comparison needs to know of the same list. A signature that differs from the bindings' does not
/// compile; an entry left out fails the assertion on the size, which counts every word from the first entry to the end.
macro_rules! entries {
    ($header:literal, $table:ident from $first:ident;
     $($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        #[doc = concat!("The entries of the table. `", $header, "` has what each does with its arguments.")]
        #[allow(clippy::too_many_arguments, reason = "the signatures are the table's")]
        impl Api {
            $(
                $(#[$doc])*
                ///
                /// # Safety
                ///
                #[doc = concat!("The arguments must be what `", $header, "` asks of this entry and of all: pointers that are valid for what the")]
                /// entry does with them, and objects of this table that are not yet freed and that no other thread is using against the rules.
                #[inline]
                pub unsafe fn $name(self, $($arg: $type),*) $(-> $result)? {
                    let Some(entry) = self.table.$name else { $crate::door::absent(stringify!($name)) };
                    // SAFETY: the caller keeps the contract of the entry, which is this method's.
                    unsafe { entry($($arg),*) }
                }
            )*
        }

        /// The first entry that is NULL.
        pub(super) fn first_missing(table: &$table) -> Option<&'static str> {
            $(
                if table.$name.is_none() {
                    return Some(stringify!($name));
                }
            )*
            None
        }

        const _: () = assert!(
            std::mem::offset_of!($table, $first) + [$(stringify!($name)),*].len() * size_of::<fn()>() == size_of::<$table>()
        );
    };
}
pub(crate) use entries;

#[cold]
pub(crate) fn absent(name: &str) -> ! {
    unreachable!("the entry {name} was there when the door was checked, and tables do not change")
}
