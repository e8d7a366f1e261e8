//! Models that are read: what it takes of memory, who may end it, and files that are not what they were.

use infer_core::ErrorKind;
use infer_mlx::{LoadOptions, Mlx, Model, ModelOptions, Package};
use std::{fs, ops::ControlFlow, sync::Mutex};
use test_kit::Folder;

/// One test at a time: memory is counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn mlx() -> Mlx {
    Mlx::load(&LoadOptions::new()).unwrap()
}

fn fixture(name: &str) -> std::path::PathBuf {
    build_support::fixtures::model(name).unwrap_or_else(|error| panic!("{error}"))
}

/// A number that the system keeps of this process, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Weights are read into the memory that MLX computes with, and lie nowhere else.
#[test]
#[cfg(target_os = "linux")]
fn a_load_takes_little_more_memory_than_the_weights() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (mlx, path) = (mlx(), fixture("smollm2-mlx"));
    let bytes = Package::read(&path).unwrap().info().bytes;
    let (resident, active) = (status("VmRSS"), mlx.memory().unwrap().active);
    mlx.reset_peak().unwrap();
    let model = Model::open(&mlx, path).unwrap();
    let memory = mlx.memory().unwrap();
    let most = bytes + bytes / 5;
    assert!(memory.peak - active <= most, "{} of arrays at a time, for {bytes}", memory.peak - active);
    let grown = status("VmHWM") - resident;
    assert!(grown <= most, "{grown} resident at a time, for {bytes}");
    drop(model);
    assert_eq!(mlx.memory().unwrap().active, active);
    assert_eq!(mlx.live().owned, 0);
}

#[test]
fn whoever_watches_a_load_is_told_how_far_it_is_and_can_end_it() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mlx = mlx();
    let path = fixture("tiny-mlx-llama-sharded");
    let mut shares = Vec::new();
    let mut watch = |share| {
        shares.push(share);
        ControlFlow::Continue(())
    };
    let model = Model::open_watched(&mlx, &path, &ModelOptions::new(), &mut watch).unwrap();
    assert!(shares.is_sorted() && shares.first() == Some(&0.0) && shares.last() == Some(&1.0), "{shares:?}");
    assert!(shares.len() > 10);
    drop(model);
    let active = mlx.memory().unwrap().active;
    for last in [0, 1, shares.len() - 1] {
        let mut told = 0;
        let mut watch = |_| {
            told += 1;
            if told > last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let error = Model::open_watched(&mlx, &path, &ModelOptions::new(), &mut watch).unwrap_err();
        assert_eq!((error.kind(), told), (ErrorKind::Cancelled, last + 1));
        assert_eq!((mlx.memory().unwrap().active, mlx.live().owned), (active, 0), "what was read is gone");
    }
}

#[test]
fn files_that_change_under_a_load_are_noticed() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mlx = mlx();
    let folder = Folder::copy_of(fixture("tiny-mlx-llama"));
    let file = folder.path().join("model.safetensors");
    let whole = fs::read(&file).unwrap();
    for after in [0, 3] {
        let mut told = 0;
        let mut watch = |_| {
            if told == after {
                // As another program would do it that writes a new model in place.
                fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(whole.len() as u64 / 2).unwrap();
            }
            told += 1;
            ControlFlow::Continue(())
        };
        let error = Model::open_watched(&mlx, folder.path(), &ModelOptions::new(), &mut watch).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidModel, "{error}");
        assert!(
            error.to_string().contains("model.safetensors has changed while the model was being loaded"),
            "{error}"
        );
        fs::write(&file, &whole).unwrap();
    }
    Model::open(&mlx, folder.path()).unwrap();
}
