//! Arrays: what they are made of, when their data is given, and what is refused before MLX sees it.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use infer_sys::mlx::VERSION;
use infer_sys::mlx::bindings::*;

use crate::kit::{Stream, api, async_eval, check, data, eval, f32s, from, i32s, info, made, place, shape};

#[test]
fn the_door_says_what_it_is() {
    let api = api();
    assert_eq!(api.version(), VERSION);
    assert_eq!(api.mlx_c_version(), "0.7.0");
    assert_eq!(api.variant(), "cpu");
    assert!(ptr::eq(api.table(), crate::kit::api().table()));
}

#[test]
fn there_is_a_cpu_and_no_other_device_in_this_build() {
    let (mut cpus, mut gpus) = (0, 0);
    // SAFETY: the places are there.
    check(unsafe { api().device_count(INFER_MLX_CPU as i32, &raw mut cpus) }).unwrap();
    // SAFETY: as above.
    check(unsafe { api().device_count(INFER_MLX_GPU as i32, &raw mut gpus) }).unwrap();
    assert_eq!((cpus, gpus), (1, 0));
    let mut device = infer_mlx_device::default();
    // SAFETY: as above.
    check(unsafe { api().device_info(INFER_MLX_CPU as i32, 0, &raw mut device) }).unwrap();
    assert!(device.available && device.name[0] != 0);
    for (kind, index, status) in [
        (INFER_MLX_GPU as i32, 0, INFER_MLX_UNSUPPORTED),
        (INFER_MLX_CPU as i32, 1, INFER_MLX_UNSUPPORTED),
        (INFER_MLX_CPU as i32, -1, INFER_MLX_UNSUPPORTED),
        (7, 0, INFER_MLX_ARGUMENT),
    ] {
        // SAFETY: as above.
        let told = check(unsafe { api().device_info(kind, index, &raw mut device) });
        assert_eq!(told.unwrap_err().status, status);
        let mut stream = ptr::null_mut();
        // SAFETY: as above.
        let made = check(unsafe { api().stream_new(kind, index, &raw mut stream) });
        assert_eq!(made.unwrap_err().status, status);
    }
}

#[test]
fn data_is_given_when_it_is_there_and_row_by_row() {
    let stream = Stream::new();
    let a = f32s(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
    assert!(info(&a).unwrap().evaluated && info(&a).unwrap().row_contiguous, "made of data, it has data");
    let lazy = stream.unary(INFER_MLX_EXP, &a).unwrap();
    assert!(!info(&lazy).unwrap().evaluated);
    assert_eq!(data::<f32>(&lazy).unwrap_err().status, INFER_MLX_UNEVALUATED);
    let mut item = 0f32;
    // SAFETY: a handle that is not freed, and room for one number.
    let told = check(unsafe { api().array_item(lazy.0, (&raw mut item).cast(), 4) });
    assert_eq!(told.unwrap_err().status, INFER_MLX_UNEVALUATED);
    async_eval(&[&lazy]).unwrap();
    assert_eq!(data::<f32>(&lazy).unwrap()[0], 1f32.exp(), "it is waited for");

    let turned = stream.transpose(&a, &[1, 0]).unwrap();
    eval(&[&turned]).unwrap();
    assert!(!info(&turned).unwrap().row_contiguous);
    let failure = data::<f32>(&turned).unwrap_err();
    assert_eq!(failure.status, INFER_MLX_ARGUMENT);
    assert!(failure.message.contains("contiguous"), "{failure:?}");

    let one = i32s(&[7], &[]);
    assert_eq!(shape(&one), [0i32; 0]);
    let mut item = 0i32;
    for (array, bytes, status) in [(&one, 8, INFER_MLX_ARGUMENT), (&a, 4, INFER_MLX_ARGUMENT), (&one, 4, INFER_MLX_OK)]
    {
        // SAFETY: as above; more room than is there is refused.
        assert_eq!(unsafe { api().array_item(array.0, (&raw mut item).cast(), bytes) }, status);
    }
    assert_eq!(item, 7);
}

#[test]
fn what_does_not_fit_is_an_error_in_mlxs_words() {
    let stream = Stream::new();
    let a = f32s(&[0.0; 6], &[2, 3]);
    let failure = stream.binary(INFER_MLX_MATMUL, &a, &a).err().unwrap();
    assert_eq!(failure.status, INFER_MLX_EXCEPTION);
    assert!(failure.message.starts_with("[matmul]") && failure.message.contains("(2,3)"), "{failure:?}");
    assert!(!failure.message.contains(".cpp"), "where mlx-c was tells nobody anything: {failure:?}");
    assert_eq!(stream.reduce(INFER_MLX_SUM, &a, 5).err().unwrap().status, INFER_MLX_EXCEPTION);
    assert_eq!(stream.transpose(&a, &[0, 0]).err().unwrap().status, INFER_MLX_EXCEPTION);
}

#[test]
fn bytes_that_are_not_those_of_the_shape_are_refused() {
    let number = 1f32;
    let place = (&raw const number).cast::<c_void>();
    let make = |data, bytes, shape: &[i32], dtype: i32| {
        // SAFETY: the shape is there; so many bytes are read as the shape has, and only if they are as many as is said.
        made(|out| unsafe { api().array_copy_from(out, data, bytes, shape.as_ptr(), shape.len(), dtype) })
    };
    let f32 = INFER_MLX_F32 as i32;
    for (data, bytes, shape, dtype) in [
        (place, 4, &[2][..], f32),
        (place, 8, &[1], f32),
        (place, 4, &[-1], f32),
        (place, 4, &[-1, -1], f32),
        (ptr::null(), 4, &[1], f32),
        (place, 4, &[1], -1),
        (place, 4, &[1], INFER_MLX_C64 as i32 + 1),
    ] {
        assert_eq!(make(data, bytes, shape, dtype).err().unwrap().status, INFER_MLX_ARGUMENT, "{shape:?} {dtype}");
    }
    let empty = make(ptr::null(), 0, &[0, 7], f32).unwrap();
    assert_eq!((shape(&empty), data::<f32>(&empty).unwrap()), (vec![0, 7], vec![]));
    assert_eq!(make(place, 4, &[i32::MAX; 9], f32).err().unwrap().status, INFER_MLX_MEMORY);
}

/// MLX would count the bytes of such an array wrongly, or write to address 0.
#[test]
fn more_than_there_is_memory_is_refused_where_it_is_asked_for() {
    let stream = Stream::new();
    let column = stream.full(&[i32::MAX, 1], 0.0, INFER_MLX_U8).unwrap();
    let most = [i32::MAX; 2];
    for shape in [&[i32::MAX, 64][..], &most, &[i32::MAX; 4]] {
        let failure = stream.full(shape, 0.0, INFER_MLX_F32).err().unwrap();
        assert_eq!(failure.status, INFER_MLX_MEMORY, "{failure:?}");
        let one = f32s(&[0.0], &[1]);
        // SAFETY: a handle that is not freed, and a shape that is there.
        let wide = made(|out| unsafe { api().broadcast_to(out, one.0, shape.as_ptr(), shape.len(), stream.raw()) });
        assert_eq!(wide.err().unwrap().status, INFER_MLX_MEMORY);
    }
    let row = stream.transpose(&column, &[1, 0]).unwrap();
    let failure = stream.binary(INFER_MLX_ADD, &column, &row).err().unwrap();
    assert_eq!(failure.status, INFER_MLX_MEMORY);
    assert!(failure.message.contains("memory limit"), "{failure:?}");
    let mut place = ptr::null_mut();
    let mut bytes = 0;
    let made = made(|out| {
        // SAFETY: the places and the shape are there.
        unsafe { api().array_uninit(out, &raw mut place, &raw mut bytes, most.as_ptr(), 2, INFER_MLX_F32 as i32) }
    });
    assert_eq!(made.err().unwrap().status, INFER_MLX_MEMORY);
    assert!(place.is_null() && bytes == 0, "out parameters are written in the good case alone");
}

#[test]
fn the_caller_writes_into_the_arrays_own_memory() {
    let stream = Stream::new();
    let mut memory = ptr::null_mut::<c_void>();
    let mut bytes = 0;
    let a = made(|out| {
        // SAFETY: the places and the shape are there.
        unsafe { api().array_uninit(out, &raw mut memory, &raw mut bytes, [2, 2].as_ptr(), 2, INFER_MLX_F32 as i32) }
    })
    .unwrap();
    assert_eq!(bytes, 16);
    // SAFETY: the header gives the caller so many bytes to write, aligned by MLX's allocator; numbers are written over nothing.
    unsafe { memory.cast::<[f32; 4]>().write([1.0, 2.0, 3.0, 4.0]) };
    assert_eq!(place(&a), memory.addr());
    assert_eq!(stream.values(&stream.reduce(INFER_MLX_SUM, &a, 0).unwrap()).unwrap(), [4.0, 6.0]);
}

static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn give_back(memory: *mut c_void) {
    GIVEN_BACK.fetch_add(1, Ordering::SeqCst);
    // SAFETY: made by `Box::into_raw` of this type below, and given back once.
    drop(unsafe { Box::from_raw(memory.cast::<[f32; 4]>()) });
}

#[test]
fn memory_of_the_callers_is_given_back_once_whatever_comes_of_it() {
    let stream = Stream::new();
    let over = |bytes, shape: &[i32], dtype: i32| {
        let memory = Box::into_raw(Box::new([1f32, 2.0, 3.0, 4.0])).cast::<c_void>();
        made(|out| {
            // SAFETY: sixteen bytes that stay until they are given back; whatever else is said of them is refused.
            unsafe { api().array_over(out, memory, bytes, shape.as_ptr(), shape.len(), dtype, Some(give_back), memory) }
        })
    };
    let (f32, before) = (INFER_MLX_F32 as i32, GIVEN_BACK.load(Ordering::SeqCst));
    let a = over(16, &[2, 2], f32).unwrap();
    let sum = stream.reduce(INFER_MLX_SUM, &a, 0).unwrap();
    assert_eq!(stream.values(&sum).unwrap(), [4.0, 6.0]);
    drop((a, sum));
    assert_eq!(GIVEN_BACK.load(Ordering::SeqCst), before + 1);
    for (bytes, shape, dtype) in [(15, &[2, 2][..], f32), (16, &[3], f32), (16, &[-4], f32), (16, &[4], 99)] {
        let before = GIVEN_BACK.load(Ordering::SeqCst);
        assert!(over(bytes, shape, dtype).is_err());
        assert_eq!(GIVEN_BACK.load(Ordering::SeqCst), before + 1, "{shape:?}");
    }
    let empty = over(0, &[0], f32).unwrap();
    drop(empty);
    assert_eq!(GIVEN_BACK.load(Ordering::SeqCst), before + 6);
}

#[test]
fn what_failed_once_gives_no_data() {
    let stream = Stream::new();
    let table = f32s(&[1.0, 2.0], &[2]);
    let wrong = stream.take(&table, &i32s(&[5], &[1]), 0).unwrap();
    let right = stream.unary(INFER_MLX_EXP, &table).unwrap();
    assert_eq!(eval(&[&right, &wrong]).unwrap_err().message, "index 5 of an axis of length 2");
    for array in [&wrong, &right] {
        assert!(!info(array).unwrap().evaluated);
        assert_eq!(data::<f32>(array).unwrap_err().status, INFER_MLX_EXCEPTION);
        assert_eq!(eval(&[array]).unwrap_err().status, INFER_MLX_EXCEPTION);
    }
    // Begun, and told when it is waited for.
    let later = stream.take(&table, &i32s(&[9], &[1]), 0).unwrap();
    let told = async_eval(&[&later]).and_then(|()| data::<f32>(&later).map(drop));
    assert_eq!(told.unwrap_err().message, "index 9 of an axis of length 2");
    let good = stream.unary(INFER_MLX_SQUARE, &table).unwrap();
    assert_eq!(stream.values(&good).unwrap(), [1.0, 4.0], "and the stream goes on");
}

/// What an array that failed was made of, and what is made of it, is not taken for computed: MLX calls all of it evaluated.
#[test]
fn what_may_be_half_done_is_not_built_upon() {
    let stream = Stream::new();
    let table = f32s(&[1.0, 2.0], &[2]);
    let constant = stream.unary(INFER_MLX_EXP, &table).unwrap();
    let first = stream.binary(INFER_MLX_ADD, &constant, &table).unwrap();
    eval(&[&first]).unwrap();
    let second = stream.binary(INFER_MLX_MULTIPLY, &constant, &table).unwrap();
    eval(&[&second]).unwrap();

    let inner = stream.take(&table, &i32s(&[5], &[1]), 0).unwrap();
    let outer = stream.unary(INFER_MLX_EXP, &inner).unwrap();
    let beside = stream.unary(INFER_MLX_SQUARE, &inner).unwrap();
    assert_eq!(eval(&[&outer]).unwrap_err().message, "index 5 of an axis of length 2");
    assert_eq!(data::<f32>(&inner).unwrap_err().status, INFER_MLX_EXCEPTION);
    assert_eq!(stream.unary(INFER_MLX_EXP, &inner).err().unwrap().status, INFER_MLX_EXCEPTION);
    assert_eq!(eval(&[&beside]).unwrap_err().status, INFER_MLX_EXCEPTION);
    assert_eq!(shape(&beside), [1], "what it would have been can be asked for");

    // What was computed before, and what is made from now on, is as good as ever.
    for array in [&constant, &first, &second, &table] {
        let next = stream.binary(INFER_MLX_ADD, array, &table).unwrap();
        assert_eq!(stream.values(&next).unwrap().len(), 2);
    }

    // Begun and failed, and seen by an evaluation of something else.
    let begun = stream.take(&table, &i32s(&[6], &[1]), 0).unwrap();
    let told = async_eval(&[&begun]).and_then(|()| eval(&[&stream.unary(INFER_MLX_NEGATIVE, &table).unwrap()]));
    assert_eq!(told.unwrap_err().message, "index 6 of an axis of length 2");
    assert_eq!(data::<f32>(&begun).unwrap_err().status, INFER_MLX_EXCEPTION);
}

#[test]
fn what_is_null_is_refused_by_name() {
    let stream = Stream::new();
    let a = f32s(&[1.0], &[1]);
    let (api, s, none) = (api(), stream.raw(), ptr::null());
    // SAFETY: here and below, NULL is what the entry is to refuse.
    let told = |status: i32, name: &str| {
        let failure = check(status).unwrap_err();
        assert_eq!((failure.status, failure.message), (INFER_MLX_ARGUMENT, format!("{name} is NULL")));
    };
    let mut out = ptr::null_mut();
    // SAFETY: as above.
    told(unsafe { api.unary(ptr::null_mut(), INFER_MLX_EXP, a.0, s) }, "out");
    // SAFETY: as above.
    told(unsafe { api.unary(&raw mut out, INFER_MLX_EXP, none, s) }, "a");
    // SAFETY: as above.
    told(unsafe { api.unary(&raw mut out, INFER_MLX_EXP, a.0, ptr::null()) }, "stream");
    // SAFETY: as above.
    told(unsafe { api.reshape(&raw mut out, a.0, ptr::null(), 1, s) }, "shape");
    // SAFETY: as above.
    told(unsafe { api.concatenate(&raw mut out, ptr::null(), 1, 0, s) }, "arrays");
    // SAFETY: as above.
    told(unsafe { api.eval(ptr::null(), 1) }, "arrays");
    // SAFETY: as above.
    told(unsafe { api.eval(&raw const none, 1) }, "arrays");
    // SAFETY: as above.
    told(unsafe { api.array_data(a.0, ptr::null_mut(), ptr::null_mut()) }, "data");
    assert!(out.is_null());
    // SAFETY: nothing is freed.
    unsafe { api.arrays_free(ptr::null(), 7) };
    // SAFETY: NULL among handles is passed over.
    unsafe { api.arrays_free(&raw const out, 1) };
    // SAFETY: NULL is a no-op.
    unsafe { api.stream_free(ptr::null_mut()) };
}

#[test]
fn memory_is_told_and_its_limits_are_set_and_put_back() {
    let memory = || {
        let mut memory = infer_mlx_memory::default();
        // SAFETY: the place is there.
        check(unsafe { api().memory(&raw mut memory) }).unwrap();
        memory
    };
    let before = memory();
    assert!(before.limit > 1 << 28);
    let a = from(&vec![0u8; 32 << 20], &[32 << 20], INFER_MLX_U8);
    assert!(memory().active >= 32 << 20 && memory().peak >= 32 << 20);
    drop(a);
    let mut limit = 0;
    // SAFETY: the place is there.
    check(unsafe { api().set_memory_limit(before.limit / 2, &raw mut limit) }).unwrap();
    assert_eq!((limit, memory().limit), (before.limit, before.limit / 2));
    // SAFETY: nobody wants the one before.
    check(unsafe { api().set_memory_limit(limit, ptr::null_mut()) }).unwrap();
    // SAFETY: as above.
    check(unsafe { api().set_cache_limit(0, &raw mut limit) }).unwrap();
    assert_eq!(memory().cache, 0);
    // SAFETY: as above.
    check(unsafe { api().set_cache_limit(limit, ptr::null_mut()) }).unwrap();
    // SAFETY: no precondition.
    check(unsafe { api().clear_cache() }).unwrap();
    // SAFETY: no precondition.
    check(unsafe { api().reset_peak_memory() }).unwrap();
}
