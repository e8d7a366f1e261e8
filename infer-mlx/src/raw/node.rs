//! Handles that live, and what they tell.

use super::{Element, Failure, Runtime, failure::broken, runtime::Handle};
use crate::DType;
use infer_sys::mlx::bindings::{self as sys, infer_mlx_array, infer_mlx_array_info};
use std::{marker::PhantomData, mem::MaybeUninit, ptr, slice};

/// A handle that lives for `'s`: that long its owner is borrowed.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Node<'s>(Handle, PhantomData<&'s ()>);

/// What is known of an array before it is computed.
#[derive(Clone, Copy)]
pub(crate) struct Info<'s> {
    pub(crate) dtype: DType,
    pub(crate) shape: &'s [i32],
    pub(super) elements: u64,
    pub(crate) evaluated: bool,
}

impl<'s> Node<'s> {
    /// The caller says for how long: until the owner of the handle frees it.
    pub(super) fn new(handle: Handle) -> Self {
        Self(handle, PhantomData)
    }

    pub(super) fn as_ptr(self) -> *const infer_mlx_array {
        self.0.as_ptr()
    }

    /// A list as the library takes it: a node has the layout of a pointer.
    pub(super) fn list(nodes: &[Self]) -> *const *const infer_mlx_array {
        nodes.as_ptr().cast()
    }

    /// NULL for none.
    pub(super) fn or_null(node: Option<Self>) -> *const infer_mlx_array {
        node.map_or(ptr::null(), Self::as_ptr)
    }
}

impl Runtime {
    /// Shape, type and state.
    pub(crate) fn info<'s>(&self, node: Node<'s>) -> Result<Info<'s>, Failure> {
        let mut info = MaybeUninit::<infer_mlx_array_info>::uninit();
        // SAFETY: the handle lives, and `info` is a valid place.
        self.cross(|api| unsafe { api.array_info(node.as_ptr(), info.as_mut_ptr()) })?;
        // SAFETY: the entry has said OK: "Its out parameters are written when the status is INFER_MLX_OK".
        let info = unsafe { info.assume_init() };
        let shape = if info.shape.is_null() {
            &[][..]
        } else {
            // SAFETY: so many sizes, of which the header says "lives as long as the handle"; nobody changes them.
            unsafe { slice::from_raw_parts(info.shape, info.ndim as usize) }
        };
        Ok(Info {
            dtype: dtype_of(info.dtype).ok_or_else(|| broken("MLX named a type of elements that nobody knows"))?,
            shape,
            elements: info.size,
            evaluated: info.evaluated,
        })
    }

    /// The elements of an array that is computed and lies row by row, in the library's memory.
    pub(crate) fn data<'s, T: Element>(&self, node: Node<'s>) -> Result<&'s [T], Failure> {
        let info = self.of_type::<T>(node)?;
        let (mut data, mut bytes) = (ptr::null(), 0);
        // SAFETY: the handle lives, and both are valid places.
        self.cross(|api| unsafe { api.array_data(node.as_ptr(), &raw mut data, &raw mut bytes) })?;
        let elements = bytes / size_of::<T>();
        if elements == 0 {
            return Ok(&[]);
        }
        let data = data.cast::<T>();
        if data.is_null() || elements as u64 != info.elements || bytes % size_of::<T>() != 0 {
            return Err(broken("the memory of an array is not what its shape says"));
        }
        if !data.is_aligned() {
            // A view of bytes may begin at any of them.
            let why =
                format!("its elements lie where no {} may: compute something of it, such as a sum with 0", T::DTYPE);
            return Err(Failure::invalid(why));
        }
        if T::DTYPE == DType::Bool {
            // SAFETY: as below; any byte is a `u8`.
            let raw = unsafe { slice::from_raw_parts(data.cast::<u8>(), bytes) };
            if raw.iter().any(|&byte| byte > 1) {
                return Err(no_bool());
            }
        }
        // SAFETY: not NULL, aligned, so many elements of this type, computed: "They live as long as the handle", which is `'s`. Nobody writes them
        // meanwhile: MLX writes over memory only of arrays that nobody else has, and this handle has it; and what was handed out here `kv_write`
        // does not write into, but copies.
        Ok(unsafe { slice::from_raw_parts(data, elements) })
    }

    /// The element of an array that is computed and has one.
    pub(crate) fn item<T: Element>(&self, node: Node<'_>) -> Result<T, Failure> {
        self.of_type::<T>(node)?;
        // Large enough, and aligned, for every type of elements.
        let mut item = 0u64;
        let size = size_of::<T>();
        // SAFETY: the handle lives, and `item` is a valid place of at least so many bytes.
        self.cross(|api| unsafe { api.array_item(node.as_ptr(), (&raw mut item).cast(), size) })?;
        let item = (&raw const item).cast::<T>();
        // SAFETY: a place that was written; any byte is a `u8`.
        if T::DTYPE == DType::Bool && unsafe { item.cast::<u8>().read() } > 1 {
            return Err(no_bool());
        }
        // SAFETY: aligned as a `u64` is, and any bytes are a value of every `Element` but `bool`, which was looked at.
        Ok(unsafe { item.read() })
    }

    /// Its state, if its elements are of this type.
    fn of_type<'s, T: Element>(&self, node: Node<'s>) -> Result<Info<'s>, Failure> {
        const { assert!(size_of::<T>() <= size_of::<u64>() && align_of::<T>() <= align_of::<u64>()) };
        let info = self.info(node)?;
        if info.dtype == T::DTYPE {
            return Ok(info);
        }
        Err(Failure::invalid(format!("the array has {} elements, not {}", info.dtype, T::DTYPE)))
    }
}

#[cold]
fn no_bool() -> Failure {
    Failure::invalid("the array has bytes that are neither false nor true".to_owned())
}

/// Our types of elements in the library's order.
const DTYPES: [DType; 14] = [
    DType::Bool,
    DType::U8,
    DType::U16,
    DType::U32,
    DType::U64,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::Bf16,
    DType::Complex64,
];

fn dtype_of(number: i32) -> Option<DType> {
    usize::try_from(number).ok().and_then(|number| DTYPES.get(number).copied())
}

/// The library's number for a type of elements.
pub(super) fn number_of(dtype: DType) -> i32 {
    let numbers: [u32; DTYPES.len()] = [
        sys::INFER_MLX_BOOL,
        sys::INFER_MLX_U8,
        sys::INFER_MLX_U16,
        sys::INFER_MLX_U32,
        sys::INFER_MLX_U64,
        sys::INFER_MLX_I8,
        sys::INFER_MLX_I16,
        sys::INFER_MLX_I32,
        sys::INFER_MLX_I64,
        sys::INFER_MLX_F16,
        sys::INFER_MLX_F32,
        sys::INFER_MLX_F64,
        sys::INFER_MLX_BF16,
        sys::INFER_MLX_C64,
    ];
    let place = DTYPES.iter().position(|&one| one == dtype);
    place.map_or(-1, |place| numbers[place] as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_there_and_back() {
        for (number, dtype) in DTYPES.into_iter().enumerate() {
            assert_eq!(number_of(dtype), number as i32, "{dtype}");
            assert_eq!(dtype_of(number as i32), Some(dtype));
        }
        assert_eq!((dtype_of(-1), dtype_of(14)), (None, None));
    }
}
