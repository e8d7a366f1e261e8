//! How weights come into memory, and how much of it a model and a session take, over the linked door.

mod kit;

use infer_core::{Batch, Error, ErrorKind, KvLayout, OpenOptions, Session as _, Token, Want};
use infer_llama::{KvType, Llama, LoadMode, Model, ModelOptions, SessionOptions, estimate};
use kit::tiny;
use std::{
    ops::ControlFlow,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
};
use test_kit::{Folder, child};

fn llama() -> Llama {
    Llama::linked().unwrap()
}

fn fixture(name: &str) -> PathBuf {
    build_support::fixtures::model(name).unwrap()
}

fn logits(model: &Model) -> Vec<f32> {
    let mut session = model.session(&SessionOptions::new().with_context(64).with_threads(1)).unwrap();
    let seq = session.open(&OpenOptions::default()).unwrap();
    let mut batch = Batch::new();
    batch.push(&seq, &[1, 2, 3].map(Token), Want::Logits);
    session.decode(&batch).unwrap();
    session.outputs().logits(0).unwrap().to_vec()
}

/// The reason that an error has for its source.
fn reason(error: &Error) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

/// What is refused where it cannot be done, and what comes of it where it can.
#[cfg(target_os = "linux")]
#[test]
fn past_the_cache_or_not_at_all() {
    use std::os::unix::fs::OpenOptionsExt;

    const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200_000 } else { 0o40_000 };
    let direct = ModelOptions::new().with_load_mode(LoadMode::Direct);
    for path in [fixture("tiny-llama"), fixture("smollm2")] {
        let possible = std::fs::OpenOptions::new().read(true).custom_flags(O_DIRECT).open(&path).is_ok();
        match Model::open_with(&llama(), &path, &direct) {
            Ok(model) => {
                assert!(possible, "{} was not read so", path.display());
                let copied = ModelOptions::new().with_load_mode(LoadMode::Copied);
                assert_eq!(logits(&model), logits(&Model::open_with(&llama(), &path, &copied).unwrap()));
            }
            Err(error) => {
                assert!(!possible, "{}: {error:?}", path.display());
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(reason(&error).contains("file system"), "{error:?}");
            }
        }
    }
}

/// Not a case by itself: what the child runs, under a limit.
#[test]
fn open_locked() {
    let Some(path) = child::file() else { return };
    let options = ModelOptions::new().with_load_mode(LoadMode::Locked);
    match Model::open_with(&llama(), &path, &options) {
        Ok(_model) => {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let locked = status.lines().find(|line| line.starts_with("VmLck")).unwrap_or("VmLck: unknown");
            child::answer(&locked.replace('\t', " "));
        }
        Err(error) => child::answer(&format!("{:?}: {error}: {}", error.kind(), reason(&error))),
    }
}

/// Either the weights are locked, or it is an error: never a model that only looks so.
#[cfg(target_os = "linux")]
#[test]
fn locked_or_an_error() {
    let path = fixture("smollm2");
    let bytes = std::fs::metadata(&path).unwrap().len();
    let said = child::open_in_child("open_locked", &path).unwrap();
    let locked = |said: &str| {
        let kilobytes = said.strip_prefix("VmLck:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
        Some(kilobytes * 1024)
    };
    match locked(&said) {
        Some(locked) => assert!(locked > bytes / 2, "{locked} of {bytes} bytes are locked"),
        None => assert!(said.starts_with("OutOfMemory: ") && said.contains("ulimit -l"), "{said}"),
    }
}

#[test]
fn a_load_ends_when_its_watcher_says_so() {
    let path = fixture("smollm2");
    let options = ModelOptions::new();
    for last in [false, true] {
        let mut seen = Vec::new();
        let mut watch = |done: f32| {
            seen.push(done);
            if last && done < 1.0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let error = Model::open_watched(&llama(), &path, &options, &mut watch).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error:?}");
        if last {
            assert!(seen.is_sorted() && seen.len() > 2 && seen.last() == Some(&1.0), "{seen:?}");
        } else {
            assert_eq!(seen, [0.0], "it is not asked again");
        }
    }
    let mut calls = 0;
    let mut panics = |done: f32| {
        calls += 1;
        if done > 0.3 { panic!("from the closure") } else { ControlFlow::Continue(()) }
    };
    let raised = panic::catch_unwind(AssertUnwindSafe(|| Model::open_watched(&llama(), &path, &options, &mut panics)));
    assert_eq!(raised.unwrap_err().downcast_ref(), Some(&"from the closure"));
    assert!(calls > 1);
    logits(&Model::open(&llama(), &path).unwrap());
}

#[test]
fn a_poisoned_tensor_is_named() {
    let folder = Folder::new();
    let mut gguf = tiny::llama();
    let name = "blk.1.ffn_up.weight";
    let tensor = gguf.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap();
    tensor.data[40..44].copy_from_slice(&f32::NAN.to_le_bytes());
    let path = folder.file("poisoned.gguf", &gguf.bytes());
    for mode in [LoadMode::Mapped, LoadMode::Copied] {
        let options = ModelOptions::new().with_load_mode(mode);
        let error = Model::open_with(&llama(), &path, &options.clone().with_check_tensors(true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModel);
        for words in ["poisoned.gguf", name] {
            assert!(error.to_string().contains(words), "{mode:?}: {error}");
        }
        assert!(!error.to_string().contains("blk.0"), "{error}");
        Model::open_with(&llama(), &path, &options).expect("nobody asked");
    }
}

/// To the byte, but for weights: of a mapped file all pages from the first to the last are counted.
#[test]
fn an_estimate_is_what_is_measured() {
    let session = || SessionOptions::new().with_context(256).with_threads(1);
    let near = |a: u64, b: u64| a.abs_diff(b) <= b / 50 + (64 << 10);
    for name in ["smollm2", "tiny-llama", "tiny-gemma3", "tiny-mamba", "tiny-lfm2"] {
        for options in [
            session(),
            session().with_sequences(3).with_micro_batch(32),
            session().with_sequences(3).with_layout(KvLayout::Unified).with_kv_type(KvType::F32),
        ] {
            let path = fixture(name);
            let model = ModelOptions::new();
            let estimated = estimate(&llama(), &path, &model, &options).unwrap();
            let session = Model::open_with(&llama(), &path, &model).unwrap().session(&options).unwrap();
            let measured = session.memory().unwrap();
            let both = format!("{name}: {estimated:?}, measured {measured:?}");
            assert_eq!(estimated.context(), measured.context(), "{both}");
            assert!(near(estimated.model(), measured.model()), "{both}");
            assert_eq!(estimated.compute(), measured.compute(), "{both}");
            assert_eq!(measured.total(), measured.model() + measured.context() + measured.compute());
            assert!(measured.model() > 0 && measured.context() > 0 && measured.compute() > 0, "{both}");
        }
    }
    let short = session().with_context(64);
    let error = estimate(&llama(), fixture("tiny-bert"), &ModelOptions::new(), &short).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "an encoder has no session: {error}");
}

/// The library's lists of cells are made also where no cell is.
#[test]
fn more_cells_than_can_be_listed_are_an_error() {
    for (name, context) in [("tiny-llama", 1 << 30), ("tiny-gemma3", i32::MAX as usize - 255)] {
        let options = SessionOptions::new().with_context(context).with_threads(1);
        // 52 bytes each.
        if infer_llama::available_memory().is_none_or(|available| available.bytes > 52 * context as u64) {
            continue;
        }
        let error = estimate(&llama(), fixture(name), &ModelOptions::new(), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("lists of"), "{error}");
    }
    // Of a recurrent model there are as many as sequences.
    let options = SessionOptions::new().with_context(1 << 30).with_threads(1);
    estimate(&llama(), fixture("tiny-mamba"), &ModelOptions::new(), &options).unwrap();
}
