//! A library in C's terms around this one, as an interpreter loads it: for `tests/library.rs`, which has Python load it.

use infer_onnx::{Graph, GraphOptions, LoadOptions, Onnx, TensorView};
use std::{
    ffi::{CStr, c_char, c_int},
    panic, thread,
};

/// Loads the model in a file, runs it once, and goes on running it on a thread of its own where `for_ever` is not 0. 0 when all went well.
///
/// # Safety
/// `path` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn embedded_compute(path: *const c_char, for_ever: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy().into_owned();
    let done = panic::catch_unwind(|| {
        let onnx = Onnx::load(&LoadOptions::new())?;
        let mut graph = Graph::open(&onnx, path, &GraphOptions::new().with_threads(2))?;
        run(&mut graph)?;
        if for_ever != 0 {
            thread::spawn(move || while run(&mut graph).is_ok() {});
        }
        Ok::<(), infer_core::Error>(())
    });
    match done {
        Ok(Ok(())) => 0,
        Ok(Err(error)) => {
            eprintln!("{error}");
            1
        }
        Err(_) => 2,
    }
}

fn run(graph: &mut Graph) -> infer_core::Result<()> {
    graph.run([("x0", TensorView::new(&[64, 64], &[1.0_f32; 64 * 64])?)])
}
