//! Execution providers in the runtime's table: which there are, how each is added to a session's options, and what a session gave them.
//!
//! `ort`'s own builders log what goes wrong and go on; here each status is looked at.

use super::Api;
use crate::{
    error::{error, invalid_input},
    providers::{CPU, Provider},
};
use infer_core::{ErrorKind, Result};
use infer_sys::onnxruntime::{OrtEnv, OrtEpAssignedSubgraph, OrtEpDevice, OrtSession, OrtSessionOptions, OrtStatusPtr};
use ort::{AsPointer, environment::Environment, session::builder::SessionBuilder};
use std::{
    ffi::{CStr, CString, c_char, c_int},
    ptr::{self, NonNull},
    slice,
};

/// The entry of a session's configuration without which it does not remember who got which node.
pub(super) const RECORD: (&CStr, &CStr) = (c"session.record_ep_graph_assignment_info", c"1");

/// The providers that were built into the library, most preferred first.
pub(crate) fn available(environment: &Environment) -> Result<Vec<String>> {
    let api = Api::start(environment)?;
    let (mut names, mut count): (*mut *mut c_char, c_int) = (ptr::null_mut(), 0);
    // SAFETY: both pointers are to variables of this function, which the call fills.
    let status = unsafe { (api.table().GetAvailableProviders)(&mut names, &mut count) };
    api.check("ask for the execution providers", status)?;
    let length = usize::try_from(count).unwrap_or_default();
    // SAFETY: the call succeeded, so `names` is an array of `count` pointers, which nothing changes until it is released below.
    let texts = unsafe { pointers(names.cast_const().cast(), length) };
    // SAFETY: each entry of that array is a text that ends with a NUL and lives as long as the array.
    let available = texts.iter().map(|&text| unsafe { copied(text) }).collect();
    // SAFETY: the array is what `GetAvailableProviders` gave, with its length, and is used no more.
    let status = unsafe { (api.table().ReleaseAvailableProviders)(names, count) };
    api.check("release the names of the execution providers", status)?;
    Ok(available)
}

/// Adds a provider to those that a session will have, behind those that it has.
pub(crate) fn append(options: &mut SessionBuilder, environment: &Environment, provider: &Provider) -> Result<()> {
    let api = Api::start(environment)?;
    // SAFETY: the options are borrowed exclusively, the environment for as long as the call.
    unsafe { append_to(api, options.ptr_mut(), environment.ptr(), provider) }
}

/// # Safety
/// Both pointers are to live objects of the runtime, and nothing else uses the options meanwhile.
unsafe fn append_to(api: Api, options: *mut OrtSessionOptions, env: *const OrtEnv, provider: &Provider) -> Result<()> {
    let table = api.table();
    let texts = Texts::of(provider)?;
    match provider.name() {
        // SAFETY: the caller vouches for both pointers.
        CPU => unsafe { append_cpu(api, options, env, provider) },
        "CUDAExecutionProvider" => {
            let calls = Calls {
                create: table.CreateCUDAProviderOptions,
                update: table.UpdateCUDAProviderOptions,
                append: table.SessionOptionsAppendExecutionProvider_CUDA_V2,
                release: table.ReleaseCUDAProviderOptions,
            };
            // SAFETY: the caller vouches for the options; the four calls belong together.
            unsafe { calls.append(api, options, &texts) }
        }
        "TensorrtExecutionProvider" => {
            let calls = Calls {
                create: table.CreateTensorRTProviderOptions,
                update: table.UpdateTensorRTProviderOptions,
                append: table.SessionOptionsAppendExecutionProvider_TensorRT_V2,
                release: table.ReleaseTensorRTProviderOptions,
            };
            // SAFETY: the caller vouches for the options; the four calls belong together.
            unsafe { calls.append(api, options, &texts) }
        }
        "CANNExecutionProvider" => {
            let calls = Calls {
                create: table.CreateCANNProviderOptions,
                update: table.UpdateCANNProviderOptions,
                append: table.SessionOptionsAppendExecutionProvider_CANN,
                release: table.ReleaseCANNProviderOptions,
            };
            // SAFETY: the caller vouches for the options; the four calls belong together.
            unsafe { calls.append(api, options, &texts) }
        }
        "DnnlExecutionProvider" => {
            let calls = Calls {
                create: table.CreateDnnlProviderOptions,
                update: table.UpdateDnnlProviderOptions,
                append: table.SessionOptionsAppendExecutionProvider_Dnnl,
                release: table.ReleaseDnnlProviderOptions,
            };
            // SAFETY: the caller vouches for the options; the four calls belong together.
            unsafe { calls.append(api, options, &texts) }
        }
        name => {
            let name = text(name)?;
            let (keys, values, count) = texts.pointers();
            // SAFETY: the caller vouches for the options; the name and the arrays of texts live until the call is over, and are copied.
            let status =
                unsafe { (table.SessionOptionsAppendExecutionProvider)(options, name.as_ptr(), keys, values, count) };
            api.check("add an execution provider", status)
        }
    }
}

/// Adds the CPU, which the table only has as a device.
///
/// # Safety
/// As [`append_to`].
unsafe fn append_cpu(api: Api, options: *mut OrtSessionOptions, env: *const OrtEnv, provider: &Provider) -> Result<()> {
    let table = api.table();
    for (key, value) in provider.options() {
        let call = match (key, value) {
            ("use_arena", "1") => table.EnableCpuMemArena,
            ("use_arena", "0") => table.DisableCpuMemArena,
            _ => {
                let message =
                    format!("{CPU} has no option {key} that can be {value:?}; it has use_arena, \"0\" or \"1\"");
                return Err(invalid_input(message));
            }
        };
        // SAFETY: the caller vouches for the options.
        api.check("set the CPU's arena", unsafe { call(options) })?;
    }
    let (mut devices, mut count): (*const *const OrtEpDevice, usize) = (ptr::null(), 0);
    // SAFETY: the caller vouches for the environment; the other two are variables of this function, which the call fills.
    let status = unsafe { (table.GetEpDevices)(env, &mut devices, &mut count) };
    api.check("ask for the devices", status)?;
    // SAFETY: the call succeeded, so this is an array of `count` pointers, which the environment keeps.
    let devices = unsafe { pointers(devices, count) };
    let name = |device: *const OrtEpDevice| {
        // SAFETY: the device is one of the environment's, which lives.
        let name = unsafe { (table.EpDevice_EpName)(device) };
        // SAFETY: it is the device's own text, which ends with a NUL.
        unsafe { copied(name) }
    };
    let Some(device) = devices.iter().find(|&&device| name(device) == CPU) else {
        return Err(error(ErrorKind::Unsupported, "the library names no device for the CPU"));
    };
    // SAFETY: the caller vouches for options and environment; one device is handed in, of that environment, and no options.
    let status = unsafe {
        (table.SessionOptionsAppendExecutionProvider_V2)(
            options,
            env.cast_mut(),
            device,
            1,
            ptr::null(),
            ptr::null(),
            0,
        )
    };
    api.check("add the CPU", status)
}

/// What a provider's options of its own are made, filled, added and released with.
struct Calls<O> {
    create: unsafe extern "system" fn(*mut *mut O) -> OrtStatusPtr,
    update: unsafe extern "system" fn(*mut O, *const *const c_char, *const *const c_char, usize) -> OrtStatusPtr,
    append: unsafe extern "system" fn(*mut OrtSessionOptions, *const O) -> OrtStatusPtr,
    release: unsafe extern "system" fn(*mut O),
}

impl<O> Calls<O> {
    /// # Safety
    /// `options` is a live object that nothing else uses meanwhile, and the four calls are of one provider.
    unsafe fn append(&self, api: Api, options: *mut OrtSessionOptions, texts: &Texts) -> Result<()> {
        let mut made = ptr::null_mut();
        // SAFETY: the pointer is to a variable of this function, which the call fills.
        let status = unsafe { (self.create)(&mut made) };
        api.check("make an execution provider's options", status)?;
        let made = Made { options: made, release: self.release };
        let (keys, values, count) = texts.pointers();
        // SAFETY: `made` was just created by the call that belongs to this one; the texts live until the call is over, and are copied.
        let status = unsafe { (self.update)(made.options, keys, values, count) };
        api.check("set an execution provider's options", status)?;
        // SAFETY: the caller vouches for `options`; `made` lives, and is copied.
        let status = unsafe { (self.append)(options, made.options) };
        api.check("add an execution provider", status)
    }
}

/// A provider's options, released when dropped.
struct Made<O> {
    options: *mut O,
    release: unsafe extern "system" fn(*mut O),
}

impl<O> Drop for Made<O> {
    fn drop(&mut self) {
        // SAFETY: the options came from the `create` that belongs to this `release`, and are released once.
        unsafe { (self.release)(self.options) };
    }
}

/// Options as two arrays of C texts.
struct Texts {
    keys: Vec<*const c_char>,
    values: Vec<*const c_char>,
    _texts: Vec<CString>,
}

impl Texts {
    fn of(provider: &Provider) -> Result<Self> {
        let (mut keys, mut values, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (key, value) in provider.options() {
            for (one, pointers) in [(key, &mut keys), (value, &mut values)] {
                let one = text(one)?;
                // Where a text lies does not change when its owner moves.
                pointers.push(one.as_ptr());
                texts.push(one);
            }
        }
        Ok(Self { keys, values, _texts: texts })
    }

    fn pointers(&self) -> (*const *const c_char, *const *const c_char, usize) {
        (self.keys.as_ptr(), self.values.as_ptr(), self.keys.len())
    }
}

fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| invalid_input(format!("{text:?} has a NUL, which no name or option may have")))
}

/// Who was given how many nodes, in the order they were first given one.
///
/// # Safety
/// The session lives, and was made with [`RECORD`] among its options.
pub(super) unsafe fn assigned(api: Api, session: *const OrtSession) -> Result<Vec<(String, usize)>> {
    let table = api.table();
    let (mut parts, mut count): (*const *const OrtEpAssignedSubgraph, usize) = (ptr::null(), 0);
    // SAFETY: the caller vouches for the session; the other two are variables of this function, which the call fills.
    let status = unsafe { (table.Session_GetEpGraphAssignmentInfo)(session, &mut parts, &mut count) };
    api.check("ask who runs which node", status)?;
    // SAFETY: the call succeeded, so this is an array of `count` pointers, which the session keeps.
    let parts = unsafe { pointers(parts, count) };
    let mut assigned: Vec<(String, usize)> = Vec::new();
    for &part in parts {
        let (mut name, mut nodes, mut count) = (ptr::null(), ptr::null(), 0);
        // SAFETY: the part is the session's, which lives; the name is a variable of this function.
        api.check("ask for a part's provider", unsafe { (table.EpAssignedSubgraph_GetEpName)(part, &mut name) })?;
        // SAFETY: the same; what is filled are variables of this function.
        api.check("ask for a part's nodes", unsafe {
            (table.EpAssignedSubgraph_GetNodes)(part, &mut nodes, &mut count)
        })?;
        // SAFETY: the call succeeded, so it is the part's own text, which ends with a NUL.
        let name = unsafe { copied(name) };
        match assigned.iter_mut().find(|(known, _)| *known == name) {
            Some((_, nodes)) => *nodes += count,
            None => assigned.push((name, count)),
        }
    }
    Ok(assigned)
}

/// An array that C gave, with nothing where it gave a null pointer.
///
/// # Safety
/// What is not null is an array of so many pointers, which nothing changes for `'a`.
unsafe fn pointers<'a, T>(array: *const *const T, count: usize) -> &'a [*const T] {
    match NonNull::new(array.cast_mut()) {
        // SAFETY: the caller vouches for array and length.
        Some(array) => unsafe { slice::from_raw_parts(array.as_ptr(), count) },
        None => &[],
    }
}

/// A C text as one of ours.
///
/// # Safety
/// What is not null ends with a NUL.
unsafe fn copied(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: it is not null, and the caller vouches for the NUL.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
