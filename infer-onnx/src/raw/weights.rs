//! Weights that several sessions of one model share.
//!
//! What the runtime packs anew it only shares between sessions for initializers that they were handed (`AddInitializer`), and only
//! through a container that all of them are made with; for what it reads from a model itself it does not look there.

use super::{
    Api,
    api::{element_of, some},
};
use crate::{DType, error::invalid_input};
use infer_core::{Error, ErrorKind, Result};
use infer_sys::onnxruntime::{OrtPrepackedWeightsContainer, OrtSessionOptions, OrtValue};
use memmap2::{Mmap, MmapOptions};
use std::{
    ffi::CString,
    fs::File,
    ops::Deref,
    path::Path,
    ptr::{self, NonNull},
    sync::Arc,
};

/// A file in memory, as far as it is looked at.
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// Maps a whole file. Whoever cuts it short while it is mapped ends the process, as with every mapped model.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let cannot = |error| Error::new(ErrorKind::Io, format!("cannot map {}", path.display())).with_source(error);
        let file = File::open(path).map_err(cannot)?;
        // SAFETY: "may be unsound if the underlying file is modified": the mapping is private and read only, and what is in it are numbers, any
        // pattern of which is one, or is parsed by code that takes any bytes; nobody keeps a conclusion about bytes that it does not copy.
        let map = unsafe { MmapOptions::new().map_copy_read_only(&file) };
        map.map(Self).map_err(cannot)
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Weights, and what the runtime makes of them. Sessions that were made with it keep it alive.
pub(crate) struct SharedWeights {
    api: Api,
    container: NonNull<OrtPrepackedWeightsContainer>,
    tensors: Vec<Tensor>,
    /// What tensors lie in; dropped after them, since fields are dropped in order.
    files: Vec<Arc<Mapped>>,
    copies: Vec<Vec<u128>>,
    mapped: usize,
    copied: usize,
}

// SAFETY: the container has a mutex of its own, under which sessions look into it and add to it ("PrepackedWeightsContainer" is made to be used
// by sessions of different threads); names and tensors are not changed once they are made, and the runtime reads initializers only.
unsafe impl Send for SharedWeights {}
// SAFETY: as above.
unsafe impl Sync for SharedWeights {}

/// An initializer and its name.
struct Tensor {
    api: Api,
    name: CString,
    value: NonNull<OrtValue>,
}

impl SharedWeights {
    /// None so far.
    pub(crate) fn new() -> Result<Self> {
        let api = Api::loaded()?;
        let mut container = ptr::null_mut();
        // SAFETY: `container` is a valid place.
        let status = unsafe { (api.table().CreatePrepackedWeightsContainer)(&raw mut container) };
        api.check("make a container of packed weights", status)?;
        let container = some(container)?;
        Ok(Self { api, container, tensors: Vec::new(), files: Vec::new(), copies: Vec::new(), mapped: 0, copied: 0 })
    }

    /// Adds a weight. Where its bytes are in this file, and lie as elements of their type must, they stay there; else they are copied.
    pub(crate) fn add(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[i64],
        bytes: &[u8],
        file: Option<&Arc<Mapped>>,
    ) -> Result<()> {
        let name =
            CString::new(name).map_err(|_| invalid_input(format!("the weight {name:?} has a NUL in its name")))?;
        let align = dtype.bytes(1).unwrap_or(1);
        let is_aligned = bytes.as_ptr().addr().is_multiple_of(align);
        let file = file.filter(|file| {
            let (whole, part) = (file.as_ptr_range(), bytes.as_ptr_range());
            is_aligned && whole.start <= part.start && part.end <= whole.end
        });
        let start = if let Some(file) = file {
            self.mapped += bytes.len();
            self.files.push(file.clone());
            bytes.as_ptr()
        } else {
            self.copied += bytes.len();
            let copy = self.copy(bytes);
            copy.cast_const()
        };
        let mut value = ptr::null_mut();
        // SAFETY: `start` is the first of `bytes.len()` bytes that stay where they are until `self` is dropped: in a file that `self` holds, or
        // in its own copy; they are aligned for the type. The entry looks whether they are as many as the shape says. It takes a pointer to
        // mutable bytes for tensors of all kinds; an initializer is not written. The shape is copied, `value` is a valid place.
        let status = unsafe {
            (self.api.table().CreateTensorWithDataAsOrtValue)(
                self.api.memory(),
                start.cast_mut().cast(),
                bytes.len(),
                shape.as_ptr(),
                shape.len(),
                element_of(dtype),
                &raw mut value,
            )
        };
        self.api.check("make a tensor of a weight", status)?;
        self.tensors.push(Tensor { api: self.api, name, value: some(value)? });
        Ok(())
    }

    /// How many bytes of weights lie in mapped files, and how many were copied.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.mapped, self.copied)
    }

    /// Hands the weights to a session that is to be made.
    ///
    /// # Safety
    /// The options live, nothing else uses them meanwhile, and `self` outlives them and each session that is made with them.
    pub(super) unsafe fn add_to(&self, options: *mut OrtSessionOptions) -> Result<()> {
        for Tensor { name, value, .. } in &self.tensors {
            // SAFETY: the caller vouches for the options; name and tensor live as long as `self`, which the header asks for: the tensor "must outlive
            // the session".
            let status = unsafe { (self.api.table().AddInitializer)(options, name.as_ptr(), value.as_ptr()) };
            self.api.check("share a weight", status)?;
        }
        Ok(())
    }

    /// Where sessions find what others have packed.
    pub(super) fn container(&self) -> *mut OrtPrepackedWeightsContainer {
        self.container.as_ptr()
    }

    /// A copy that lies as elements of every type must.
    fn copy(&mut self, bytes: &[u8]) -> *mut u8 {
        let mut copy = vec![0_u128; bytes.len().div_ceil(size_of::<u128>())];
        let start = copy.as_mut_ptr().cast::<u8>();
        // SAFETY: the copy has at least as many bytes, and was just made, so the two do not overlap.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
        // Moving a vector does not move what is in it.
        self.copies.push(copy);
        start
    }
}

impl Drop for SharedWeights {
    fn drop(&mut self) {
        // SAFETY: made by `CreatePrepackedWeightsContainer`, and no session has it any more: each keeps `self` alive.
        unsafe { (self.api.table().ReleasePrepackedWeightsContainer)(self.container.as_ptr()) };
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: made by `CreateTensorWithDataAsOrtValue`, and released once. The bytes are not its own.
        unsafe { (self.api.table().ReleaseValue)(self.value.as_ptr()) };
    }
}
