//! llama.cpp's own programs, each in a process of its own: its server, for as long as it is measured, and its bench of batches.

use crate::{http::Client, memory};
use serde_json::Value;
use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Longer than a server takes to load a small model.
const PATIENCE: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(10);
/// Lines of its log that are shown where it fails.
const TAIL: usize = 20;

/// A `llama-server` that answers. Dropping it ends the process, also while a panic goes by.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// Starts one with `options` besides the model and a free port of this machine, and waits until it is ready. What it says
    /// goes to a file in `folder`.
    ///
    /// # Errors
    /// The program was not built (the message says how), or it ended or did not become ready, with the end of its log.
    pub fn start(model: &Path, options: &[String], folder: &Path) -> Result<Self, String> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let program = build_support::programs::program("llama-server").map_err(|error| error.to_string())?;
        let address = free_address()?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let log = folder.join(format!("llama-server-{}-{number}.log", std::process::id()));
        let out = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = out.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        let mut command = Command::new(&program);
        command.arg("--model").arg(model).args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
        command.args(["--offline", "--log-verbosity", "2"]).args(options);
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        let child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let mut server = Self { child, address, log };
        server.wait()?;
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new connection to it.
    ///
    /// # Panics
    /// When it does not answer any more.
    pub fn client(&self) -> Client {
        Client::connect(self.address).unwrap_or_else(|error| panic!("llama-server: {error}\n{}", self.said()))
    }

    /// The most bytes it has had in memory at once, where the system tells.
    pub fn peak(&self) -> Option<u64> {
        memory::peak_of(self.child.id()).ok()
    }

    fn wait(&mut self) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("llama-server ended with {status}\n{}", self.said()));
            }
            // Until it listens nobody answers, and until the model is there the answer is another.
            let healthy = Client::connect(self.address).and_then(|mut client| client.fetch("/health"));
            if healthy.is_ok_and(|(status, _)| status == 200) {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        Err(format!("llama-server was not ready after {} s\n{}", PATIENCE.as_secs(), self.said()))
    }

    fn said(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It holds nothing that must be written back; where it has ended already there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.log);
    }
}

/// A port that was free a moment ago.
fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener.map_err(|error| format!("no free port: {error}"))
}

/// What `llama-batched-bench` measured of one shape, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batched {
    /// All prompts.
    pub prefill: f64,
    /// All steps after them.
    pub decode: f64,
}

impl Batched {
    /// Runs it with `options`, which name one shape.
    ///
    /// # Errors
    /// The program was not built (the message says how), it failed, or it did not measure one shape.
    pub fn measure(model: &Path, options: &[String]) -> Result<Self, String> {
        let program = build_support::programs::program("llama-batched-bench").map_err(|error| error.to_string())?;
        let mut command = Command::new(&program);
        command.arg("--model").arg(model).args(["--output-format", "jsonl"]).args(options).stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("{}: {error}", program.display()))?;
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        match Self::read(&said)[..] {
            [measured] if output.status.success() => Ok(measured),
            _ => Err(format!("llama-batched-bench ended with {}\n{said}", output.status)),
        }
    }

    fn read(said: &str) -> Vec<Self> {
        let line = |line: &str| {
            let line: Value = serde_json::from_str(line.get(line.find('{')?..)?).ok()?;
            Some(Self { prefill: line["t_pp"].as_f64()?, decode: line["t_tg"].as_f64()? })
        };
        said.lines().filter_map(line).collect()
    }

    /// Both together.
    pub fn total(self) -> f64 {
        self.prefill + self.decode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_bench_of_batches_are_found() {
        let said =
            "llama_context: n_ctx = 1\n\n{\"n_kv_max\": 6144, \"t_pp\": 5.5, \"t_tg\": 6.25, \"t\": 11.75}\n{x}\n{}\n";
        let [measured] = Batched::read(said)[..] else { panic!("{:?}", Batched::read(said)) };
        assert_eq!((measured.prefill, measured.decode, measured.total()), (5.5, 6.25, 11.75));
    }
}
