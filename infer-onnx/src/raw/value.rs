//! Values: tensors, sequences and maps.

mod describe;
mod lent;
mod parts;
mod size;

pub(super) use lent::Lent;

use size::{bytes_of, check_room, elements_of, native, sizes_differ};

use super::{
    Api, Shape,
    api::{element_of, some},
    as_elements_mut,
    session::Owner,
};
use crate::{
    DType,
    error::{error, invalid_input},
    tensor::Element,
};
use infer_core::{ErrorKind, Result};
use infer_sys::onnxruntime::OrtValue;
use std::{
    fmt,
    marker::PhantomData,
    ops::Deref,
    ptr::{self, NonNull},
    slice,
    sync::Arc,
};

/// One value of the runtime, owned.
///
/// `Send`: the runtime counts references atomically and frees from any thread. `Sync`: what takes `&self` reads.
///
/// Who may write. Memory of the runtime can have several owners there: what goes into a graph may come out of it again, and a sequence
/// shares its tensors. So only a value whose memory was made for it here is written ([`bytes_mut`](Self::bytes_mut)), and
/// [`Session::run`](super::Session::run) gives no value whose memory is that of an input. Memory that runs write into is inside a
/// [`Binding`](super::Binding), which a run borrows exclusively.
pub(crate) struct Value {
    /// Released first; then the session it came from.
    handle: Handle,
    owner: Option<Arc<Owner>>,
    contents: Contents,
    /// Of tensors.
    shape: Shape,
    /// Of tensors but strings: where the elements begin, and their bytes. Otherwise nothing.
    data: *mut u8,
    len: usize,
    /// Whether the memory was made here, for this value alone.
    ours: bool,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    Tensor(DType),
    Sequence,
    Map,
    /// An optional value that is not there.
    Nothing,
}

// SAFETY: an `OrtValue` is a counted pointer whose counts are atomic; tensors are freed through allocators that lock or have no state. The
// pointer into its memory goes with it. `Owner` is `Send` and `Sync` itself.
unsafe impl Send for Value {}
// SAFETY: every method that takes `&self` reads memory that nobody writes meanwhile (see `bytes`), or calls an entry that takes the value as
// a pointer to const and copies something out of it.
unsafe impl Sync for Value {}

/// A value over memory of the caller, which must not be touched otherwise while this lives.
pub(crate) struct Borrowed<'m>(Value, PhantomData<&'m mut [u8]>);

impl Value {
    /// A tensor of zeros (or of empty strings) in memory of the runtime's own.
    pub(crate) fn tensor(dtype: DType, shape: &[i64]) -> Result<Self> {
        let api = Api::loaded()?;
        check_room(dtype, shape)?;
        let mut value = ptr::null_mut();
        let (dims, rank, element) = (shape.as_ptr(), shape.len(), element_of(dtype));
        // SAFETY: the dimensions are a slice; the allocator lives for ever; `value` is a valid place.
        let status =
            unsafe { (api.table().CreateTensorAsOrtValue)(api.allocator(), dims, rank, element, &raw mut value) };
        api.check("make a tensor", status)?;
        let mut tensor = Self::bare(Handle::new(api, some(value)?), None);
        tensor.describe()?;
        if tensor.len > 0 {
            // SAFETY: `describe` has asked for the memory and its size; nobody else has the tensor yet.
            unsafe { tensor.data.write_bytes(0, tensor.len) };
        }
        tensor.ours = true;
        Ok(tensor)
    }

    /// A tensor of strings, copied. Anything may be in them, a NUL too.
    pub(crate) fn from_strings<S: AsRef<[u8]>>(shape: &[i64], strings: &[S]) -> Result<Self> {
        let count = elements_of(shape)?;
        if count != strings.len() {
            let message =
                format!("a tensor of shape {shape:?} has {count} elements, but {} strings are there", strings.len());
            return Err(invalid_input(message));
        }
        let tensor = Self::tensor(DType::String, shape)?;
        let api = tensor.handle.api;
        for (index, string) in strings.iter().map(AsRef::as_ref).enumerate() {
            let mut place = ptr::null_mut();
            let value = tensor.handle.as_ptr();
            // SAFETY: the tensor is of strings, the index one of its elements; `place` is a valid place.
            let status = unsafe {
                (api.table().GetResizedStringTensorElementBuffer)(value, index, string.len(), &raw mut place)
            };
            api.check("write a string", status)?;
            // SAFETY: the entry has resized the element to that length and given its start; nobody else has the tensor yet.
            unsafe { ptr::copy_nonoverlapping(string.as_ptr(), place.cast(), string.len()) };
        }
        Ok(tensor)
    }

    /// A tensor over the caller's memory, to be read: not copied.
    pub(crate) fn view<'m>(dtype: DType, shape: &[i64], bytes: &'m [u8]) -> Result<Borrowed<'m>> {
        lent::check_elements(dtype, bytes)?;
        // The runtime takes one kind of pointer for inputs and outputs. As an input it is only read: `Run` and `BindInput` take values
        // as pointers to const, and the planner never lets a node write into a graph's input. A `Borrowed` cannot be bound as an output
        // unless it is `ours`.
        let value = Self::over(dtype, native(shape)?, bytes.as_ptr().cast_mut(), bytes.len())?;
        Ok(Borrowed(value, PhantomData))
    }

    /// A tensor over the caller's memory, to be written: an output.
    pub(crate) fn view_mut<'m>(dtype: DType, shape: &[i64], bytes: &'m mut [u8]) -> Result<Borrowed<'m>> {
        let mut value = Self::over(dtype, native(shape)?, bytes.as_mut_ptr(), bytes.len())?;
        value.ours = true;
        Ok(Borrowed(value, PhantomData))
    }

    /// A tensor over memory that may be read and written as another value, too: as past and as present of a graph.
    ///
    /// # Safety
    /// The memory is initialised and valid for reads and writes for as long as the value lives. Nothing else reads or writes it while a run has the
    /// value, and nobody borrows the bytes of the value while anything else writes it.
    pub(super) unsafe fn over_memory(dtype: DType, shape: &[i64], memory: NonNull<[u8]>) -> Result<Self> {
        let mut value = Self::over(dtype, native(shape)?, memory.cast().as_ptr(), memory.len())?;
        value.ours = true;
        Ok(value)
    }

    /// Over memory that the caller of this keeps valid for as long as anybody may read it through the value. Nothing is read or written here.
    fn over(dtype: DType, shape: Shape, data: *mut u8, len: usize) -> Result<Self> {
        let api = Api::loaded()?;
        let dims = shape.native();
        let wanted = bytes_of(dtype, dims)?;
        if dtype == DType::String {
            return Err(invalid_input("strings are not bytes: make a tensor of strings of them"));
        }
        if len != wanted {
            return Err(sizes_differ(dtype, dims, wanted, len));
        }
        let align = dtype.align();
        if !data.addr().is_multiple_of(align) && len > 0 {
            return Err(invalid_input(format!(
                "the memory of a tensor of {dtype} begins at no multiple of {align} bytes"
            )));
        }
        let mut value = ptr::null_mut();
        let (dims, rank, element) = (dims.as_ptr(), dims.len(), element_of(dtype));
        // SAFETY: the dimensions are a slice; `len` bytes are as many as the shape has, aligned; `value` is a valid place. The entry keeps
        // the pointer and does not follow it.
        let status = unsafe {
            (api.table().CreateTensorWithDataAsOrtValue)(
                api.memory(),
                data.cast(),
                len,
                dims,
                rank,
                element,
                &raw mut value,
            )
        };
        api.check("make a tensor over memory", status)?;
        let mut tensor = Self::bare(Handle::new(api, some(value)?), None);
        (tensor.contents, tensor.shape, tensor.data, tensor.len) = (Contents::Tensor(dtype), shape, data, len);
        Ok(tensor)
    }

    /// A value that a run gave, with the session it came from.
    pub(super) fn of_run(api: Api, value: NonNull<OrtValue>, owner: Arc<Owner>) -> Result<Self> {
        let mut value = Self::given(api, value, owner);
        value.describe()?;
        Ok(value)
    }

    /// The same, as nothing until it [describes](Self::describe) itself.
    pub(super) fn given(api: Api, value: NonNull<OrtValue>, owner: Arc<Owner>) -> Self {
        Self::bare(Handle::new(api, value), Some(owner))
    }

    /// What keeps the session alive that it came from, for whoever does so until this is gone.
    pub(super) fn hand_over(&mut self) -> Option<Arc<Owner>> {
        self.owner.take()
    }

    /// Lets go of a value that a run gave, unseen.
    pub(super) fn release(api: Api, value: NonNull<OrtValue>) {
        drop(Handle::new(api, value));
    }

    fn bare(handle: Handle, owner: Option<Arc<Owner>>) -> Self {
        let (shape, data) = (Shape::NONE, ptr::null_mut());
        Self { handle, owner, contents: Contents::Nothing, shape, data, len: 0, ours: false }
    }

    pub(crate) fn contents(&self) -> Contents {
        self.contents
    }

    /// Of a tensor: the type of its elements.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self.contents {
            Contents::Tensor(dtype) => Some(dtype),
            _ => None,
        }
    }

    /// Of a tensor: its dimensions, none of them negative.
    pub(crate) fn shape(&self) -> &[i64] {
        self.shape.native()
    }

    /// The same, as Rust counts.
    pub(crate) fn dims(&self) -> &[usize] {
        self.shape.ours()
    }

    /// Whether it is an optional value that is not there.
    pub(crate) fn is_none(&self) -> bool {
        self.contents == Contents::Nothing
    }

    /// The elements of a tensor, as bytes; empty for strings and for what is no tensor.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: memory of the host, so long, that lives as long as the handle does: asked for by `describe`, or given by `over` together
        // with a borrow. It is initialised: zeroed by `tensor`, or written by a run or the caller. Nobody writes while `self` is borrowed:
        // `bytes_mut` takes it exclusively, and so does a run that has it as an output.
        unsafe { slice::from_raw_parts(self.data, self.len) }
    }

    /// The same, to be written; not for `bool`, of which not every byte is one. Memory that others may have too is copied first.
    pub(crate) fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        if self.dtype() == Some(DType::Bool) {
            return Err(invalid_input("bytes of bools are not written: write elements"));
        }
        self.writable()
    }

    /// The elements of a tensor of `T`, to be written. Memory that others may have too is copied first.
    pub(crate) fn elements_mut<T: Element>(&mut self) -> Result<&mut [T]> {
        let dtype = self.dtype();
        if dtype != Some(T::DTYPE) {
            let is = dtype.map_or("no tensor", DType::as_str);
            return Err(invalid_input(format!("elements of {} were asked of {is}", T::DTYPE)));
        }
        let bytes = self.writable()?;
        as_elements_mut(bytes).ok_or_else(|| error(ErrorKind::Runtime, "a tensor of ONNX Runtime is not aligned"))
    }

    fn writable(&mut self) -> Result<&mut [u8]> {
        if !self.ours {
            *self = self.copied()?;
        }
        if self.len == 0 {
            return Ok(&mut []);
        }
        // SAFETY: as for `bytes`; and `ours` says that the memory was made for this value alone or is the caller's exclusively, so the
        // exclusive borrow of `self` is one of the memory.
        Ok(unsafe { slice::from_raw_parts_mut(self.data, self.len) })
    }

    /// A tensor of the same elements, in memory of its own.
    pub(crate) fn copied(&self) -> Result<Self> {
        match self.contents {
            Contents::Tensor(DType::String) => Self::from_strings(self.shape(), &self.strings()?),
            Contents::Tensor(dtype) => {
                let mut copy = Self::tensor(dtype, self.shape())?;
                copy.writable()?.copy_from_slice(self.bytes());
                Ok(copy)
            }
            _ => Err(invalid_input("only tensors are copied")),
        }
    }

    /// Whether the memory of two tensors overlaps.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.data.addr(), other.data.addr());
        self.len > 0 && other.len > 0 && ours < theirs + other.len && theirs < ours + self.len
    }

    /// Whether runs may write into it.
    pub(super) fn may_be_written(&self) -> bool {
        self.ours
    }

    pub(super) fn as_ptr(&self) -> *const OrtValue {
        self.handle.as_ptr()
    }
}

impl Borrowed<'_> {
    /// Whether runs may write into it.
    pub(super) fn may_be_written(&self) -> bool {
        self.0.ours
    }

    /// The value, to be written through: inside `raw` only, since whoever could put another one in its place would take the borrow away.
    pub(super) fn value_mut(&mut self) -> &mut Value {
        &mut self.0
    }
}

impl Deref for Borrowed<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl From<Value> for Borrowed<'_> {
    fn from(value: Value) -> Self {
        Self(value, PhantomData)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value").field("contents", &self.contents).field("shape", &self.shape()).finish_non_exhaustive()
    }
}

/// One `OrtValue`, released with it.
struct Handle {
    api: Api,
    value: NonNull<OrtValue>,
}

impl Handle {
    fn new(api: Api, value: NonNull<OrtValue>) -> Self {
        Self { api, value }
    }

    fn as_ptr(&self) -> *mut OrtValue {
        self.value.as_ptr()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by an entry that gives ownership, and released once; a run borrows its values.
        unsafe { (self.api.table().ReleaseValue)(self.value.as_ptr()) };
    }
}
