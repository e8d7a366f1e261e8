//! How each subject is opened.

use build_support::fixtures;
use infer::{Encoder, EncoderOptions, KvLayout, Model, ModelInfo, Result, Session, SessionOptions, Tokenizer};
use infer_core::testing::{Script, ScriptedModel};
use infer_llama::Llama;
use infer_sys::llama::fake;
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

/// A model, and what is to be looked at when it is gone.
pub(crate) struct Opened {
    pub(crate) model: Box<dyn Model>,
    pub(crate) afterwards: Box<dyn FnOnce() + Send>,
}

/// What only llama.cpp's sessions have.
pub(crate) type OptionsOfLlama = fn(infer_llama::SessionOptions) -> infer_llama::SessionOptions;

pub(crate) const UNIFIED: OptionsOfLlama = |options| options.with_layout(KvLayout::Unified);
pub(crate) const SPLIT: OptionsOfLlama = |options| options.with_layout(KvLayout::Split);
pub(crate) const SCARCE: OptionsOfLlama = |options| options.with_layout(KvLayout::Unified).with_cells(256);
pub(crate) const DRAWING: OptionsOfLlama = |options| options.with_layout(KvLayout::Unified).with_device_sampling(true);

/// What only MLX's sessions have.
pub(crate) type OptionsOfMlx = fn(infer_mlx::SessionOptions) -> infer_mlx::SessionOptions;

pub(crate) const HOST: OptionsOfMlx = |options| options;
pub(crate) const DEVICE: OptionsOfMlx = |options| options.with_device_sampling(true);

pub(crate) fn scripted(script: Script) -> Opened {
    Opened { model: Box::new(ScriptedModel::new(script)), afterwards: Box::new(|| ()) }
}

/// llama.cpp's side of the door, made up: the header is that of a real file.
pub(crate) fn faked(script: fake::Script, name: &str, options: OptionsOfLlama) -> Opened {
    let control = script.install();
    let llama = Llama::from_api(fake::api()).unwrap();
    let model = infer_llama::Model::open(&llama, path(name)).unwrap_or_else(|error| panic!("{error}"));
    Opened {
        model: of_llama(model, options),
        afterwards: Box::new(move || {
            assert_eq!(control.live(), fake::Live::default(), "made and never freed");
            assert_eq!(control.breaches(), [""; 0], "the door's contract");
        }),
    }
}

pub(crate) fn linked(name: &'static str, options: OptionsOfLlama) -> Opened {
    llama(name, options, "linked", Llama::linked)
}

pub(crate) fn loaded(name: &'static str, options: OptionsOfLlama) -> Opened {
    llama(name, options, "loaded", || Llama::load(&infer_llama::LoadOptions::new()))
}

/// A model of a file in the cache. Its weights are opened once for all cases.
fn llama(name: &'static str, options: OptionsOfLlama, door: &'static str, library: fn() -> Result<Llama>) -> Opened {
    type Models = HashMap<(&'static str, &'static str), infer_llama::Model>;
    static MODELS: LazyLock<Mutex<Models>> = LazyLock::new(Mutex::default);
    let mut models = MODELS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let model = models.entry((name, door)).or_insert_with(|| {
        let model = library().and_then(|llama| infer_llama::Model::open(&llama, path(name)));
        model.unwrap_or_else(|error| panic!("{error}"))
    });
    Opened { model: of_llama(model.clone(), options), afterwards: Box::new(|| ()) }
}

/// A model in ONNX Runtime. Its graph is loaded once for all cases.
pub(crate) fn onnx(name: &'static str) -> Opened {
    static MODELS: LazyLock<Mutex<HashMap<&'static str, infer_onnx::Model>>> = LazyLock::new(Mutex::default);
    let mut models = MODELS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let model = models.entry(name).or_insert_with(|| {
        let onnx = infer_onnx::Onnx::load(&infer_onnx::LoadOptions::new());
        let model = onnx.and_then(|onnx| infer_onnx::Model::open(&onnx, path(name)));
        model.unwrap_or_else(|error| panic!("{error}"))
    });
    Opened { model: Box::new(model.clone()), afterwards: Box::new(|| ()) }
}

/// A model in MLX. It belongs to the thread that asks, and so is opened for each case.
pub(crate) fn mlx(name: &'static str, options: OptionsOfMlx) -> Opened {
    let mlx = infer_mlx::Mlx::load(&infer_mlx::LoadOptions::new());
    let model = mlx.and_then(|mlx| infer_mlx::Model::open(&mlx, path(name))).unwrap_or_else(|error| panic!("{error}"));
    let made = model.clone();
    let sessions: Sessions = Box::new(move |common| Ok(Box::new(made.session(&options(common.clone().into()))?)));
    Opened { model: Box::new(OwnSessions { model: Box::new(model), sessions }), afterwards: Box::new(|| ()) }
}

pub(crate) fn path(name: &str) -> std::path::PathBuf {
    fixtures::model(name).unwrap_or_else(|error| panic!("{error}"))
}

fn of_llama(model: infer_llama::Model, options: OptionsOfLlama) -> Box<dyn Model> {
    let made = model.clone();
    let sessions: Sessions = Box::new(move |common| Ok(Box::new(made.session(&options(common.clone().into()))?)));
    Box::new(OwnSessions { model: Box::new(model), sessions })
}

type Sessions = Box<dyn Fn(&SessionOptions) -> Result<Box<dyn Session>>>;

/// A model whose sessions are made with options that only its runtime has.
struct OwnSessions {
    model: Box<dyn Model>,
    sessions: Sessions,
}

impl Model for OwnSessions {
    fn info(&self) -> &Arc<ModelInfo> {
        self.model.info()
    }

    fn tokenizer(&self) -> Arc<dyn Tokenizer> {
        self.model.tokenizer()
    }

    fn session(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        (self.sessions)(options)
    }

    fn encoder(&self, options: &EncoderOptions) -> Result<Box<dyn Encoder>> {
        self.model.encoder(options)
    }
}
