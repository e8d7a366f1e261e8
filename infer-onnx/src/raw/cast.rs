//! Between bytes and elements.

use crate::tensor::Element;
use std::slice;

/// The bytes of some elements.
pub(crate) fn as_bytes<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: `Element` is sealed; its implementors are numbers and `bool`, which have no padding: each byte of theirs is initialised. Bytes
    // have no alignment, the length is that of the slice, and the borrow is the slice's.
    unsafe { slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// The bytes of some elements, to be written; `None` where not all bytes make an element.
pub(crate) fn as_bytes_mut<T: Element>(elements: &mut [T]) -> Option<&mut [u8]> {
    if !T::ANY_BYTES {
        return None;
    }
    let len = size_of_val(elements);
    // SAFETY: as for `as_bytes`, and any bytes that are written are elements.
    Some(unsafe { slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), len) })
}

/// Bytes as elements: `None` where they do not lie or end as elements do, or are no elements (a `bool` that is neither 0 nor 1).
pub(crate) fn as_elements<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    if !T::ANY_BYTES && bytes.iter().any(|&byte| byte > 1) {
        return None;
    }
    let start = bytes.as_ptr().cast::<T>();
    if !start.is_aligned() || !bytes.len().is_multiple_of(size_of::<T>()) {
        // Where there is nothing, it does not matter where it lies.
        return bytes.is_empty().then_some(&[]);
    }
    // SAFETY: aligned, whole elements; `Element` is sealed: its implementors are numbers, of which every pattern of bits is one, and `bool`,
    // whose bytes have just been looked at. The borrow is that of the bytes.
    Some(unsafe { slice::from_raw_parts(start, bytes.len() / size_of::<T>()) })
}

/// The same, to be written. Whatever elements are written are bytes.
pub(crate) fn as_elements_mut<T: Element>(bytes: &mut [u8]) -> Option<&mut [T]> {
    let len = as_elements::<T>(bytes)?.len();
    if len == 0 {
        return Some(&mut []);
    }
    // SAFETY: looked at just now: aligned, whole, valid; the borrow is exclusive.
    Some(unsafe { slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_bytes_are_the_same_memory() {
        let numbers = [1_i32, -1];
        assert_eq!(as_elements::<i32>(as_bytes(&numbers)), Some(&numbers[..]));
        assert_eq!(
            as_elements::<i64>(as_bytes(&numbers)).map(<[i64]>::len),
            Some(1).filter(|_| numbers.as_ptr().cast::<i64>().is_aligned())
        );
        assert_eq!(as_elements::<u16>(&as_bytes(&numbers)[1..]), None, "neither aligned nor whole");
        assert_eq!(as_elements::<f64>(&as_bytes(&numbers)[1..1]), Some(&[][..]));
    }

    #[test]
    fn only_zero_and_one_are_bools() {
        assert_eq!(as_elements::<bool>(&[0, 1]), Some(&[false, true][..]));
        assert_eq!(as_elements::<bool>(&[2]), None);
        let mut flags = [true];
        assert!(as_bytes_mut(&mut flags).is_none());
        let mut bytes = [0_u8, 1];
        as_elements_mut::<bool>(&mut bytes).unwrap()[0] = true;
        assert_eq!(bytes, [1, 1]);
    }
}
