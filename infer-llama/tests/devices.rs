//! Over the faked door, which has the processor and two devices: where layers go, and what cannot be asked for.

mod kit;

use infer_core::{Error, ErrorKind};
use infer_llama::{DeviceKind, Llama, Model, ModelOptions, Placed, SplitMode};
use infer_sys::llama::fake;
use kit::tiny;
use test_kit::Folder;

fn llama() -> Llama {
    Llama::from_api(fake::api()).unwrap()
}

fn open(options: &ModelOptions) -> Result<Model, Error> {
    let folder = Folder::new();
    Model::open_with(&llama(), folder.file("faked.gguf", &tiny::llama().bytes()), options)
}

/// "device layers", and "+" for the output layer.
fn placed(options: &ModelOptions) -> Vec<String> {
    let line = |placed: &Placed| format!("{} {}{}", placed.device, placed.layers, if placed.output { "+" } else { "" });
    open(options).unwrap().placement().unwrap().iter().map(line).collect()
}

fn options() -> ModelOptions {
    ModelOptions::new()
}

#[test]
fn the_devices_have_names_and_kinds() {
    let devices = llama().devices().unwrap();
    let seen: Vec<_> = devices.iter().map(|device| (device.name.as_str(), device.kind)).collect();
    assert_eq!(seen, [("CPU", DeviceKind::Cpu), ("FAKE0", DeviceKind::Gpu), ("FAKE1", DeviceKind::Gpu)]);
}

#[test]
fn layers_go_where_they_are_sent() {
    let both = || options().with_devices(["FAKE0", "FAKE1"]);
    for (options, want) in [
        (options(), &["FAKE0 1", "FAKE1 0+"][..]),
        (options().with_devices(["FAKE1", "FAKE0"]), &["FAKE1 1", "FAKE0 0+"]),
        (options().with_devices(["FAKE1"]), &["FAKE1 1+"]),
        (options().with_devices(["CPU"]), &["CPU 1+"]),
        (options().with_devices([""; 0]), &["CPU 1+"]),
        (options().with_gpu_layers(0), &["CPU 1+"]),
        (options().with_gpu_layers(1).with_devices(["FAKE1"]), &["CPU 1", "FAKE1 0+"]),
        (both().with_tensor_split([0.0, 1.0]), &["FAKE1 1+"]),
        (both().with_tensor_split([3.0, 0.5]), &["FAKE0 1+"]),
        (both().with_tensor_split([1.0, 1.0]), &["FAKE0 1", "FAKE1 0+"]),
        (options().with_split_mode(SplitMode::None), &["FAKE0 1+"]),
        (both().with_split_mode(SplitMode::None).with_main_device("FAKE1"), &["FAKE1 1+"]),
        (options().with_split_mode(SplitMode::None).with_main_device("FAKE1"), &["FAKE1 1+"]),
        (options().with_vocab_only(true), &[]),
    ] {
        assert_eq!(placed(&options), want, "{options:?}");
    }
}

#[test]
fn what_cannot_be_is_said_with_what_there_is() {
    let both = || options().with_devices(["FAKE0", "FAKE1"]);
    for (options, words) in [
        (options().with_devices(["Vulkan0"]), &["no device \"Vulkan0\"", "CPU, FAKE0, FAKE1"][..]),
        (options().with_devices(["fake0"]), &["no device \"fake0\""]),
        (options().with_devices([""]), &["no device \"\""]),
        (options().with_devices(["FAKE0", "CPU"]), &["CPU is the processor"]),
        (options().with_devices(["FAKE0", "FAKE0"]), &["FAKE0 is named twice"]),
        (options().with_main_device("FAKE0"), &["main_device is for split_mode None"]),
        (options().with_split_mode(SplitMode::None).with_main_device("FAKE7"), &["no device \"FAKE7\""]),
        (options().with_split_mode(SplitMode::None).with_main_device("CPU"), &["CPU is the processor"]),
        (
            options().with_devices(["FAKE0"]).with_split_mode(SplitMode::None).with_main_device("FAKE1"),
            &["FAKE1, which is not one of the devices", "FAKE0"],
        ),
        (options().with_tensor_split([1.0, 1.0]), &["name them"]),
        (options().with_split_mode(SplitMode::None).with_main_device("FAKE1").with_tensor_split([1.0]), &["name them"]),
        (both().with_tensor_split([1.0]), &["has 1 numbers, and 2 devices"]),
        (both().with_tensor_split([]), &["has 0 numbers"]),
        (both().with_tensor_split([1.0; 16]), &["has 16 numbers"]),
        (options().with_devices(["CPU"]).with_tensor_split([1.0]), &["has 1 numbers, and 0 devices"]),
        (both().with_tensor_split([1.0, -1.0]), &["has -1"]),
        (both().with_tensor_split([1.0, f32::NAN]), &["has NaN"]),
        (both().with_tensor_split([f32::INFINITY, 1.0]), &["has inf"]),
        (both().with_tensor_split([0.0, 0.0]), &["have the sum 0"]),
        (both().with_tensor_split([f32::MAX, f32::MAX]), &["have the sum inf"]),
    ] {
        let error = open(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{options:?}: {error}");
        for word in words {
            assert!(error.to_string().contains(word), "{word:?} is not in: {error}");
        }
    }
    // Nothing of it stays: the next one opens.
    assert_eq!(placed(&both()), ["FAKE0 1", "FAKE1 0+"]);
}
