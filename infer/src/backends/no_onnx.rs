//! In place of ONNX Runtime, where it is not compiled in.

use super::missing;
use crate::{Backend, Device, Inspection, Installed, Library, ModelSource};
use infer_core::{Model, Result};
use std::ops::ControlFlow;

pub(super) fn open(source: &ModelSource, _: &mut dyn FnMut(f32) -> ControlFlow<()>) -> Result<Box<dyn Model>> {
    Err(missing(Backend::Onnx, source))
}

pub(super) fn inspect(source: &ModelSource) -> Result<Inspection> {
    Err(missing(Backend::Onnx, source))
}

pub(super) fn devices(_: &Library) -> Result<Vec<Device>> {
    Ok(Vec::new())
}

pub(super) fn installed() -> Vec<Installed> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use infer_core::ErrorKind;

    #[test]
    fn a_model_of_a_backend_that_is_not_there_names_the_feature() {
        let folder = std::env::temp_dir().join(format!("infer-no-onnx-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("model.onnx");
        std::fs::write(&file, b"\x08\x0a\x12\x04test").unwrap();
        for path in [&folder, &file] {
            for error in [crate::open(path).err(), crate::inspect(path).err()] {
                let error = error.unwrap();
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                let text = error.to_string();
                assert!(text.contains("the feature `onnx`") && text.contains("infer-no-onnx"), "{text}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
