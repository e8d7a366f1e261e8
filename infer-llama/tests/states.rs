//! Saved and restored sequences, over the linked door.

mod kit;
#[path = "kit/linked.rs"]
mod linked;

use infer_core::{
    Error, ErrorKind, KvLayout, Sequence, Session as _, Token,
    state::{Header, Reader, Writer},
};
use infer_llama::{KvType, Model, Session};
use linked::{LAYOUTS, alone, apart, assert_near, feed, model, open, options, session, text};
use std::io;

const DECODERS: [&str; 4] = ["tiny-llama", "tiny-gemma3", "tiny-mamba", "tiny-lfm2"];

fn saved(session: &mut Session, seq: &Sequence) -> Vec<u8> {
    let mut state = Vec::new();
    session.save(seq, &mut state).unwrap();
    state
}

fn restored(session: &mut Session, mut state: &[u8]) -> Result<Sequence, Error> {
    session.restore(&mut state)
}

/// A session with a sequence of `tokens`, and that sequence's state.
fn some_state(model: &Model, tokens: &[Token]) -> (Session, Sequence, Vec<u8>) {
    let mut session = session(model, &options().with_layout(KvLayout::Unified));
    let seq = open(&mut session);
    feed(&mut session, &seq, tokens);
    let state = saved(&mut session, &seq);
    (session, seq, state)
}

/// Nothing of a refused state is left: sequences and cells are as they were, and a restore of the right one works.
#[track_caller]
fn assert_refused(session: &mut Session, state: &[u8], kind: ErrorKind, why: &str) {
    let before = session.usage();
    let error = restored(session, state).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(format!("{error:?}").contains(why), "{error:?}, which does not say {why:?}");
    assert_eq!(session.usage(), before);
}

#[test]
fn a_restored_sequence_goes_on_as_the_saved_one() {
    let (prompt, more) = (text(1, 50), text(2, 5));
    for name in DECODERS {
        let model = model(name);
        for layout in LAYOUTS {
            let options = options().with_layout(layout);
            let mut first = session(&model, &options);
            let seq = open(&mut first);
            feed(&mut first, &seq, &prompt);
            let state = saved(&mut first, &seq);
            let whole = feed(&mut first, &seq, &more);

            // Into another session, beside another sequence, and into its own.
            let mut second = session(&model, &options);
            let other = open(&mut second);
            feed(&mut second, &other, &text(3, 20));
            for session in [&mut second, &mut first] {
                let before = session.usage();
                let seq = restored(session, &state).unwrap();
                assert_eq!((seq.len(), session.usage().sequences), (prompt.len(), before.sequences + 1));
                assert!(session.usage().cells > before.cells);
                assert_near(&feed(session, &seq, &more), &whole, &format!("{name}, {layout:?}"));
                drop(seq);
                assert_eq!(session.usage(), before);
            }
            let other = feed(&mut second, &other, &more);
            assert_near(&other, &alone(&model, &options, &[text(3, 20), more.clone()].concat()), name);
        }
    }
}

#[test]
fn an_empty_sequence_has_a_state_too() {
    for name in DECODERS {
        let model = model(name);
        let mut session = session(&model, &options());
        let seq = open(&mut session);
        let state = saved(&mut session, &seq);
        let seq = restored(&mut session, &state).unwrap();
        assert_eq!((seq.len(), session.usage().cells), (0, 0));
        feed(&mut session, &seq, &text(1, 5));
    }
}

/// The library puts a copy between streams off until the next pass. A state that is written before that must have it, and one that
/// is read must not be overwritten by it.
#[test]
fn a_fork_that_was_put_off_is_in_the_state_and_not_over_it() {
    let (prompt, other, more) = (text(1, 40), text(9, 40), text(2, 3));
    let model = model("tiny-llama");
    for layout in LAYOUTS {
        let options = options().with_layout(layout);
        let whole = alone(&model, &options, &[&prompt[..], &more].concat());
        let mut session = session(&model, &options);
        let seq = open(&mut session);
        feed(&mut session, &seq, &other);
        let of_other = saved(&mut session, &seq);
        session.truncate(&seq, 0).unwrap();
        feed(&mut session, &seq, &prompt);

        let child = session.fork(&seq, prompt.len()).unwrap();
        let state = saved(&mut session, &child);
        drop(child);
        let child = session.fork(&seq, prompt.len()).unwrap();
        drop(child);
        let restored_other = restored(&mut session, &of_other).unwrap();
        let seq = restored(&mut session, &state).unwrap();
        assert_near(&feed(&mut session, &seq, &more), &whole, &format!("{layout:?}: forked and saved"));
        let of_other = alone(&model, &options, &[&other[..], &more].concat());
        assert_near(
            &feed(&mut session, &restored_other, &more),
            &of_other,
            &format!("{layout:?}: restored over a fork"),
        );
    }
}

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
    let mut gguf = kit::tiny::llama();
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

/// A state with right checksums, whose payload is another.
fn forged(state: &[u8], change: impl FnOnce(&mut Header, &mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = state;
    let mut reader = Reader::new(&mut bytes, 10_000).unwrap();
    let mut header = reader.header().clone();
    let mut payload = vec![0; header.payload as usize];
    reader.read_exact(&mut payload).unwrap();
    change(&mut header, &mut payload);
    header.payload = payload.len() as u64;
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &header).unwrap();
    writer.write(&payload).unwrap();
    writer.finish().unwrap();
    out
}

fn set(payload: &mut [u8], at: usize, number: i32) {
    payload[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// The frame protects against damage. Whoever forges a state gets an error or a sequence that is nonsense, and nothing worse.
#[test]
fn a_forged_state_is_refused_or_nonsense() {
    // Of a cache: streams, cells, and of each cell position, number of sequences, sequence.
    let (mut session, _seq, state) = some_state(&model("tiny-llama"), &text(1, 30));
    let numbers = [
        (0, 2, "n_stream mismatch"),
        (0, -1, "out of range"),
        (4, 100_000, "not enough cells"),
        (4, -1, "out of range"),
        (4, 29, "checksum"),
        (8, -1, "out of range"),
        (8, i32::MIN, "out of range"),
        (8, i32::MAX, "out of range"),
        (8, i32::MAX - 1, "does not end at the position"),
        (12, 0, "seq_id-agnostic"),
        (12, 1000, "seq_id-agnostic"),
        (8 + 29 * 12, 5, "does not end at the position"),
        (8 + 30 * 12, 1, "transposition"),
        (12 + 30 * 12, 7, "layer count"),
        (16 + 30 * 12, 9, "key type"),
    ];
    let before = session.usage();
    for (at, number, why) in numbers {
        let state = forged(&state, |_, payload| set(payload, at, number));
        let error = restored(&mut session, &state).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput, "{number} at {at}: {error:?}");
        assert!(why == "checksum" || format!("{error:?}").contains(why), "{number} at {at}: {error:?}, not {why:?}");
        assert_eq!(session.usage(), before, "{number} at {at}");
    }
    let longer = forged(&state, |_, payload| payload.extend([0; 100]));
    assert_refused(&mut session, &longer, ErrorKind::InvalidInput, "longer than what it describes");
    let shorter = forged(&state, |_, payload| payload.truncate(5000));
    assert_refused(&mut session, &shorter, ErrorKind::InvalidInput, "shorter than what it describes");
    let token = forged(&state, |header, _| header.tokens[3] = Token(100_000));
    assert_refused(&mut session, &token, ErrorKind::InvalidInput, "outside the vocabulary");
    let tokens = forged(&state, |header, _| header.tokens.truncate(29));
    assert_refused(&mut session, &tokens, ErrorKind::InvalidInput, "does not end at the position");
    // All cells are there still: the session holds as much as it could before.
    let noise = forged(&state, |_, payload| payload[2000..].iter_mut().for_each(|byte| *byte = !*byte));
    drop(restored(&mut session, &noise));
    let full: Vec<Token> = text(5, 226);
    let seq = open(&mut session);
    feed(&mut session, &seq, &full);

    // Of a recurrent memory: cells, and of each position and number of sequences.
    let (mut session, _seq, state) = some_state(&model("tiny-mamba"), &text(1, 30));
    for (at, number) in [(0, 2), (0, -1), (0, i32::MAX), (0, 0), (4, -1), (4, 5), (8, 1), (8, i32::MAX)] {
        let state = forged(&state, |_, payload| set(payload, at, number));
        let error = restored(&mut session, &state).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{number} at {at}: {error:?}");
    }
    restored(&mut session, &state).unwrap();
}

/// Anything at all in the payload, with right checksums: an error or nonsense, whatever the model's memory is.
#[test]
fn states_forged_at_random_do_no_harm() {
    for name in DECODERS {
        let model = model(name);
        let (mut session, seq, state) = some_state(&model, &text(1, 40));
        let mut random = test_kit::Random(17);
        for round in 0..200 {
            let forged = forged(&state, |_, payload| {
                // Every other time among the numbers that stand before the keys.
                let len = if round % 2 == 0 { payload.len().min(600) } else { payload.len() } as u64;
                for _ in 0..=random.below(3) {
                    let at = random.below(len - 4) as usize & !3;
                    let number =
                        [random.next() as i32, random.below(64) as i32, -1, i32::MAX][random.below(4) as usize];
                    set(payload, at, number);
                }
            });
            let Ok(nonsense) = restored(&mut session, &forged) else { continue };
            let mut batch = infer_core::Batch::new();
            batch.push(&nonsense, &text(2, 3), infer_core::Want::Logits);
            session.decode(&batch).unwrap();
        }
        // The others are what they were, and every cell is there.
        let more = text(2, 3);
        let again = restored(&mut session, &state).unwrap();
        assert_near(&feed(&mut session, &again, &more), &feed(&mut session, &seq, &more), name);
        drop((seq, again));
        assert_eq!(session.usage().cells, 0, "{name}");
        let seqs = [open(&mut session), open(&mut session), open(&mut session)];
        for seq in &seqs {
            feed(&mut session, seq, &text(6, 250));
        }
    }
}

#[test]
fn quantised_keys_and_values_are_restored_as_they_are() {
    let model = model("smollm2");
    let (prompt, more) = (text(1, 50), text(2, 3));
    for kind in [KvType::Q8_0, KvType::Q4_0] {
        let options = options().with_kv_type(kind);
        let mut first = session(&model, &options);
        let seq = open(&mut first);
        feed(&mut first, &seq, &prompt);
        let state = saved(&mut first, &seq);
        let mut second = session(&model, &options);
        let again = restored(&mut second, &state).unwrap();
        let apart = apart(&feed(&mut second, &again, &more), &feed(&mut first, &seq, &more));
        assert_eq!(apart, 0.0, "{kind}");
    }
}
