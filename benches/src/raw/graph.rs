//! A graph as a C program runs it: straight on ONNX Runtime's table, which the process has loaded already.

use infer_sys::onnxruntime::{
    ONNXTensorElementDataType, OrtAllocatorType, OrtApi, OrtEnv, OrtIoBinding, OrtLoggingLevel, OrtMemType,
    OrtMemoryInfo, OrtRunOptions, OrtSession, OrtSessionOptions, OrtStatusPtr, OrtValue,
};
use std::{
    ffi::{CStr, CString},
    path::Path,
    ptr, slice,
};

/// A session of a graph with one input and one output of f32.
pub struct CGraph {
    api: &'static OrtApi,
    env: *mut OrtEnv,
    options: *mut OrtSessionOptions,
    session: *mut OrtSession,
    run_options: *mut OrtRunOptions,
    memory: *mut OrtMemoryInfo,
    binding: *mut OrtIoBinding,
    names: [CString; 2],
    source: *mut OrtValue,
    target: *mut OrtValue,
    shape: Vec<i64>,
    /// What the two tensors lie in.
    input: Vec<f32>,
    output: Vec<f32>,
}

impl CGraph {
    /// Opens the model, whose output is of the input's shape, and binds both to memory that stays.
    ///
    /// # Panics
    /// When ONNX Runtime is not loaded, or says no.
    pub fn open(path: &Path, threads: i32, names: [&str; 2], shape: &[i64], mut input: Vec<f32>) -> Self {
        let api = ort::api();
        let mut env = ptr::null_mut();
        // SAFETY: the log's name is a C string, `env` a valid place; there is one environment a process, which this counts once more.
        let status =
            unsafe { (api.CreateEnv)(OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING, c"bench".as_ptr(), &raw mut env) };
        check(api, status);
        let mut options = ptr::null_mut();
        // SAFETY: `options` is a valid place.
        check(api, unsafe { (api.CreateSessionOptions)(&raw mut options) });
        // SAFETY: the options were just made.
        check(api, unsafe { (api.SetIntraOpNumThreads)(options, threads) });
        let path = CString::new(path.to_str().expect("a path of the cache")).expect("paths have no NUL");
        let mut session = ptr::null_mut();
        // SAFETY: environment and options live, the path is a C string, `session` a valid place.
        check(api, unsafe { (api.CreateSession)(env, path.as_ptr(), options, &raw mut session) });
        let mut run_options = ptr::null_mut();
        // SAFETY: `run_options` is a valid place.
        check(api, unsafe { (api.CreateRunOptions)(&raw mut run_options) });
        let mut memory = ptr::null_mut();
        let (kind, place) = (OrtAllocatorType::OrtArenaAllocator, OrtMemType::OrtMemTypeDefault);
        // SAFETY: `memory` is a valid place.
        check(api, unsafe { (api.CreateCpuMemoryInfo)(kind, place, &raw mut memory) });
        let mut output = vec![0.0; input.len()];
        let [source, target] = [&mut input, &mut output].map(|numbers| tensor(api, memory, shape, numbers));
        let names = names.map(|name| CString::new(name).expect("names have no NUL"));
        let mut binding = ptr::null_mut();
        // SAFETY: the session lives, `binding` is a valid place.
        check(api, unsafe { (api.CreateIoBinding)(session, &raw mut binding) });
        // SAFETY: binding, name and tensor live; the name is copied, the tensor counted.
        check(api, unsafe { (api.BindInput)(binding, names[0].as_ptr(), source) });
        // SAFETY: the same.
        check(api, unsafe { (api.BindOutput)(binding, names[1].as_ptr(), target) });
        let shape = shape.to_vec();
        Self { api, env, options, session, run_options, memory, binding, names, source, target, shape, input, output }
    }

    /// Runs it with the input that was made once, looks at the output where the runtime has put it, and lets go of it.
    ///
    /// # Panics
    /// When the run fails.
    pub fn run(&mut self, look: impl FnOnce(&[f32])) {
        self.run_with(self.source, look);
    }

    /// The same with an input that is made for this run, over the numbers where they are: for who is given other ones each time.
    ///
    /// # Panics
    /// When the run fails.
    pub fn run_anew(&mut self, look: impl FnOnce(&[f32])) {
        let source = tensor(self.api, self.memory, &self.shape, &mut self.input);
        self.run_with(source, look);
        // SAFETY: it was made above, and the run is over.
        unsafe { (self.api.ReleaseValue)(source) };
    }

    fn run_with(&mut self, source: *mut OrtValue, look: impl FnOnce(&[f32])) {
        let mut output = ptr::null_mut();
        let (names, source) = ([self.names[0].as_ptr(), self.names[1].as_ptr()], source.cast_const());
        // SAFETY: session, options, names and tensors live; there is one of each; `output` is NULL, for the runtime to make one.
        let status = unsafe {
            (self.api.Run)(
                self.session,
                self.run_options,
                &raw const names[0],
                &raw const source,
                1,
                &raw const names[1],
                1,
                &raw mut output,
            )
        };
        check(self.api, status);
        let mut data = ptr::null_mut();
        // SAFETY: the output was just made; `data` is a valid place.
        check(self.api, unsafe { (self.api.GetTensorMutableData)(output, &raw mut data) });
        // SAFETY: the model's output has the input's shape, and is f32; it lives until it is released below.
        look(unsafe { slice::from_raw_parts(data.cast::<f32>(), self.output.len()) });
        // SAFETY: it is ours, and not looked at any more.
        unsafe { (self.api.ReleaseValue)(output) };
    }

    /// Runs it from and into the memory that is bound.
    ///
    /// # Panics
    /// When the run fails.
    pub fn run_bound(&mut self) -> &[f32] {
        // SAFETY: session, options and binding live, and what is bound does.
        check(self.api, unsafe { (self.api.RunWithBinding)(self.session, self.run_options, self.binding) });
        &self.output
    }
}

impl Drop for CGraph {
    fn drop(&mut self) {
        // SAFETY: all were made by the calls that belong to these, and are released once, what is used by others after them.
        unsafe { (self.api.ReleaseIoBinding)(self.binding) };
        for value in [self.source, self.target] {
            // SAFETY: as above.
            unsafe { (self.api.ReleaseValue)(value) };
        }
        // SAFETY: as above.
        unsafe { (self.api.ReleaseMemoryInfo)(self.memory) };
        // SAFETY: as above.
        unsafe { (self.api.ReleaseRunOptions)(self.run_options) };
        // SAFETY: as above.
        unsafe { (self.api.ReleaseSession)(self.session) };
        // SAFETY: as above.
        unsafe { (self.api.ReleaseSessionOptions)(self.options) };
        // SAFETY: as above; whoever loaded the library keeps the environment.
        unsafe { (self.api.ReleaseEnv)(self.env) };
    }
}

/// A tensor over these numbers, which stay where they are: moving a vector does not move what is in it.
fn tensor(api: &OrtApi, memory: *const OrtMemoryInfo, shape: &[i64], numbers: &mut [f32]) -> *mut OrtValue {
    let mut value = ptr::null_mut();
    // SAFETY: the memory info lives; the numbers live as long as the session that is being made; `value` is a valid place.
    let status = unsafe {
        (api.CreateTensorWithDataAsOrtValue)(
            memory,
            numbers.as_mut_ptr().cast(),
            size_of_val(numbers),
            shape.as_ptr(),
            shape.len(),
            ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
            &raw mut value,
        )
    };
    check(api, status);
    value
}

fn check(api: &OrtApi, status: OrtStatusPtr) {
    if status.0.is_null() {
        return;
    }
    // SAFETY: a status that is not NULL has a message, a C string.
    let message = unsafe { (api.GetErrorMessage)(status.0) };
    // SAFETY: the same.
    panic!("ONNX Runtime: {}", unsafe { CStr::from_ptr(message) }.to_string_lossy());
}
