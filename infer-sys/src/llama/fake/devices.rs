//! Faked devices, and which of them has which layer of a model.

use std::ffi::CStr;
use std::ptr;

use super::model::model;
use super::support::{Failure, Outcome, finish, put};
use crate::llama::bindings::{
    GGML_BACKEND_DEVICE_TYPE_CPU, GGML_BACKEND_DEVICE_TYPE_GPU, LLAMA_SPLIT_MODE_NONE, ggml_backend_dev_t,
    ggml_backend_dev_type, infer_llama_device, infer_llama_error, llama_model, llama_model_params,
};

/// As long as `tensor_split` must be.
pub(super) const MAX_DEVICES: usize = 16;

/// Layers of every faked model, the output layer among them.
const LAYERS: usize = 2;

struct Device {
    name: &'static CStr,
    kind: ggml_backend_dev_type,
}

/// The processor, and two devices that do not compute any differently.
static DEVICES: [Device; 3] = [
    Device { name: c"CPU", kind: GGML_BACKEND_DEVICE_TYPE_CPU },
    Device { name: c"FAKE0", kind: GGML_BACKEND_DEVICE_TYPE_GPU },
    Device { name: c"FAKE1", kind: GGML_BACKEND_DEVICE_TYPE_GPU },
];

/// A handle is the address of the device's row.
fn handle(index: usize) -> ggml_backend_dev_t {
    ptr::from_ref(&DEVICES[index]).cast_mut().cast()
}

pub(super) unsafe extern "C" fn device_count() -> usize {
    DEVICES.len()
}

pub(super) unsafe extern "C" fn device_info(
    index: usize,
    out: *mut infer_llama_device,
    error: *mut infer_llama_error,
) -> i32 {
    let outcome = match DEVICES.get(index) {
        Some(device) => {
            let device = infer_llama_device {
                handle: handle(index),
                name: device.name.as_ptr(),
                description: c"a faked device".as_ptr(),
                id: ptr::null(),
                backend: device.name.as_ptr(),
                type_: device.kind as i32,
                memory_free: 1 << 30,
                memory_total: 1 << 31,
            };
            // SAFETY: `out` is the caller's, valid for writing or NULL.
            unsafe { put(out, device) }
        }
        None => Err(Failure::argument(format!("device {index} of {}", DEVICES.len()))),
    };
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}

/// The device of each layer, by its place in the list: spread as llama.cpp spreads them.
///
/// # Safety
///
/// The devices and the split of the parameters are what `llama.h` asks for: a list that ends with NULL, and [`MAX_DEVICES`] numbers.
pub(super) unsafe fn place(params: &llama_model_params) -> Outcome<[usize; LAYERS]> {
    // SAFETY: as the caller promises.
    let mut chosen = unsafe { chosen(params.devices) }?;
    if params.split_mode == LLAMA_SPLIT_MODE_NONE && !chosen.is_empty() {
        let main = usize::try_from(params.main_gpu).ok().and_then(|main| chosen.get(main)).copied();
        chosen = vec![main.ok_or_else(|| Failure::failed("the model could not be loaded"))?];
    }
    // SAFETY: as the caller promises.
    let split = unsafe { split(params.tensor_split, chosen.len()) };
    let on_devices = match usize::try_from(params.n_gpu_layers) {
        _ if chosen.is_empty() => 0,
        Ok(layers) => layers.min(LAYERS),
        Err(_) => LAYERS,
    };
    let sum: f32 = split.iter().sum();
    Ok(std::array::from_fn(|layer| {
        let Some(nth) = (layer + on_devices).checked_sub(LAYERS) else { return 0 };
        let share = nth as f32 / on_devices as f32;
        let mut so_far = 0.0;
        let at = split.iter().position(|part| {
            so_far += part / sum;
            share < so_far
        });
        chosen[at.unwrap_or(chosen.len() - 1)]
    }))
}

/// # Safety
///
/// `list` is NULL or ends with NULL.
unsafe fn chosen(list: *mut ggml_backend_dev_t) -> Outcome<Vec<usize>> {
    if list.is_null() {
        return Ok((1..DEVICES.len()).collect());
    }
    let mut chosen = Vec::new();
    for i in 0.. {
        // SAFETY: no element before this one was NULL, which is the last.
        let place = unsafe { list.add(i) };
        // SAFETY: as above.
        let device = unsafe { place.read() };
        if device.is_null() {
            break;
        }
        let index = (0..DEVICES.len()).find(|index| handle(*index) == device);
        chosen.push(index.ok_or_else(|| Failure::argument("a device of nobody's"))?);
    }
    Ok(chosen)
}

/// # Safety
///
/// `split` is NULL or has [`MAX_DEVICES`] numbers.
unsafe fn split(split: *const f32, devices: usize) -> Vec<f32> {
    if split.is_null() {
        return vec![1.0; devices];
    }
    // SAFETY: as the caller promises; all of it is read, as llama.cpp does.
    let all = unsafe { std::slice::from_raw_parts(split, MAX_DEVICES) };
    all[..devices].to_vec()
}

pub(super) unsafe extern "C" fn model_layer_devices(
    pointer: *const llama_model,
    out: *mut ggml_backend_dev_t,
    cap: usize,
    n: *mut usize,
    error: *mut infer_llama_error,
) -> i32 {
    // SAFETY: the caller passes a model of this table.
    let outcome = unsafe { model(pointer) }.and_then(|model| {
        let layers = if model.vocab_only { &[][..] } else { &model.layers[..] };
        for (i, device) in layers.iter().enumerate().take(if out.is_null() { 0 } else { cap }) {
            // SAFETY: `out` has room for `cap` handles, and `i` is less.
            let place = unsafe { out.add(i) };
            // SAFETY: as above.
            unsafe { place.write(handle(*device)) };
        }
        // SAFETY: `n` is the caller's, valid for writing or NULL.
        unsafe { put(n, layers.len()) }
    });
    // SAFETY: `error` is the caller's, valid for writing or NULL.
    unsafe { finish(error, outcome) }
}
