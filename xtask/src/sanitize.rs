//! `cargo xtask sanitize`: the tests that reach native code, or share something between threads, with the sanitizers of the compilers
//! watching.
//!
//! *Address*: Rust and native code alike. llama.cpp and the door are built by gcc with `-fsanitize=address` into the native cache, under
//! a key of their own, since flags are part of it; the run-time is the one that comes with the nightly compiler, whose interface gcc's
//! instrumentation shares. Leaks are looked for too, with the suppressions in `leaks.supp`.
//!
//! *Thread*: Rust alone, over the faked door. The standard library that comes with the compiler is not instrumented, so that what is
//! ordered by its waiting paths looks unordered. Hence a program of its own (`infer-llama/tests/shared.rs`) that starts and joins plain
//! threads, which the run-time follows, and orders the rest by atomics; `threads.supp` says what is left out, and why.

use std::process::Command;
use std::time::Instant;

use build_support::Host;
use clap::ValueEnum;

use crate::Result;
use crate::nightly;
use crate::setup::{self, Thing};
use crate::workspace::{root, run as run_command, target};

/// Run tests under AddressSanitizer with LeakSanitizer, and under ThreadSanitizer. The first time, llama.cpp is built for it: minutes.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only these; all of them by default.
    #[arg(value_enum)]
    kinds: Vec<Kind>,
    #[command(flatten)]
    without: nightly::Without,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Memory: what is used after it was freed, outside of what was asked for, or never freed.
    Address,
    /// What two threads touch without an order between them.
    Thread,
}

/// Tests that are run at once.
struct Set {
    tests: &'static [&'static str],
    /// For the test programs.
    arguments: &'static [&'static str],
}

const ADDRESS: &[Set] = &[
    Set { tests: &["fake", "wall", "layout"], arguments: &[] },
    Set {
        tests: &[
            "faked",
            "shared",
            "real",
            "sequences",
            "states",
            "adapters",
            "encoder",
            "device_sampling",
            "panics",
            "random",
        ],
        // A process for each damaged file. And long texts of the real model, whose draws touch no memory that those of the tiny one do not.
        arguments: &["--skip", "files_that_were_damaged", "--skip", "tokens_are_the_hosts"],
    },
    Set {
        tests: &["bad_files"],
        // Two hundred processes each, and each of those takes as long to begin as its case does. And words without end, whose stack is
        // made for functions that are not instrumented: their frames are several times as large.
        arguments: &["--skip", "two_hundred", "--skip", "fifty", "--skip", "words_without_end"],
    },
    Set {
        tests: &["bad_input"],
        // Their point is an address space without room, or with little, and the sanitizer's own shadow takes terabytes of it.
        arguments: &["--skip", "threads_that_cannot_be_started", "--skip", "tokenizers::"],
    },
    // The loaded library is built without it.
    Set { tests: &["conformance"], arguments: &["tiny_", "--skip", "loaded"] },
];

const THREAD: &[Set] = &[Set { tests: &["shared"], arguments: &[] }];

/// What must be reported, by test and report: a sanitizer that sees nothing proves nothing.
const CANARIES: &[(&str, &str)] = &[
    ("a_leak_of_native_memory", "LeakSanitizer: detected memory leaks"),
    ("native_code_reads_outside_of_what_rust_allocated", "AddressSanitizer: heap-buffer-overflow"),
    ("rust_reads_what_native_code_has_freed", "AddressSanitizer: heap-use-after-free"),
];

/// For gcc. Frames so that a report has the whole stack, lines so that it can be read.
const NATIVE_FLAGS: &str = "-fsanitize=address -fno-omit-frame-pointer -g1";

pub(crate) fn run(host: &Host, arguments: &Arguments) -> Result {
    if !nightly::present(arguments.without)? {
        return Ok(());
    }
    let kinds = if arguments.kinds.is_empty() { &[Kind::Address, Kind::Thread][..] } else { &arguments.kinds };
    if kinds.contains(&Kind::Address) {
        setup::ensure(host, &[Thing::Smollm2, Thing::Source])?;
    }
    let mut failed = Vec::new();
    for kind in kinds {
        kind.sees()?;
        for set in kind.sets() {
            let begin = Instant::now();
            let name = format!("{}: {}", kind.name(), set.tests.join(", "));
            match run_command(&mut kind.command(set)) {
                Ok(()) => eprintln!("== {name}: good, {:.0} s", begin.elapsed().as_secs_f64()),
                Err(error) => {
                    eprintln!("== {name}: {error}");
                    failed.push(name);
                }
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("not good: {}", failed.join("; ")).into()) }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Thread => "thread",
        }
    }

    /// Where the tests are. All of them are named each time: what they share would otherwise be compiled for each by itself, with just
    /// what that one asks of it.
    fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Address => &["infer-sys", "infer-llama", "infer-tests"],
            Self::Thread => &["infer-llama"],
        }
    }

    fn features(self) -> &'static str {
        match self {
            Self::Address => "infer-sys/llama-link,infer-llama/link",
            Self::Thread => "",
        }
    }

    fn sets(self) -> &'static [Set] {
        match self {
            Self::Address => ADDRESS,
            Self::Thread => THREAD,
        }
    }

    /// That what is wrong is seen.
    fn sees(self) -> Result {
        let (set, canaries) = match self {
            Self::Address => (Set { tests: &["canary"], arguments: &["--exact"] }, CANARIES),
            Self::Thread => {
                (Set { tests: &["shared"], arguments: &[] }, &[("a race", "ThreadSanitizer: data race")][..])
            }
        };
        for (name, report) in canaries {
            let output = self.command(&set).arg(name).env("INFER_CANARY", "1").output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            if output.status.success() || !said.contains(report) {
                return Err(
                    format!("{}: {name} was not reported, so nothing else would be:\n{said}", self.name()).into()
                );
            }
        }
        Ok(())
    }

    fn command(self, set: &Set) -> Command {
        let mut test = nightly::cargo(["test", "--quiet", "--target", nightly::TARGET, "--features", self.features()]);
        test.args(self.packages().iter().flat_map(|name| ["--package", name]));
        test.args(set.tests.iter().flat_map(|name| ["--test", name]));
        test.arg("--target-dir").arg(target().join(format!("sanitize-{}", self.name())));
        test.env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
        let suppressions = |file: &str| format!("suppressions={}", root().join("xtask/sanitize").join(file).display());
        // Each crate is instrumented; only the standard library is not, and its interface is the same with and without.
        let flags = |sanitizer: &str| {
            format!("-Zsanitizer={sanitizer} -Cunsafe-allow-abi-mismatch=sanitizer -Cforce-frame-pointers")
        };
        match self {
            Self::Address => {
                test.env("RUSTFLAGS", flags("address")).env("CFLAGS", NATIVE_FLAGS).env("CXXFLAGS", NATIVE_FLAGS);
                test.env("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1");
                test.env("LSAN_OPTIONS", format!("{}:print_suppressions=0", suppressions("leaks.supp")));
            }
            Self::Thread => {
                test.env("RUSTFLAGS", flags("thread"));
                test.env("TSAN_OPTIONS", format!("halt_on_error=0:{}", suppressions("threads.supp")));
            }
        }
        test.arg("--").args(set.arguments);
        test
    }
}
