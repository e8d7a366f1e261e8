//! States that are damaged, cut short or another model's, and readers and writers that fail: nothing is left behind.

use crate::{
    DECODERS, assert_refused,
    kit::tiny,
    linked::{assert_near, feed, model, open, options, session, text},
    restored, saved, some_state,
};
use infer_core::{ErrorKind, KvLayout, Session as _, Token};
use infer_llama::{KvType, Model, Session};
use std::io;

#[test]
fn each_of_400_flipped_bytes_is_refused() {
    let (mut session, seq, state) = some_state(&model("tiny-llama"), &text(1, 60));
    let before = session.usage();
    for nth in 0..400 {
        let at = nth * (state.len() - 1) / 399;
        let mut damaged = state.clone();
        damaged[at] ^= 1 << (nth % 8);
        let error = restored(&mut session, &damaged).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "byte {at}: {error}");
        assert_eq!(session.usage(), before, "byte {at}");
    }
    let again = restored(&mut session, &state).unwrap();
    let more = text(2, 3);
    assert_near(&feed(&mut session, &again, &more), &feed(&mut session, &seq, &more), "after 400 refusals");
}

/// Attention reads free cells too, to no effect unless there is what is no number.
#[test]
fn what_is_refused_is_not_left_in_free_cells() {
    for name in DECODERS {
        let options = options().with_context(2048).with_layout(KvLayout::Unified);
        let options = options.with_kv_type(KvType::F32).with_flash_attention(false);
        let mut session = session(&model(name), &options);
        let seq = open(&mut session);
        // Of many chunks, so that there is something ahead of what is verified.
        for seed in 0..3 {
            feed(&mut session, &seq, &text(seed, 250));
        }
        let state = saved(&mut session, &seq);
        let another = |session: &mut Session| {
            let other = open(session);
            feed(session, &other, &text(2, 3))
        };
        let before = another(&mut session);
        for nth in 0..100 {
            let at = 500 + nth * (state.len() - 508) / 99;
            let mut damaged = state.clone();
            damaged[at..at + 8].fill(0xFF);
            if damaged != state {
                assert_eq!(restored(&mut session, &damaged).unwrap_err().kind(), ErrorKind::InvalidInput);
                assert_near(&another(&mut session), &before, &format!("{name}, byte {at}"));
            }
        }
    }
}

#[test]
fn a_state_that_is_cut_short_is_refused() {
    let (mut session, _seq, state) = some_state(&model("tiny-llama"), &text(1, 60));
    let mut lens: Vec<usize> = (0..60).chain((60..state.len()).step_by(state.len() / 50)).collect();
    lens.extend([state.len() - 9, state.len() - 8, state.len() - 1]);
    for len in lens {
        assert_refused(&mut session, &state[..len], ErrorKind::InvalidInput, "it ends early");
    }
    // What follows is left for whoever wrote it.
    let longer = [&state[..], b"x"].concat();
    let mut rest = &longer[..];
    assert_eq!(session.restore(&mut rest).unwrap().len(), 60);
    assert_eq!(rest, b"x");
}

#[test]
fn a_state_that_does_not_fit_says_why() {
    let llama = model("tiny-llama");
    let (_, _, state) = some_state(&llama, &text(1, 60));
    let unified = options().with_layout(KvLayout::Unified);
    let invalid = ErrorKind::InvalidInput;
    assert_refused(&mut session(&model("tiny-gemma3"), &unified), &state, invalid, "of another model");
    assert_refused(
        &mut session(&llama, &options()),
        &state,
        invalid,
        "its layout of the cells is unified, here it is split",
    );
    let keys = unified.clone().with_kv_types(KvType::F32, KvType::F16);
    assert_refused(&mut session(&llama, &keys), &state, invalid, "its number format of keys is f16, here it is f32");
    let values = unified.clone().with_kv_types(KvType::F16, KvType::F32);
    assert_refused(
        &mut session(&llama, &values),
        &state,
        invalid,
        "its number format of values is f16, here it is f32",
    );
    let plain = unified.clone().with_flash_attention(false);
    assert_refused(&mut session(&llama, &plain), &state, invalid, "incompatible V transposition");

    let short = unified.clone().with_context(50);
    assert_refused(&mut session(&llama, &short), &state, ErrorKind::ContextFull, "60 positions");
    let mut full = session(&llama, &unified.clone().with_sequences(1));
    let seq = open(&mut full);
    assert_refused(&mut full, &state, ErrorKind::TooManySequences, "all 1 sequences");
    drop(seq);
    restored(&mut full, &state).unwrap();

    let mut crowded = session(&llama, &unified.with_cells(256));
    let seq = open(&mut crowded);
    feed(&mut crowded, &seq, &text(4, 200));
    assert_refused(&mut crowded, &state, ErrorKind::OutOfCells, "60 cells and 56 are free");
    crowded.truncate(&seq, 100).unwrap();
    restored(&mut crowded, &state).unwrap();
}

/// The same architecture and shape, other numbers.
#[test]
fn one_other_weight_is_another_model() {
    let folder = test_kit::Folder::new();
    let mut gguf = tiny::llama();
    let open = |name: &str, gguf: &build_support::gguf::Gguf| {
        Model::open(&infer_llama::Llama::linked().unwrap(), folder.file(name, &gguf.bytes())).unwrap()
    };
    let (_, _, state) = some_state(&open("one.gguf", &gguf), &text(1, 10));
    let again = open("same.gguf", &gguf);
    let unified = options().with_layout(KvLayout::Unified);
    restored(&mut session(&again, &unified), &state).unwrap();
    gguf.tensor("blk.1.ffn_up.weight").data[3] ^= 1;
    let other = open("other.gguf", &gguf);
    assert_refused(&mut session(&other, &unified), &state, ErrorKind::InvalidInput, "of another model");
}

/// Fails, or raises an interrupt, after so many bytes.
struct Ending<'a, T>(T, usize, Option<&'a infer_core::Interrupt>);

impl<T> Ending<'_, T> {
    fn count(&mut self, bytes: usize) -> io::Result<()> {
        match (self.1.checked_sub(bytes), self.2) {
            (Some(left), _) => self.1 = left,
            (None, Some(interrupt)) => interrupt.raise(),
            (None, None) => return Err(io::Error::other("the cable was pulled")),
        }
        Ok(())
    }
}

impl<T: io::Write> io::Write for Ending<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.count(bytes.len())?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<T: io::Read> io::Read for Ending<'_, T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(bytes)?;
        self.count(read)?;
        Ok(read)
    }
}

#[test]
fn an_error_or_an_interrupt_in_the_middle_leaves_nothing_behind() {
    // More than a megabyte, so that there is a middle.
    let model = model("tiny-llama");
    let prompt: Vec<Token> = (0..8).flat_map(|seed| text(seed, 250)).collect();
    let options = options().with_context(2048).with_layout(KvLayout::Unified).with_kv_type(KvType::F32);
    let mut session = session(&model, &options);
    let seq = open(&mut session);
    feed(&mut session, &seq, &prompt);
    let state = saved(&mut session, &seq);
    let (before, interrupt) = (session.usage(), session.interrupt());
    let middle = state.len() / 2;

    let failed = session.save(&seq, &mut Ending(io::sink(), middle, None)).unwrap_err();
    let gone = session.restore(&mut Ending(&state[..], middle, None)).unwrap_err();
    for error in [failed, gone] {
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the cable was pulled");
    }
    let stopped = session.save(&seq, &mut Ending(io::sink(), 1000, Some(&interrupt))).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Cancelled);
    interrupt.lower();
    let stopped = session.restore(&mut Ending(&state[..], middle, Some(&interrupt))).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Cancelled);
    assert_eq!(restored(&mut session, &state).unwrap_err().kind(), ErrorKind::Cancelled, "it is still raised");
    interrupt.lower();
    assert_eq!(session.usage(), before);
    let again = restored(&mut session, &state).unwrap();
    let more = text(20, 3);
    assert_near(&feed(&mut session, &again, &more), &feed(&mut session, &seq, &more), "after it all");
}

#[test]
fn a_panic_of_the_writer_goes_on_in_the_caller() {
    struct Panics;
    impl io::Write for Panics {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            assert!(bytes.len() < 1000, "too much at once");
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (mut session, seq, _) = some_state(&model("tiny-llama"), &text(1, 60));
    let saving = std::panic::AssertUnwindSafe(|| session.save(&seq, &mut Panics));
    assert!(std::panic::catch_unwind(saving).is_err());
    feed(&mut session, &seq, &text(2, 3));
}
