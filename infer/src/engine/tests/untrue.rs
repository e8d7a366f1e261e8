//! Sessions, encoders and models that do not do what they say.

use super::*;
use infer_core::{
    Batch, Encoder, EncoderOptions, Interrupt, OpenOptions, Outputs, Sampling, Sequence, Session, Usage, Vectors,
};

/// A session that brings nothing if it is said so, or an encoder that does not.
struct Mute<T>(T, bool);

impl Session for Mute<Box<dyn Session>> {
    fn model(&self) -> &Arc<ModelInfo> {
        self.0.model()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn limits(&self) -> &Limits {
        self.0.limits()
    }

    fn usage(&self) -> Usage {
        self.0.usage()
    }

    fn interrupt(&self) -> Interrupt {
        self.0.interrupt()
    }

    fn open(&mut self, options: &OpenOptions) -> Result<Sequence> {
        assert_eq!(options.adapter, None, "it knows no adapters");
        self.0.open(options)
    }

    fn fork(&mut self, parent: &Sequence, len: usize) -> Result<Sequence> {
        self.0.fork(parent, len)
    }

    fn truncate(&mut self, seq: &Sequence, len: usize) -> Result<()> {
        self.0.truncate(seq, len)
    }

    fn sample_with(&mut self, seq: &Sequence, sampling: &Sampling, prompt: &[Token]) -> Result<()> {
        self.0.sample_with(seq, sampling, prompt)
    }

    fn decode(&mut self, batch: &Batch) -> Result<()> {
        self.0.decode(batch)
    }

    fn outputs(&self) -> Outputs<'_> {
        if self.1 { Outputs::default() } else { self.0.outputs() }
    }
}

impl Encoder for Mute<Box<dyn Encoder>> {
    fn model(&self) -> &Arc<ModelInfo> {
        self.0.model()
    }

    fn info(&self) -> &EncoderInfo {
        self.0.info()
    }

    fn interrupt(&self) -> Interrupt {
        self.0.interrupt()
    }

    fn encode(&mut self, texts: &[&[Token]]) -> Result<()> {
        self.0.encode(texts)
    }

    fn vectors(&self) -> Vectors<'_> {
        Vectors::default()
    }
}

/// Its sessions and encoders are mute. Where they are not, its encoder cannot be made without a panic.
struct Untrue {
    model: ScriptedModel,
    is_mute: bool,
}

impl Model for Untrue {
    fn info(&self) -> &Arc<ModelInfo> {
        self.model.info()
    }

    fn tokenizer(&self) -> Arc<dyn Tokenizer> {
        self.model.tokenizer()
    }

    fn session(&self, options: &SessionOptions) -> Result<Box<dyn Session>> {
        Ok(Box::new(Mute(self.model.session(options)?, self.is_mute)))
    }

    fn encoder(&self, options: &EncoderOptions) -> Result<Box<dyn Encoder>> {
        assert!(self.is_mute, "this encoder panics");
        Ok(Box::new(Mute(self.model.encoder(options)?, true)))
    }
}

fn untrue(script: Script, is_mute: bool) -> Engine {
    let model = Untrue { model: ScriptedModel::new(script), is_mute };
    Engine::builder_with(move || Ok(Box::new(model))).build().unwrap()
}

#[test]
fn what_is_not_brought_is_an_error_of_that_request() {
    let engine = untrue(Script::new(), true);
    for _ in 0..2 {
        for (error, says) in [
            (engine.generate(ask("a prompt")).complete().map(drop), "drew no token"),
            (engine.score("a prompt").wait().map(drop), "0 scores for 9 tokens"),
            (engine.embed(["one", "two"]).wait().map(drop), "no vector for text 0"),
        ] {
            let error = error.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Runtime);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

#[test]
fn a_panic_where_a_request_is_taken_says_itself_to_everybody() {
    for (words, is_embed) in [("it knows no adapters", false), ("this encoder panics", true)] {
        let hold = Hold::default();
        let engine = untrue(hold.on(Script::new()), false);
        let running = engine.generate(endless());
        hold.wait();
        let taken = thread::scope(|scope| {
            let taken = scope.spawn(|| match is_embed {
                true => kind(engine.embed(["a text"]).wait()),
                false => kind(engine.generate(ask("a prompt").with_adapter("any")).complete()),
            });
            until("it waits", || engine.stats().waiting == 1);
            hold.open();
            taken.join().unwrap()
        });
        assert_eq!(taken, ErrorKind::Panicked, "{words}");
        let error = running.complete().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Panicked);
        assert!(error.to_string().contains(words), "{error}");
        until("the worker has ended", || kind(engine.score("more").wait()) == ErrorKind::Closed);
        let error = engine.score("more").wait().unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        engine.drain();
    }
}
