//! In place of llama.cpp, where it is not compiled in.

use super::missing;
use crate::{Backend, Device, Inspection, Installed, Library, ModelSource};
use infer_core::{Model, Result};
use std::ops::ControlFlow;

pub(super) fn open(source: &ModelSource, _: &mut dyn FnMut(f32) -> ControlFlow<()>) -> Result<Box<dyn Model>> {
    Err(missing(Backend::Llama, source))
}

pub(super) fn inspect(source: &ModelSource) -> Result<Inspection> {
    Err(missing(Backend::Llama, source))
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
    fn a_file_of_a_backend_that_is_not_there_names_the_features() {
        let path = std::env::temp_dir().join(format!("infer-no-llama-{}.gguf", std::process::id()));
        std::fs::write(&path, b"GGUF\x03\0\0\0").unwrap();
        let error = crate::open(&path).err().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(text.contains("`llama` or `llama-load`") && text.contains("no-llama"), "{text}");
    }
}
