//! The library: loaded once, whoever asks and how often; and a process that uses it ends well at any moment.
//!
//! Each case is a process of its own: what is tested is what a process has once.

#![cfg(unix)]

use build_support::onnxruntime;
use infer_onnx::{Graph, GraphOptions, LoadOptions, Onnx, TensorView};
use std::{
    fs,
    io::Write as _,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{self, Command},
    sync::{
        Arc, Barrier, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};
use test_kit::Listener;

/// Set for a child: which case it is to run.
const CASE: &str = "INFER_ONNX_TEST_CASE";

/// Runs the test `name` of this program again for each case, in a process of its own, which runs `body`. What each process said by [`say`].
fn cases(name: &str, cases: &[&str], body: impl FnOnce(&str)) -> Vec<Vec<String>> {
    if let Ok(case) = std::env::var(CASE) {
        body(&case);
        return Vec::new();
    }
    let run = |case: &&str| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(CASE, case);
        let output = test_kit::child::output(&mut child);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{case}: ended with {}:\n{text}", output.status);
        text.lines().filter_map(|line| line.strip_prefix("says: ")).map(str::to_owned).collect()
    };
    cases.iter().map(run).collect()
}

fn is_child() -> bool {
    std::env::var_os(CASE).is_some()
}

/// Tells the parent something.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\nsays: {text}").unwrap();
    out.flush().unwrap();
}

fn load() -> Onnx {
    Onnx::load(&LoadOptions::new()).unwrap_or_else(|error| panic!("{error}"))
}

/// A model of `layers` products of a matrix with itself, `[n, n]` in and out: as long as one wants. Written as protobuf.
fn squares(layers: usize) -> Vec<u8> {
    fn field(number: u8, bytes: &[u8], to: &mut Vec<u8>) {
        to.push(number << 3 | 2);
        let mut len = bytes.len();
        while len > 0x7f {
            to.push(len as u8 & 0x7f | 0x80);
            len >>= 7;
        }
        to.push(len as u8);
        to.extend_from_slice(bytes);
    }
    fn number(field: u8, value: u8, to: &mut Vec<u8>) {
        to.extend_from_slice(&[field << 3, value]);
    }
    fn message(build: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        build(&mut bytes);
        bytes
    }
    let port = |name: &str| {
        let dimension = message(|to| field(2, b"n", to));
        let shape = message(|to| [&dimension; 2].into_iter().for_each(|dimension| field(1, dimension, to)));
        let tensor = message(|to| {
            number(1, 1, to);
            field(2, &shape, to);
        });
        message(|to| {
            field(1, name.as_bytes(), to);
            field(2, &message(|to| field(1, &tensor, to)), to);
        })
    };
    let graph = message(|to| {
        for layer in 0..layers {
            let (from, into) = (format!("x{layer}"), format!("x{}", layer + 1));
            let node = message(|to| {
                field(1, from.as_bytes(), to);
                field(1, from.as_bytes(), to);
                field(2, into.as_bytes(), to);
                field(4, b"MatMul", to);
            });
            field(1, &node, to);
        }
        field(2, b"squares", to);
        field(11, &port("x0"), to);
        field(12, &port(&format!("x{layers}")), to);
    });
    message(|to| {
        number(1, 10, to);
        field(7, &graph, to);
        field(8, &message(|to| number(2, 20, to)), to);
    })
}

fn graph(onnx: &Onnx, layers: usize) -> Graph {
    Graph::from_bytes(onnx, &squares(layers), &GraphOptions::new().with_threads(2))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn run(graph: &mut Graph, n: usize) {
    let ones = vec![1.0_f32; n * n];
    let shape = [n, n];
    graph.run([("x0", TensorView::new(&shape, &ones).unwrap())]).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn many_threads_load_one_library_once() {
    let said = cases("many_threads_load_one_library_once", &["at once"], |_| {
        let start = Barrier::new(8);
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    let onnx = load();
                    run(&mut graph(&onnx, 1), 4);
                    say(&format!("{onnx:?}"));
                });
            }
        });
    });
    if !is_child() {
        let version = build_support::pins::Pin::named("onnxruntime").unwrap().version;
        assert_eq!(said[0], vec![format!("Onnx {{ backend: \"onnx\", version: {version:?} }}"); 8]);
    }
}

#[test]
fn a_load_that_failed_can_be_tried_again_and_another_library_is_refused() {
    let folder = std::env::temp_dir().join(format!("infer-onnx-library-{}", process::id()));
    let said = cases("a_load_that_failed_can_be_tried_again_and_another_library_is_refused", &["again"], |_| {
        let own = onnxruntime::library().unwrap();
        for path in [Path::new("/no/such/library.so"), Path::new("libonnxruntime.so"), Path::new("/etc/hostname")] {
            let error = Onnx::load(&LoadOptions::new().with_path(path)).unwrap_err();
            assert_eq!(error.kind(), infer_core::ErrorKind::Library);
            assert!(error.to_string().contains(&path.display().to_string()), "{error}");
            assert!(error.to_string().contains("`infer setup onnx`"), "{error}");
        }
        let onnx = Onnx::load(&LoadOptions::new().with_path(&own)).unwrap();
        // Whoever names none gets it, and so does who names it once more.
        assert_eq!(load().version(), onnx.version());
        Onnx::load(&LoadOptions::new().with_path(&own)).unwrap();
        fs::create_dir_all(&folder).unwrap();
        let copy = folder.join("copy.so");
        fs::copy(&own, &copy).unwrap();
        let error = Onnx::load(&LoadOptions::new().with_path(&copy)).unwrap_err();
        assert!(error.to_string().contains("can use no other beside it"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
        run(&mut graph(&onnx, 1), 4);
        say("went on");
    });
    assert!(is_child() || said[0] == ["went on"]);
}

#[test]
fn what_is_installed_is_listed_without_starting_it() {
    let said = cases("what_is_installed_is_listed_without_starting_it", &["list"], |_| {
        let all = Onnx::installed(&LoadOptions::new());
        let own = onnxruntime::library().unwrap();
        let found = all.iter().find(|one| one.path == own).unwrap();
        say(&format!("{} {}", found.place, found.version.as_ref().unwrap()));
        let error = Graph::from_bytes(&load(), b"nothing", &GraphOptions::new()).unwrap_err();
        assert!(!error.to_string().contains("not loaded"), "{error}");
    });
    let version = build_support::pins::Pin::named("onnxruntime").unwrap().version;
    assert!(is_child() || said[0] == [format!("the cache {version}")], "{said:?}");
}

/// What a listener that keeps what is logged has heard.
#[derive(Clone, Default)]
struct Heard {
    lines: Arc<Mutex<Vec<String>>>,
    panics: Arc<AtomicBool>,
}

impl Heard {
    /// One who hears it, loads the library for each line if it `loads`, and panics when it is told to.
    fn listener(&self, loads: bool) -> impl tracing::Subscriber {
        let Self { lines, panics } = self.clone();
        let hear = move |event: &tracing::Event<'_>| {
            assert!(!panics.load(Ordering::Relaxed), "asked to");
            let again = match loads {
                true => Onnx::load(&LoadOptions::new()).map_or_else(|error| error.to_string(), |_| "loaded".into()),
                false => String::new(),
            };
            lines.lock().unwrap().push(format!("{} {again}", event.metadata().level()));
        };
        Listener::new(hear).of("onnxruntime")
    }
}

#[test]
fn what_it_logs_goes_to_tracing_alone_and_a_listener_may_do_anything() {
    let said = cases(
        "what_it_logs_goes_to_tracing_alone_and_a_listener_may_do_anything",
        &["listen", "load", "panic"],
        |case| {
            let heard = Heard::default();
            tracing::subscriber::set_global_default(heard.listener(case == "load")).unwrap();
            let onnx = load();
            let mut squares = graph(&onnx, 2);
            run(&mut squares, 4);
            let lines = || heard.lines.lock().unwrap().clone();
            let seen = lines();
            assert!(
                seen.iter().any(|line| line.starts_with("DEBUG")) && seen.iter().any(|line| line.starts_with("TRACE"))
            );
            if case == "load" {
                // The lines of the start itself are told what would have them wait for themselves.
                assert!(seen[0].contains("on this very thread"), "{seen:?}");
                assert!(seen.last().unwrap().ends_with("loaded"), "{seen:?}");
            }
            if case == "panic" {
                heard.panics.store(true, Ordering::Relaxed);
                let ran = panic::catch_unwind(AssertUnwindSafe(|| run(&mut squares, 4)));
                assert!(ran.is_err(), "it goes on when the run is over");
                drop(squares);
                heard.panics.store(false, Ordering::Relaxed);
                run(&mut graph(&onnx, 1), 4);
            }
            say("went on");
        },
    );
    assert!(is_child() || said.iter().all(|said| said == &["went on"]), "{said:?}");
}

/// Runs for ever, and tells of the first run.
fn compute(first: &mpsc::Sender<()>, n: usize) {
    let mut graph = graph(&load(), 64);
    loop {
        run(&mut graph, n);
        // The other end goes when the process does.
        let _ = first.send(());
    }
}

#[test]
fn a_process_ends_well_whatever_is_alive() {
    const CASES: [&str; 9] = [
        "idle",
        "thread",
        "computing",
        "many computing",
        "loading",
        "loading for long",
        "unwound",
        "panicked main",
        "listener exits",
    ];
    let said = cases("a_process_ends_well_whatever_is_alive", &CASES, |case| {
        let (first, seen) = mpsc::channel();
        match case {
            "idle" => {
                let mut graph = graph(&load(), 2);
                run(&mut graph, 8);
                say("ends");
                process::exit(0);
            }
            "thread" => {
                let alive = thread::spawn(|| {
                    let mut graph = graph(&load(), 2);
                    run(&mut graph, 8);
                    graph
                });
                // Made on one thread, dropped on another.
                drop(alive.join().unwrap());
            }
            "computing" => {
                thread::spawn(move || compute(&first, 128));
                seen.recv().unwrap();
            }
            "many computing" => {
                for n in [4, 16, 64] {
                    let first = first.clone();
                    thread::spawn(move || compute(&first, n));
                }
                (0..3).for_each(|_| seen.recv().unwrap());
            }
            "loading" => {
                let onnx = load();
                thread::spawn(move || {
                    loop {
                        let _ = first.send(());
                        drop(graph(&onnx, 64));
                    }
                });
                seen.recv().unwrap();
            }
            // Loading it takes longer than the end is put off: it is told to stop.
            "loading for long" => {
                let (onnx, model) = (load(), squares(8_000));
                thread::spawn(move || {
                    first.send(()).unwrap();
                    drop(Graph::from_bytes(&onnx, &model, &GraphOptions::new().with_threads(1)));
                });
                seen.recv().unwrap();
                thread::sleep(Duration::from_millis(300));
            }
            "unwound" => {
                let unwound = thread::spawn(|| {
                    let mut graph = graph(&load(), 2);
                    run(&mut graph, 8);
                    panic!("as it should");
                });
                assert!(unwound.join().is_err());
            }
            "panicked main" => {
                let unwound = panic::catch_unwind(|| {
                    thread::spawn(move || compute(&first, 16));
                    seen.recv().unwrap();
                    panic!("as it should");
                });
                assert!(unwound.is_err());
            }
            "listener exits" => {
                let exits = Listener::new(|_| {
                    say("ends");
                    process::exit(0);
                });
                let onnx = load();
                tracing::subscriber::set_global_default(exits.of("onnxruntime")).unwrap();
                run(&mut graph(&onnx, 2), 8);
                panic!("nothing was logged");
            }
            other => panic!("there is no case {other:?}"),
        }
        say("ends");
        process::exit(0);
    });
    assert!(is_child() || said.iter().all(|said| said == &["ends"]), "{said:?}");
}

/// Loads the library by way of `examples/embedded.rs`, and ends while a thread of it computes. What it is told beside that: to have Python's own ONNX
/// Runtime compute in the same process, to compute once more when it finalises, to end by an exception, or to have a thread of its own inside.
const IN_PYTHON: &str = r#"
import atexit, ctypes, sys, threading
library, model, case = ctypes.CDLL(sys.argv[1]), sys.argv[2].encode(), sys.argv[3]
assert library.embedded_compute(model, 1) == 0
if case == "beside":
    import numpy, onnxruntime
    session = onnxruntime.InferenceSession(model.decode())
    print(session.run(None, {"x0": numpy.eye(4, dtype="float32")})[0].sum())
if case == "finaliser":
    atexit.register(lambda: library.embedded_compute(model, 0))
if case == "thread":
    def compute():
        while library.embedded_compute(model, 0) == 0:
            pass
    threading.Thread(target=compute, daemon=True).start()
print("ends", flush=True)
if case == "exception":
    raise SystemExit(0)
"#;

#[test]
fn a_python_that_has_loaded_it_finalises_well() {
    let program = std::env::current_exe().unwrap();
    let file = format!("{}embedded{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = program.ancestors().nth(2).unwrap().join("examples").join(file);
    assert!(library.exists(), "{} is not there: cargo build -p infer-onnx --examples", library.display());
    let folder = std::env::temp_dir().join(format!("infer-onnx-python-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let model = folder.join("squares.onnx");
    fs::write(&model, squares(16)).unwrap();
    for case in ["plain", "beside", "finaliser", "thread", "exception"] {
        let mut python = build_support::python::command(build_support::python::Packages::Common)
            .unwrap_or_else(|error| panic!("{error}"));
        let output = test_kit::child::output(python.args(["-c", IN_PYTHON]).args([&library, &model]).arg(case));
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && text.contains("ends"), "{case}: ended with {}:\n{text}", output.status);
    }
    fs::remove_dir_all(folder).unwrap();
}

/// Where this program's own library is, for a look at what is opened.
fn mapped() -> Vec<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut paths: Vec<PathBuf> =
        maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..]))).collect();
    paths.dedup();
    paths
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_loaded_before_it_is_asked_for_and_then_the_file_that_was_checked() {
    let name = "nothing_is_loaded_before_it_is_asked_for_and_then_the_file_that_was_checked";
    let said = cases(name, &["maps"], |_| {
        let is_it = |path: &PathBuf| path.to_string_lossy().contains("libonnxruntime");
        assert!(!mapped().iter().any(is_it));
        load();
        let own: Vec<PathBuf> = mapped().into_iter().filter(is_it).collect();
        assert_eq!(own, [onnxruntime::library().unwrap()]);
        say("seen");
    });
    assert!(is_child() || said[0] == ["seen"]);
}
