//! Execution providers: what computes a graph's nodes, by name and in order of preference.

use crate::{
    GraphOptions, Onnx,
    error::{error, invalid_input},
    raw,
};
use infer_core::{Error, ErrorKind, Result};
use ort::session::builder::SessionBuilder;

/// The provider that every library has, and that takes what no other one took.
pub(crate) const CPU: &str = "CPUExecutionProvider";

/// Short names, and the runtime's own. Anything else is taken as it is: libraries may have providers that are not listed here.
const NAMES: &[(&str, &str)] = &[
    ("acl", "ACLExecutionProvider"),
    ("armnn", "ArmNNExecutionProvider"),
    ("azure", "AzureExecutionProvider"),
    ("cann", "CANNExecutionProvider"),
    ("coreml", "CoreMLExecutionProvider"),
    ("cpu", CPU),
    ("cuda", "CUDAExecutionProvider"),
    ("directml", "DmlExecutionProvider"),
    ("dml", "DmlExecutionProvider"),
    ("dnnl", "DnnlExecutionProvider"),
    ("js", "JsExecutionProvider"),
    ("migraphx", "MIGraphXExecutionProvider"),
    ("nnapi", "NnapiExecutionProvider"),
    ("nvtensorrtrtx", "NvTensorRTRTXExecutionProvider"),
    ("onednn", "DnnlExecutionProvider"),
    ("openvino", "OpenVINOExecutionProvider"),
    ("qnn", "QNNExecutionProvider"),
    ("rknpu", "RknpuExecutionProvider"),
    ("rocm", "ROCMExecutionProvider"),
    ("snpe", "SNPEExecutionProvider"),
    ("tensorrt", "TensorrtExecutionProvider"),
    ("vitisai", "VitisAIExecutionProvider"),
    ("vsinpu", "VSINPUExecutionProvider"),
    ("webgpu", "WebGpuExecutionProvider"),
    ("webnn", "WebNNExecutionProvider"),
    ("xnnpack", "XnnpackExecutionProvider"),
];

/// An execution provider, and what it is told.
///
/// Names are the short ones people use (`"cuda"`, `"tensorrt"`, `"coreml"`) or the runtime's own (`"CUDAExecutionProvider"`), in any
/// case. Options are the runtime's, as texts; what there is, its documentation of each provider says. Providers stand in order of
/// preference: each takes the nodes it can compute of those that are left, and the CPU takes the rest.
///
/// ```
/// use infer_onnx::Provider;
///
/// let cuda = Provider::new("cuda").with_option("device_id", "0");
/// assert_eq!(cuda.name(), "CUDAExecutionProvider");
/// assert_eq!(cuda, Provider::new("CUDAExecutionProvider").with_option("device_id", "0"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    name: String,
    options: Vec<(String, String)>,
}

impl Provider {
    /// The provider of this name. Whether the library has it is looked at when a graph is opened.
    #[must_use]
    pub fn new(name: impl AsRef<str>) -> Self {
        Self { name: canonical(name.as_ref()), options: Vec::new() }
    }

    /// The CPU, which is there without being named. Named, it takes what it can before those that follow. Its option `use_arena` (`"0"`
    /// or `"1"`) says whether it keeps memory for later runs.
    #[must_use]
    pub fn cpu() -> Self {
        Self::new("cpu")
    }

    /// NVIDIA's GPUs. Usual options: `device_id`, `gpu_mem_limit`, `enable_cuda_graph`.
    #[must_use]
    pub fn cuda() -> Self {
        Self::new("cuda")
    }

    /// NVIDIA's TensorRT, which compiles whole parts of a graph. Usual options: `device_id`, `trt_fp16_enable`,
    /// `trt_engine_cache_enable`.
    #[must_use]
    pub fn tensorrt() -> Self {
        Self::new("tensorrt")
    }

    /// AMD's GPUs. Usual options: `device_id`, `migraphx_fp16_enable`.
    #[must_use]
    pub fn migraphx() -> Self {
        Self::new("migraphx")
    }

    /// Intel's CPUs, GPUs and NPUs. Usual options: `device_type`, `num_of_threads`, `cache_dir`.
    #[must_use]
    pub fn openvino() -> Self {
        Self::new("openvino")
    }

    /// Apple's Core ML. Usual options: `ModelFormat`, `MLComputeUnits`.
    #[must_use]
    pub fn coreml() -> Self {
        Self::new("coreml")
    }

    /// Qualcomm's NPUs. Usual options: `backend_path`, `htp_performance_mode`.
    #[must_use]
    pub fn qnn() -> Self {
        Self::new("qnn")
    }

    /// XNNPACK's kernels on the CPU. Usual options: `intra_op_num_threads`.
    #[must_use]
    pub fn xnnpack() -> Self {
        Self::new("xnnpack")
    }

    /// Any GPU that WebGPU reaches. Usual options: `preferredLayout`, `deviceId`.
    #[must_use]
    pub fn webgpu() -> Self {
        Self::new("webgpu")
    }

    /// Tells the provider something. Of two values for a key the later one counts.
    #[must_use]
    pub fn with_option(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        match self.options.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.options.push((key, value)),
        }
        self
    }

    /// Its name as the runtime has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is told, in the order it was said.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        self.options.iter().map(|(key, value)| (&**key, &**value))
    }
}

/// Case, dashes and underscores aside; a name that is not known stays as it is.
fn canonical(name: &str) -> String {
    let plain: String = name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect::<String>().to_lowercase();
    let plain = plain.strip_suffix("executionprovider").unwrap_or(&plain);
    let known = NAMES.iter().find(|(short, _)| *short == plain);
    known.map_or_else(|| name.to_owned(), |(_, canonical)| (*canonical).to_owned())
}

/// What one provider does for a graph: [`Graph::providers`](crate::Graph::providers).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderUse {
    name: String,
    nodes: usize,
    refusal: Option<String>,
}

impl ProviderUse {
    /// The provider's name as the runtime has it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many of the graph's nodes it was given.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Why it is not used at all, where it was asked for with leave to do without.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

/// Loads a graph with the providers that its options name; the CPU is always the last one, if it is not named.
pub(crate) fn load(
    onnx: &Onnx,
    options: &GraphOptions,
    mut load: impl FnMut(SessionBuilder) -> Result<raw::Session>,
) -> Result<(raw::Session, Vec<ProviderUse>)> {
    let environment = onnx.environment();
    let available = raw::available(environment)?;
    let usable = |provider: &Provider| {
        if !available.contains(&provider.name) {
            return Err(not_there(&provider.name, &available));
        }
        let added = raw::append(&mut options.session(onnx)?, environment, provider);
        added.map_err(|cause| does_not_work(&provider.name, &available, cause))
    };
    let open = |providers: &[Provider]| {
        let mut session = options.session(onnx)?;
        let cpu = Provider::cpu();
        // Named, so that the runtime chooses nothing by itself.
        let rest = (!providers.iter().any(|provider| provider.name == CPU)).then_some(&cpu);
        for provider in providers.iter().chain(rest) {
            raw::append(&mut session, environment, provider)?;
        }
        load(session)
    };
    #[cfg(target_os = "linux")]
    let before = options.large_pages.then(raw::Before::look).flatten();
    let (session, refused) = open_with(&options.providers, options.fallback, usable, open)?;
    #[cfg(target_os = "linux")]
    if let Some(before) = before {
        let bytes = before.enlarge();
        tracing::debug!("{bytes} bytes of what was loaded are in large pages");
    }
    for (name, why) in &refused {
        tracing::warn!("{name} is not used: {why}");
    }
    let uses = uses(&options.providers, &refused, &session.assigned()?);
    Ok((session, uses))
}

/// A provider that was asked for and cannot be used, and why.
type Refusal = (String, Error);

/// Opens something with these providers. With leave to fall back, what cannot be used is left out: by `usable` where a provider says
/// so itself, and else the most preferred one, as long as `open` fails with one. What is told to a provider wrongly stays an error.
fn open_with<T>(
    asked: &[Provider],
    may_fall_back: bool,
    mut usable: impl FnMut(&Provider) -> Result<()>,
    mut open: impl FnMut(&[Provider]) -> Result<T>,
) -> Result<(T, Vec<Refusal>)> {
    let mut refused = Vec::new();
    let mut left = Vec::with_capacity(asked.len());
    for (at, provider) in asked.iter().enumerate() {
        if asked[..at].iter().any(|other| other.name == provider.name) {
            return Err(invalid_input(format!("the execution provider {} is named twice", provider.name)));
        }
        match usable(provider) {
            Ok(()) => left.push(provider.clone()),
            Err(error) if may_fall_back && error.kind() != ErrorKind::InvalidInput => {
                refused.push((provider.name.clone(), error));
            }
            Err(error) => return Err(error),
        }
    }
    loop {
        let error = match open(&left) {
            Ok(opened) => return Ok((opened, refused)),
            Err(error) => error,
        };
        // The model's fault, or the CPU's: without the others it would be no better.
        let first = left.iter().position(|provider| provider.name != CPU).filter(|_| may_fall_back);
        let Some(first) = first else { return Err(error) };
        refused.push((left.remove(first).name, error));
    }
}

/// What came of each provider that was asked for, in that order, then of those that were given nodes without being asked.
fn uses(asked: &[Provider], refused: &[Refusal], assigned: &[(String, usize)]) -> Vec<ProviderUse> {
    let nodes = |name: &str| assigned.iter().find(|(other, _)| other == name).map_or(0, |(_, nodes)| *nodes);
    let mut uses: Vec<ProviderUse> = asked
        .iter()
        .map(|provider| ProviderUse {
            name: provider.name.clone(),
            nodes: nodes(&provider.name),
            refusal: refused.iter().find(|(name, _)| *name == provider.name).map(|(_, error)| error.to_string()),
        })
        .collect();
    for (name, nodes) in assigned {
        if !uses.iter().any(|known| known.name == *name) {
            uses.push(ProviderUse { name: name.clone(), nodes: *nodes, refusal: None });
        }
    }
    uses
}

/// The error of a provider that the library does not have.
fn not_there(name: &str, available: &[String]) -> Error {
    let message = format!(
        "the execution provider {name} is not in this library of ONNX Runtime, which has {}; use one of these, load a library that has \
         it, or allow falling back",
        available.join(", ")
    );
    error(ErrorKind::Unsupported, message)
}

/// The error of a provider that the library has and that does not work here.
fn does_not_work(name: &str, available: &[String], cause: Error) -> Error {
    let message = format!(
        "the execution provider {name} cannot be used: {cause}; this library of ONNX Runtime has {}",
        available.join(", ")
    );
    let kind = match cause.kind() {
        // What it was told is wrong.
        ErrorKind::InvalidInput => ErrorKind::InvalidInput,
        _ => ErrorKind::Unsupported,
    };
    error(kind, message).with_source(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(providers: &[Provider]) -> Vec<&str> {
        providers.iter().map(Provider::name).collect()
    }

    fn no(what: &str) -> Error {
        Error::unsupported(what)
    }

    #[test]
    fn a_name_may_be_short_or_the_runtimes_own() {
        for name in ["tensorrt", "TensorRT", "tensor_rt", "TensorrtExecutionProvider", "TENSORRT-execution-provider"] {
            assert_eq!(Provider::new(name).name(), "TensorrtExecutionProvider", "{name}");
        }
        assert_eq!(Provider::new("MyExecutionProvider").name(), "MyExecutionProvider");
        for (short, name) in NAMES {
            assert_eq!((Provider::new(short).name(), Provider::new(name).name()), (*name, *name));
        }
    }

    #[test]
    fn the_later_value_of_an_option_counts() {
        let provider = Provider::cuda().with_option("a", "1").with_option("b", "2").with_option("a", "3");
        assert_eq!(provider.options().collect::<Vec<_>>(), [("a", "3"), ("b", "2")]);
    }

    #[test]
    fn what_cannot_be_used_is_an_error() {
        let usable = |provider: &Provider| if provider.name() == CPU { Ok(()) } else { Err(no("not there")) };
        let error = open_with(&[Provider::cuda()], false, usable, |_| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "not there");
        let error = open_with(&[Provider::cuda()], false, |_| Ok(()), |_| Err::<(), _>(no("no device"))).unwrap_err();
        assert_eq!(error.to_string(), "no device");
        let twice = [Provider::cpu(), Provider::new("CPU")];
        let error = open_with(&twice, true, usable, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn with_leave_the_others_are_used() {
        let asked = [Provider::tensorrt(), Provider::cuda(), Provider::coreml(), Provider::cpu()];
        let usable = |provider: &Provider| {
            if provider.name() == "CoreMLExecutionProvider" { Err(no("not there")) } else { Ok(()) }
        };
        let mut tried = Vec::new();
        let (opened, refused) = open_with(&asked, true, usable, |left| {
            tried.push(left.to_vec());
            if left[0].name() == "TensorrtExecutionProvider" { Err(no("no device")) } else { Ok(left.to_vec()) }
        })
        .unwrap();
        assert_eq!(names(&tried[0]), ["TensorrtExecutionProvider", "CUDAExecutionProvider", CPU]);
        assert_eq!(names(&opened), ["CUDAExecutionProvider", CPU]);
        let uses = uses(&asked, &refused, &[("CUDAExecutionProvider".into(), 3), (CPU.into(), 1)]);
        let seen: Vec<_> = uses.iter().map(|one| (one.name(), one.nodes(), one.refusal())).collect();
        let expected = [
            ("TensorrtExecutionProvider", 0, Some("no device")),
            ("CUDAExecutionProvider", 3, None),
            ("CoreMLExecutionProvider", 0, Some("not there")),
            (CPU, 1, None),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_the_cpu_refuses_stays_an_error() {
        let mut tries = 0;
        let error = open_with(
            &[Provider::cuda()],
            true,
            |_| Ok(()),
            |left| {
                tries += 1;
                Err::<(), _>(no(if left.is_empty() { "bad model" } else { "no device" }))
            },
        )
        .unwrap_err();
        assert_eq!((error.to_string(), tries), ("bad model".to_owned(), 2));
        let wrong = |_: &Provider| Err(invalid_input("unknown option"));
        assert!(open_with(&[Provider::cuda()], true, wrong, |_| Ok(())).is_err(), "the caller's mistake");
    }

    #[test]
    fn those_that_were_not_asked_for_follow() {
        let uses = uses(&[Provider::cuda()], &[], &[(CPU.into(), 2)]);
        assert_eq!(
            uses.iter().map(|one| (one.name(), one.nodes())).collect::<Vec<_>>(),
            [("CUDAExecutionProvider", 0), (CPU, 2)]
        );
    }
}
