//! What is about the whole process, each in a child of its own: this program started again.

use std::ffi::c_void;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use infer_sys::mlx::bindings::*;
use test_kit::child::{self, Outcome};

use crate::kit::{Array, Carried, Stream, api, async_eval, check, eval, f32s, i32s, live, made};

const TASK: &str = "MLX_TASK";

/// Runs a task of [`task`] in a child, which has to end well, and returns what it wrote.
fn run(name: &str) -> String {
    run_in(Command::new(std::env::current_exe().unwrap()), name)
}

/// The same, where `command` starts this program.
fn run_in(mut command: Command, name: &str) -> String {
    command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env(TASK, name);
    match child::run_command(command, child::LIMIT) {
        Outcome::Ok(said) => said,
        other => panic!("{}", other.into_answer().unwrap_err()),
    }
}

/// The child's side.
pub(crate) fn task() {
    match std::env::var(TASK).as_deref() {
        Ok("counts") => counts(),
        Ok("threads of the system") => threads_of_the_system(),
        Ok("fails again and again") => fails_again_and_again(),
        Ok("is refused threads") => is_refused_threads(),
        Ok("waits at a limit") => waits_at_a_limit(),
        Ok("exits while others compute") => exits_while_others_compute(),
        Ok("ends with everything alive") => ends_with_everything_alive(),
        _ => {}
    }
}

#[test]
fn whatever_is_made_is_counted_and_nothing_is_left() {
    run("counts");
}

fn counts() {
    assert_eq!((live().arrays, live().streams, live().buffers), (0, 0, 0));
    let stream = Stream::new();
    let a = f32s(&[1.0, 2.0], &[2]);
    // SAFETY: a handle that is not freed.
    let shared = made(|out| unsafe { api().array_share(out, a.0) }).unwrap();
    let b = stream.unary(INFER_MLX_EXP, &a).unwrap();
    assert_eq!((live().arrays, live().streams), (3, 1), "each handle once, whatever MLX keeps");
    eval(&[&b]).unwrap();
    eval(&[&b]).unwrap();
    assert_eq!(live().evals, 1, "what is computed is not computed again");
    assert!(stream.binary(INFER_MLX_MATMUL, &a, &f32s(&[0.0; 9], &[3, 3])).is_err());
    assert_eq!(live().arrays, 3, "a failure leaves nothing");
    drop((a, shared, b));
    assert_eq!((live().arrays, live().streams), (0, 1));

    // Many at once, NULL among them; and on another thread, where they wait for this one.
    let many: Vec<Array> = (0..1000).map(|n| f32s(&[n as f32], &[1])).collect();
    let mut raw: Vec<*mut infer_mlx_array> = many.iter().map(|array| array.0).collect();
    many.into_iter().for_each(std::mem::forget);
    raw.insert(500, std::ptr::null_mut());
    // SAFETY: handles that nobody else frees.
    unsafe { api().arrays_free(raw.as_ptr(), raw.len()) };
    assert_eq!(live().arrays, 0);
    let carried = Carried((f32s(&[1.0], &[1]), stream.full(&[4], 1.0, INFER_MLX_F32).unwrap()));
    thread::spawn(move || drop(carried.into_inner())).join().unwrap();
    assert_eq!(live().arrays, 2, "they go when their own thread is here next");
    // SAFETY: the stream is not freed.
    check(unsafe { api().synchronize(stream.raw()) }).unwrap();
    assert_eq!(live().arrays, 0);
    drop(stream);

    // A thread that has ended leaves what others hold, until they free it.
    let left = thread::spawn(|| {
        let stream = Stream::new();
        Carried((stream.full(&[4], 1.0, INFER_MLX_F32).unwrap(), stream))
    });
    let left = left.join().unwrap().into_inner();
    assert_eq!((live().arrays, live().streams), (1, 1));
    drop(left);

    static mut NUMBERS: [f32; 2] = [1.0, 2.0];
    unsafe extern "C" fn keep(_: *mut c_void) {}
    let place = (&raw mut NUMBERS).cast::<c_void>();
    // SAFETY: eight bytes that stay, and that nobody writes.
    let over = made(|out| unsafe {
        api().array_over(out, place, 8, [2].as_ptr(), 1, INFER_MLX_F32 as i32, Some(keep), place)
    });
    drop(over.unwrap());
    assert_eq!((live().arrays, live().streams, live().buffers), (0, 0, 0));
}

/// MLX never ends the thread behind a stream: streams are handed on, and there are as many as were in use at once.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_come_and_go_leave_no_threads_of_mlxs_behind() {
    run("threads of the system");
}

fn threads_of_the_system() {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let compute = || {
        let stream = Stream::new();
        assert_eq!(stream.values(&f32s(&[1.0], &[1])).unwrap(), [1.0]);
    };
    thread::spawn(compute).join().unwrap();
    let before = threads();
    for _ in 0..50 {
        thread::spawn(compute).join().unwrap();
    }
    assert_eq!(threads(), before);
}

/// MLX counts what is begun, and waits where that is too much: what failed must not be counted for ever.
#[test]
fn evaluations_that_fail_leave_nothing_that_is_waited_for() {
    run("fails again and again");
}

/// So many that what each begins is counted: MLX counts every tenth of what it hands to a stream.
fn chain(stream: &Stream, from: Array, operations: usize) -> Array {
    (0..operations).fold(from, |x, _| stream.unary(INFER_MLX_NEGATIVE, &x).unwrap())
}

/// On the thread that comes to MLX first, which MLX tells of an error before it has handed over the rest.
fn fails_again_and_again() {
    let stream = Stream::new();
    let table = f32s(&[1.0, 2.0], &[2]);
    for _ in 0..200 {
        let missing = stream.take(&table, &i32s(&[7], &[1]), 0).unwrap();
        let next = stream.unary(INFER_MLX_NEGATIVE, &table).unwrap();
        let outcome = async_eval(&[&missing]).and_then(|()| {
            // It has failed when the next comes.
            thread::sleep(Duration::from_millis(1));
            eval(&[&next])
        });
        let failure = outcome.unwrap_err();
        assert_eq!(failure.status, INFER_MLX_EXCEPTION, "{failure:?}");
        assert!(failure.message.contains("index 7"), "{failure:?}");
    }
    assert_eq!(stream.values(&chain(&stream, f32s(&[1.0], &[1]), 400)), Ok(vec![1.0]));
}

/// A thread of MLX's that the system refuses is an error of whoever asked for a stream, and nobody waits for what it would have done.
#[cfg(target_os = "linux")]
#[test]
fn threads_that_the_system_refuses_are_errors() {
    let mut shell = Command::new("sh");
    // Room for one thread of MLX's, whose stack is of the usual size; those of Rust and of the door have a size of their own.
    shell.args(["-c", "ulimit -s 4000000 && ulimit -v 6000000 && exec \"$0\" \"$@\""]);
    shell.arg(std::env::current_exe().unwrap());
    run_in(shell, "is refused threads");
}

fn is_refused_threads() {
    let first = Stream::new();
    assert_eq!(first.values(&f32s(&[1.0], &[1])), Ok(vec![1.0]));
    thread::spawn(|| {
        for _ in 0..200 {
            let mut raw = std::ptr::null_mut();
            // SAFETY: the place is there.
            let failure = check(unsafe { api().stream_new(INFER_MLX_CPU as i32, 0, &raw mut raw) }).unwrap_err();
            assert_eq!(failure.status, INFER_MLX_EXCEPTION, "{failure:?}");
            assert!(raw.is_null());
        }
    })
    .join()
    .unwrap();
    assert_eq!(first.values(&chain(&first, f32s(&[1.0], &[1]), 400)), Ok(vec![1.0]));
}

/// Beyond a limit of the user's MLX begins nothing before what was begun is done, on all threads.
#[test]
fn threads_beyond_the_limit_of_memory_wait_for_each_other_and_go_on() {
    run("waits at a limit");
}

fn waits_at_a_limit() {
    let held = f32s(&[0.0; 1024], &[1024]);
    let mut previous = 0;
    // SAFETY: the place is there.
    check(unsafe { api().set_memory_limit(1, &raw mut previous) }).unwrap();
    assert!(previous > 1);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            thread::spawn(|| {
                let streams = [Stream::new(), Stream::new()];
                for _ in 0..50 {
                    let half = chain(&streams[0], f32s(&[1.0; 4096], &[4096]), 25);
                    let begun = chain(&streams[1], half, 25);
                    async_eval(&[&begun]).unwrap();
                    assert_eq!(streams[0].values(&chain(&streams[0], begun, 26)).unwrap(), [1.0; 4096]);
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    drop(held);
}

#[test]
fn the_process_ends_while_other_threads_compute() {
    for _ in 0..3 {
        let begin = Instant::now();
        let said = run("exits while others compute");
        assert!(!said.contains("panicked"), "{said}");
        assert!(begin.elapsed() < Duration::from_secs(30), "it was waited for, and not for ever");
    }
}

fn exits_while_others_compute() {
    for _ in 0..6 {
        thread::spawn(|| {
            let stream = Stream::new();
            let x = f32s(&vec![0.5; 128 * 128], &[128, 128]);
            loop {
                let y = stream.binary(INFER_MLX_MATMUL, &x, &x).unwrap();
                async_eval(&[&y]).unwrap();
                let z = stream.unary(INFER_MLX_EXP, &y).unwrap();
                eval(&[&z]).unwrap();
            }
        });
    }
    thread::sleep(Duration::from_millis(300));
    std::process::exit(0);
}

#[test]
fn the_process_ends_with_everything_alive() {
    run("ends with everything alive");
}

fn ends_with_everything_alive() {
    let stream = Stream::new();
    let x = f32s(&vec![0.5; 512 * 512], &[512, 512]);
    let y = stream.binary(INFER_MLX_MATMUL, &x, &x).unwrap();
    async_eval(&[&y]).unwrap();
    let lazy = stream.unary(INFER_MLX_EXP, &y).unwrap();
    std::mem::forget((stream, x, y, lazy));
    std::process::exit(0);
}
