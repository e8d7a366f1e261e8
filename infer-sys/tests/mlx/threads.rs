//! What belongs to one thread and is used on another: an error each time, and never the end of the process.

use std::sync::{Barrier, mpsc};
use std::thread;
use std::time::Duration;

use infer_sys::mlx::bindings::*;

use crate::kit::{
    Array, Carried, Failure, Stream, api, async_eval, data, eval, f32s, i32s, info, leave_to_the_thread, made,
};

/// Runs on a thread of its own, with what it is given.
fn elsewhere<T, R>(with: T, run: impl FnOnce(T) -> R + Send) -> R {
    let carried = Carried(with);
    let run = move || Carried(run(carried.into_inner()));
    thread::scope(|scope| scope.spawn(run).join().unwrap()).into_inner()
}

fn refused<T>(result: Result<T, Failure>) {
    let failure = result.err().expect("another thread's is refused");
    assert_eq!(failure.status, INFER_MLX_THREAD, "{failure:?}");
    assert!(failure.message.contains("another thread"), "{failure:?}");
}

#[test]
fn another_threads_array_is_refused_by_every_kind_of_entry() {
    let stream = Stream::new();
    let a = f32s(&[1.0, 2.0], &[2]);
    let lazy = stream.unary(INFER_MLX_EXP, &a).unwrap();
    let (stream, a, lazy) = elsewhere((stream, a, lazy), |(stream, a, lazy)| {
        let own = Stream::new();
        let mine = f32s(&[3.0, 4.0], &[2]);
        refused(info(&a));
        refused(data::<f32>(&a));
        refused(eval(&[&a]));
        refused(eval(&[&mine, &lazy]));
        refused(async_eval(&[&lazy]));
        refused(own.unary(INFER_MLX_EXP, &a));
        refused(own.binary(INFER_MLX_ADD, &mine, &lazy));
        refused(own.binary(INFER_MLX_ADD, &lazy, &mine));
        refused(own.take(&mine, &a, 0));
        refused(own.kv_write(&a, &mine, 0, 0));
        // SAFETY: handles that are not freed.
        refused(made(|out| unsafe { api().array_share(out, a.0) }));
        let list = [mine.0.cast_const(), lazy.0.cast_const()];
        // SAFETY: as above.
        refused(made(|out| unsafe { api().concatenate(out, list.as_ptr(), 2, 0, own.raw()) }));
        // And the thread's own arrays on a stream that is not its own.
        refused(stream.unary(INFER_MLX_EXP, &mine));
        refused(stream.full(&[1], 0.0, INFER_MLX_F32));
        // SAFETY: as above.
        refused(crate::kit::check(unsafe { api().synchronize(stream.raw()) }));
        assert_eq!(own.values(&mine).unwrap(), [3.0, 4.0], "and goes on working");
        (stream, a, lazy)
    });
    assert_eq!(stream.values(&lazy).unwrap()[0], 1f32.exp(), "at home it is what it was");
    drop(a);
}

#[test]
fn what_was_not_computed_before_the_last_stream_went_cannot_be_any_more() {
    let stream = Stream::new();
    let second = Stream::new();
    let a = f32s(&[1.0], &[1]);
    let lazy = stream.unary(INFER_MLX_EXP, &a).unwrap();
    let done = stream.unary(INFER_MLX_SQUARE, &a).unwrap();
    let begun = stream.unary(INFER_MLX_NEGATIVE, &a).unwrap();
    eval(&[&done]).unwrap();
    async_eval(&[&begun]).unwrap();
    drop(stream);
    assert_eq!(second.values(&lazy).unwrap(), [1f32.exp()], "one of two is left");
    let lazy = second.unary(INFER_MLX_EXP, &a).unwrap();
    drop(second);
    for failure in [eval(&[&lazy]), async_eval(&[&lazy]), data::<f32>(&lazy).map(drop)] {
        let failure = failure.unwrap_err();
        assert_eq!(failure.status, INFER_MLX_THREAD);
        assert!(failure.message.contains("not evaluated before the last stream"), "{failure:?}");
    }
    assert_eq!(data::<f32>(&done).unwrap(), [1.0]);
    assert_eq!(data::<f32>(&begun).unwrap(), [-1.0], "what was begun was waited for");
    let next = Stream::new();
    assert_eq!(next.unary(INFER_MLX_EXP, &lazy).err().unwrap().status, INFER_MLX_THREAD);
    let both = next.binary(INFER_MLX_ADD, &done, &begun).unwrap();
    assert_eq!(next.values(&both).unwrap(), [0.0], "values outlive streams");
}

#[test]
fn handles_are_freed_on_any_thread_while_their_own_computes() {
    let stream = Stream::new();
    let a = f32s(&[1.0; 1024], &[1024]);
    for round in 0..200 {
        let mut parts = [std::ptr::null_mut(); 4];
        // SAFETY: a handle that is not freed; three cuts make four parts.
        crate::kit::check(unsafe {
            api().split(parts.as_mut_ptr(), a.0, [256, 512, 768].as_ptr(), 3, 0, stream.raw())
        })
        .unwrap();
        let [first, second, third, fourth] = parts.map(Array);
        let sum = stream.binary(INFER_MLX_ADD, &first, &second).unwrap();
        let carried = Carried((first, second, third));
        thread::scope(|scope| {
            scope.spawn(move || drop(carried.into_inner()));
            eval(&[&sum, &fourth]).unwrap();
        });
        assert_eq!(data::<f32>(&sum).unwrap()[7], 2.0, "round {round}");
    }
}

#[test]
fn arrays_outlive_their_thread_to_be_freed_and_for_nothing_else() {
    let left = elsewhere((), |()| {
        let stream = Stream::new();
        let a = f32s(&[1.0, 2.0], &[2]);
        let lazy = stream.unary(INFER_MLX_EXP, &a).unwrap();
        let begun = stream.unary(INFER_MLX_SQUARE, &a).unwrap();
        async_eval(&[&begun]).unwrap();
        (stream, a, lazy, begun)
    });
    refused(info(&left.1));
    refused(eval(&[&left.2]));
    refused(data::<f32>(&left.3));
    refused(left.0.unary(INFER_MLX_EXP, &left.1));
    drop(left);
}

/// The order in which a thread's own objects are destroyed is nobody's to choose: an array may go after the door has left the thread.
#[test]
fn a_thread_may_end_with_arrays_among_its_own_objects() {
    for first in [true, false] {
        elsewhere((), |()| {
            if first {
                leave_to_the_thread(f32s(&[0.0], &[1]));
            }
            let stream = Stream::new();
            let a = stream.unary(INFER_MLX_EXP, &f32s(&[1.0; 64], &[64])).unwrap();
            async_eval(&[&a]).unwrap();
            leave_to_the_thread(a);
            leave_to_the_thread(stream.unary(INFER_MLX_EXP, &f32s(&[1.0], &[1])).unwrap());
        });
    }
}

#[test]
fn threads_compute_at_once_and_come_and_go() {
    let threads = 8;
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        for thread in 0..threads {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for round in 0..40 {
                    // Each round is a stream that comes and goes, while the others compute.
                    let stream = Stream::new();
                    let x = f32s(&[(thread + round) as f32; 64], &[8, 8]);
                    let mut y = stream.binary(INFER_MLX_MATMUL, &x, &x).unwrap();
                    for _ in 0..6 {
                        y = stream.unary(INFER_MLX_SQRT, &y).unwrap();
                        y = stream.binary(INFER_MLX_MULTIPLY, &y, &y).unwrap();
                    }
                    let wanted = 8.0 * ((thread + round) as f32).powi(2);
                    let found = stream.values(&y).unwrap();
                    assert!(found.iter().all(|value| (value - wanted).abs() <= 1e-3 * wanted.max(1.0)), "{found:?}");
                    let outside = stream.take(&x, &i32s(&[8], &[1]), 0).unwrap();
                    if round % 5 == 0 {
                        assert_eq!(eval(&[&outside]).unwrap_err().message, "index 8 of an axis of length 8");
                    }
                }
            });
        }
    });
}

/// MLX waits for the streams of all threads when its cache is cleared, and takes the errors it finds.
#[test]
fn an_error_is_told_to_the_thread_whose_it_is_whoever_waits_for_it() {
    for _ in 0..50 {
        let stream = Stream::new();
        let table = f32s(&[1.0, 2.0], &[2]);
        let begun = stream.take(&table, &i32s(&[7], &[1]), 0).unwrap();
        let started = async_eval(&[&begun]);
        // SAFETY: no precondition.
        let clear = || thread::spawn(|| crate::kit::check(unsafe { api().clear_cache() })).join().unwrap();
        // Something has to be in it.
        drop(f32s(&[0.0; 4096], &[4096]));
        assert_eq!(clear(), Ok(()), "it is not that thread's error");
        let failure = started.and_then(|()| data::<f32>(&begun).map(drop)).unwrap_err();
        assert_eq!(failure.status, INFER_MLX_EXCEPTION, "{failure:?}");
    }
}

/// A stream that is asked for while somebody computes for long comes when that is done, and others that would compute wait behind it.
#[test]
fn whoever_asks_for_a_stream_gets_one_while_others_compute_without_end() {
    let (stop, stopped) = mpsc::channel::<()>();
    let worker = thread::spawn(move || {
        let stream = Stream::new();
        let x = f32s(&vec![0.5; 256 * 256], &[256, 256]);
        while stopped.try_recv().is_err() {
            let y = stream.binary(INFER_MLX_MATMUL, &x, &x).unwrap();
            eval(&[&y]).unwrap();
        }
    });
    let (got, gets) = mpsc::channel();
    let asks = thread::spawn(move || {
        for _ in 0..20 {
            let streams: Vec<Stream> = (0..4).map(|_| Stream::new()).collect();
            assert_eq!(streams[3].values(&f32s(&[2.0], &[1])).unwrap(), [2.0]);
            got.send(()).unwrap();
        }
    });
    for _ in 0..20 {
        gets.recv_timeout(Duration::from_secs(60)).expect("it is not starved");
    }
    stop.send(()).unwrap();
    worker.join().unwrap();
    asks.join().unwrap();
}
