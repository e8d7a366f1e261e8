//! What all parts are measured with: the model, as many threads for all, and the server's side of a load.

use crate::prompts;
use infer::{Model, Token, Tokenizer};
use infer_benches::{http::Client, server::Server};
use serde_json::Value;
use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, Barrier},
    thread,
    time::{Duration, Instant},
};

pub(crate) struct Setting {
    pub(crate) path: PathBuf,
    /// Threads of a pass, on every side.
    pub(crate) threads: usize,
    /// For its tokenizer; sessions are made of it where a part compares with loops by hand.
    pub(crate) model: Box<dyn Model>,
}

impl Setting {
    /// A quick run has one thread a side: the machine may have other things to do, and threads that wait for one another then wait
    /// long.
    pub(crate) fn new(quick: bool) -> Self {
        let threads = if quick { 1 } else { 2 };
        let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
        let model = infer::open(&path).unwrap_or_else(|error| panic!("{error}"));
        Self { path, threads, model }
    }

    pub(crate) fn tokenizer(&self) -> Arc<dyn Tokenizer> {
        self.model.tokenizer()
    }

    /// A server that has just been started, with as many threads as every side and these options besides.
    pub(crate) fn server(&self, options: &[String]) -> Server {
        let threads = self.threads.to_string();
        let common = ["--threads", &threads, "--threads-batch", &threads, "--no-slots"].map(str::to_owned);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Server::start(&self.path, &[&common, options].concat(), folder).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The options with which a server of so many slots and cells is fastest at this load: each way of laying out the cells is tried.
    pub(crate) fn best_server(&self, slots: usize, cells: usize, asks: &[Ask]) -> Best {
        let (slots, cells) = (slots.to_string(), cells.to_string());
        let options = ["--parallel", &slots, "--ctx-size", &cells];
        let layouts = [["--no-kv-unified"], ["--kv-unified"]].map(|layout| [&options[..], &layout].concat());
        Best::of(&layouts.each_ref().map(Vec::as_slice), |options| together(&self.server(options), asks))
    }
}

/// The options that a program is fastest with, of some that were tried once each.
pub(crate) struct Best(Vec<String>);

impl Best {
    pub(crate) fn of(candidates: &[&[&str]], mut time: impl FnMut(&[String]) -> Duration) -> Self {
        let candidates =
            candidates.iter().map(|options| options.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        Self(candidates.min_by_key(|options| time(options)).expect("there are candidates"))
    }

    pub(crate) fn options(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for Best {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// One text that is asked for.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) prompt: Vec<Token>,
    /// Tokens to be drawn, greedily, wherever the model would end the text.
    pub(crate) count: usize,
}

impl Ask {
    /// As the server wants it. Of all its samplers only the one that takes the most probable token is asked for.
    fn json(&self, stream: bool) -> String {
        format!(
            r#"{{"prompt":{},"n_predict":{},"ignore_eos":true,"samplers":["top_k"],"top_k":1,"stream":{stream},"return_tokens":true}}"#,
            prompts::json(&self.prompt),
            self.count
        )
    }

    /// Asks the server, and returns the tokens it drew.
    pub(crate) fn of(&self, client: &mut Client) -> Vec<Token> {
        let body =
            client.post("/completion", &self.json(false)).unwrap_or_else(|error| panic!("llama-server: {error}"));
        let tokens = tokens_in(&body);
        assert_eq!(tokens.len(), self.count, "llama-server: {}", String::from_utf8_lossy(&body));
        tokens
    }

    /// Asks the server, and returns how long it took to the first token, and the tokens it drew.
    ///
    /// Its stream leaves out the ids of tokens that end within a character. So it is asked twice: for the first token, and then for all of
    /// them, which it draws from the prompt it has kept.
    pub(crate) fn streamed(&self, server: &Server) -> (Duration, Vec<Token>) {
        // It closes those that nobody uses for a while.
        let mut client = server.client();
        let begun = Instant::now();
        let mut first = None;
        let ask = Self { count: 1, ..self.clone() };
        let posted = client.post_streamed("/completion", &ask.json(true), |_| {
            first.get_or_insert_with(|| begun.elapsed());
        });
        posted.unwrap_or_else(|error| panic!("llama-server: {error}"));
        (first.expect("a token came"), self.of(&mut server.client()))
    }
}

/// How long the server takes for all of these at once.
pub(crate) fn together(server: &Server, asks: &[Ask]) -> Duration {
    // All connections are open before the clock runs.
    let clients: Vec<Client> = asks.iter().map(|_| server.client()).collect();
    let start = Barrier::new(asks.len() + 1);
    thread::scope(|scope| {
        for (ask, mut client) in asks.iter().zip(clients) {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                ask.of(&mut client);
            });
        }
        start.wait();
        Instant::now()
    })
    .elapsed()
}

fn tokens_in(body: &[u8]) -> Vec<Token> {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let ids = answer["tokens"].as_array().into_iter().flatten();
    ids.filter_map(|id| Some(Token(u32::try_from(id.as_u64()?).ok()?))).collect()
}
