//! A step in steady state asks Rust's allocator for nothing, and no logits are copied.

mod kit;

use infer_core::{
    Batch, Encoder as _, EncoderOptions, KvLayout, OpenOptions, Pooling, Sampling, Session as _, Token, Want,
};
use infer_llama::{Llama, Model, SessionOptions};
use infer_sys::llama::fake::{self, Script};
use kit::tiny;
use test_kit::{Counting, Folder, heap, heap_so_far};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Over the faked door, which allocates nothing once it is warm: with penalties, so that samplers have state.
#[test]
fn a_step_allocates_nothing() {
    for layout in [KvLayout::Split, KvLayout::Unified] {
        let folder = Folder::new();
        let path = folder.file("tiny.gguf", &tiny::llama().bytes());
        let _control = Script::new().install();
        let model = Model::open(&Llama::from_api(fake::api()).unwrap(), path).unwrap();
        let options = SessionOptions::new().with_context(512).with_sequences(8).with_threads(1).with_layout(layout);
        let mut session = model.session(&options).unwrap();
        let sampling = Sampling::default().with_temperature(1.0).with_top_k(20).with_repetition_penalty(1.1);
        let mut rows: Vec<_> = (0..8)
            .map(|seed| {
                let seq = session.open(&OpenOptions::default()).unwrap();
                session.sample_with(&seq, &sampling.clone().with_seed(seed), &[Token(1)]).unwrap();
                (seq, Token(1))
            })
            .collect();
        let mut batch = Batch::new();
        let mut warm = 0;
        for step in 0..300 {
            if step == 30 {
                warm = heap_so_far().allocations;
            }
            batch.clear();
            for (seq, next) in &rows {
                batch.push(seq, &[*next], Want::Logits);
            }
            session.decode(&batch).unwrap();
            let out = session.outputs();
            for (index, (_, next)) in rows.iter_mut().enumerate() {
                *next = out.token(index).unwrap();
                assert_eq!(out.logits(index).map(<[f32]>::len), Some(259));
            }
        }
        assert_eq!(heap_so_far().allocations - warm, 0, "{layout:?}");
    }
}

/// Texts of many lengths, over the faked door, which allocates nothing once it is warm.
#[test]
fn encoding_allocates_nothing() {
    for pooling in [Pooling::Mean, Pooling::None] {
        let folder = Folder::new();
        let path = folder.file("tiny.gguf", &tiny::llama().bytes());
        let _control = Script::new().install();
        let model = Model::open(&Llama::from_api(fake::api()).unwrap(), path).unwrap();
        let options = EncoderOptions::new().with_pooling(pooling).with_context(64).with_batch(64).with_threads(1);
        let mut encoder = model.encoder(&options).unwrap();
        let texts: Vec<Vec<Token>> = (0..40).map(|text| vec![Token(text); text as usize * 7 % 64 + 1]).collect();
        let texts: Vec<&[Token]> = texts.iter().map(Vec::as_slice).collect();
        for _ in 0..2 {
            encoder.encode(&texts).unwrap();
        }
        let (asked, ()) = heap(|| {
            for count in [40, 1, 17, 40] {
                encoder.encode(&texts[..count]).unwrap();
                assert_eq!(encoder.vectors().len(), count);
            }
        });
        assert_eq!(asked.allocations, 0, "{pooling:?}");
    }
}
