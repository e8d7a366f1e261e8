//! What models can be computed on.

use crate::{
    Llama, ModelOptions, SplitMode, convert,
    error::BACKEND,
    raw::{self, Door, Handle},
};
use infer_core::{Error, ErrorKind, Result};

/// A device the library can compute on, at the moment it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// Short name, such as `CPU` or `Vulkan0`.
    pub name: String,
    /// What it is called by its maker.
    pub description: String,
    /// The part of the library that drives it.
    pub backend: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Memory that is free, in bytes; 0 where the library does not know.
    pub memory_free: u64,
    /// Memory in all, in bytes; 0 where the library does not know.
    pub memory_total: u64,
}

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The processor.
    Cpu,
    /// A graphics processor with memory of its own.
    Gpu,
    /// A graphics processor that shares the machine's memory.
    IntegratedGpu,
    /// Something that computes for the processor, such as a matrix library.
    Accelerator,
    /// Something else.
    Other,
}

/// What of a model a device has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placed {
    /// The device's name.
    pub device: String,
    /// How many of the repeating layers.
    pub layers: usize,
    /// Whether it has the output layer too. The input layer is always the processor's.
    pub output: bool,
}

impl Llama {
    /// The devices there are.
    ///
    /// Vulkan's are real ones: a driver in software is left out, unless the environment variable `GGML_VK_VISIBLE_DEVICES` names
    /// it, by its number (`0`, or `0,1`). Then it names all that are seen.
    ///
    /// # Errors
    /// [`Runtime`](infer_core::ErrorKind::Runtime) when the library cannot say.
    ///
    /// ```
    /// # #[cfg(feature = "link")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// for device in infer_llama::Llama::linked()?.devices()? {
    ///     println!("{}: {}, {} MB free", device.name, device.description, device.memory_free / 1_000_000);
    /// }
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "link"))]
    /// # fn main() {}
    /// ```
    pub fn devices(&self) -> Result<Vec<Device>> {
        let devices = self.door.devices()?.into_iter().map(|device| Device {
            name: device.name,
            description: device.description,
            backend: device.backend,
            kind: convert::device_kind(device.kind),
            memory_free: device.memory_free,
            memory_total: device.memory_total,
        });
        Ok(devices.collect())
    }
}

/// Where the options want the layers, for the library behind `door`.
pub(crate) fn placement(door: Door, options: &ModelOptions) -> Result<raw::Placement> {
    let mut placement = raw::Placement {
        gpu_layers: options.gpu_layers,
        split: convert::split(options.split_mode),
        ..raw::Placement::default()
    };
    if options.devices.is_none() && options.main_device.is_none() && options.tensor_split.is_none() {
        return Ok(placement);
    }
    let there = Devices(door.devices()?);
    if let Some(names) = &options.devices {
        placement.devices = Some(there.chosen(names, door.max_devices())?);
    }
    if let Some(name) = &options.main_device {
        if options.split_mode != SplitMode::None {
            return Err(Error::invalid_input(
                "main_device is for split_mode None: a model that is split has no such device",
            ));
        }
        let main = there.usable(name)?;
        let chosen = placement.devices.get_or_insert_with(|| vec![main]);
        let place = chosen.iter().position(|device| *device == main);
        placement.main = place.and_then(|place| u16::try_from(place).ok()).ok_or_else(|| {
            Error::invalid_input(format!(
                "main_device is {name}, which is not one of the devices: {:?}",
                options.devices
            ))
        })?;
    }
    if let Some(parts) = &options.tensor_split {
        let devices = placement.devices.as_ref().map(Vec::len);
        check_parts(parts, devices.filter(|_| options.devices.is_some()))?;
        placement.parts = Some(parts.clone());
    }
    Ok(placement)
}

/// `devices` is how many were named.
fn check_parts(parts: &[f32], devices: Option<usize>) -> Result<()> {
    let Some(devices) = devices else {
        return Err(Error::invalid_input("tensor_split has a number for each of the devices: name them, in its order"));
    };
    if parts.len() != devices {
        let message = format!("tensor_split has {} numbers, and {devices} devices are named", parts.len());
        return Err(Error::invalid_input(message));
    }
    if let Some(bad) = parts.iter().find(|part| !part.is_finite() || **part < 0.0) {
        return Err(Error::invalid_input(format!("tensor_split has {bad}; it takes numbers from 0 on")));
    }
    let sum: f32 = parts.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) {
        return Err(Error::invalid_input(format!("the numbers of tensor_split {parts:?} have the sum {sum}")));
    }
    Ok(())
}

/// What is to be done where GPUs were expected of a library that sees none.
const NO_GPU: &str = "; this library sees no GPU: `infer setup llama --variant vulkan` (or cuda, metal) builds one that may, which a program \
                      with that feature chooses by `--variant vulkan` (`cargo install --path infer-cli --features llama-vulkan`)";

/// What there is to choose from.
struct Devices(Vec<raw::Device>);

impl Devices {
    /// The named ones, without the processor; `most` is what a model can be spread over, the processor included.
    fn chosen(&self, names: &[String], most: usize) -> Result<Vec<Handle>> {
        if let [name] = names
            && self.named(name)?.is_processor()
        {
            return Ok(Vec::new());
        }
        let mut chosen = Vec::new();
        for name in names {
            let device = self.usable(name)?;
            if chosen.contains(&device) {
                return Err(Error::invalid_input(format!("the device {name} is named twice")));
            }
            chosen.push(device);
        }
        // What computes for the processor has a place among them too.
        let always = self.0.iter().filter(|device| device.is_processor() || device.is_accelerator()).count();
        if chosen.len() + always > most {
            let message =
                format!("{} devices are named, and {} is the most", chosen.len(), most.saturating_sub(always));
            return Err(Error::invalid_input(message));
        }
        Ok(chosen)
    }

    /// A device that layers can be placed on.
    fn usable(&self, name: &str) -> Result<Handle> {
        let device = self.named(name)?;
        if device.is_processor() {
            let message =
                format!("{name} is the processor, which has whatever no other device has: name it alone or not at all");
            return Err(Error::invalid_input(message));
        }
        if device.is_accelerator() {
            let message = format!(
                "{name} computes for the processor whenever it can, and holds no layers: it is not to be named"
            );
            return Err(Error::invalid_input(message));
        }
        Ok(device.handle)
    }

    fn named(&self, name: &str) -> Result<&raw::Device> {
        self.0.iter().find(|device| device.name == name).ok_or_else(|| {
            let names = self.0.iter().map(|device| device.name.as_str()).collect::<Vec<_>>().join(", ");
            let has_others = self.0.iter().any(|device| !device.is_processor() && !device.is_accelerator());
            let hint = if has_others { "" } else { NO_GPU };
            Error::new(ErrorKind::InvalidInput, format!("there is no device {name:?}; the devices are: {names}{hint}"))
                .with_backend(BACKEND)
        })
    }
}

impl raw::Device {
    fn is_processor(&self) -> bool {
        convert::device_kind(self.kind) == DeviceKind::Cpu
    }

    fn is_accelerator(&self) -> bool {
        convert::device_kind(self.kind) == DeviceKind::Accelerator
    }
}

/// How many of a model's repeating layers have their keys and values in the machine's own memory, and how many there are. A GPU has
/// memory of its own, where what does not fit is an error; an integrated one takes the machine's. A library that does not tell is
/// taken for one that has no devices.
pub(crate) fn in_machine(model: &raw::Model) -> Result<(u64, u64)> {
    let there = model.door().devices()?;
    let mut layers = match model.layer_devices() {
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok((1, 1)),
        layers => layers?,
    };
    // The output layer has none.
    layers.pop();
    let apart = |layer: &&Handle| {
        let device = there.iter().find(|device| device.handle == **layer);
        device.is_some_and(|device| convert::device_kind(device.kind) == DeviceKind::Gpu)
    };
    let apart = layers.iter().filter(apart).count();
    Ok(((layers.len() - apart) as u64, layers.len() as u64))
}

/// What of a model is where.
pub(crate) fn placed(model: &raw::Model) -> Result<Vec<Placed>> {
    let there = model.door().devices()?;
    let layers = model.layer_devices()?;
    let mut placed: Vec<Placed> = Vec::new();
    for (i, layer) in layers.iter().enumerate() {
        let name = there.iter().find(|device| device.handle == *layer).map_or("?", |device| &device.name);
        let at = placed.iter().position(|of| of.device == name).unwrap_or_else(|| {
            placed.push(Placed { device: name.to_owned(), layers: 0, output: false });
            placed.len() - 1
        });
        if i + 1 < layers.len() {
            placed[at].layers += 1;
        } else {
            placed[at].output = true;
        }
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use infer_sys::llama::fake;
    use std::ops::ControlFlow;

    #[test]
    fn keys_and_values_on_a_gpu_are_not_in_the_machines_memory() {
        let door = Door::start(fake::api()).unwrap();
        let shares = |options: &ModelOptions| {
            let params = convert::model_params(options, placement(door, options).unwrap(), true);
            let mut watch = |_| ControlFlow::Continue(());
            let source = raw::Source::Parts(&[c"faked.gguf".to_owned()]);
            in_machine(&raw::Model::load(door, &source, params, &mut raw::Progress::new(&mut watch)).unwrap()).unwrap()
        };
        // A faked model has one layer, and the output layer.
        assert_eq!(shares(&ModelOptions::new().with_devices(["CPU"])), (1, 1));
        assert_eq!(shares(&ModelOptions::new().with_devices(["FAKE1"])), (0, 1));
        assert_eq!(shares(&ModelOptions::new().with_devices(["FAKE1"]).with_gpu_layers(1)), (1, 1));
        assert_eq!(shares(&ModelOptions::new().with_vocab_only(true)), (0, 0));
    }
}
