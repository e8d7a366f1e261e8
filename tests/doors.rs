//! The linked door and the loaded one in one process: two copies of llama.cpp that know nothing of each other.

use infer::{Batch, Library, ModelSource, OpenOptions, Session, Token, Want};
use kit::{greedy::Settings, prompts};

#[test]
fn both_doors_give_the_same_tokens() {
    let path = build_support::fixtures::model("smollm2").unwrap_or_else(|error| panic!("{error}"));
    let settings = Settings { threads: 1, context: 512, count: 16 };
    let [linked, loaded] = [Library::Linked, Library::Found].map(|library| {
        let source = ModelSource::new(&path).with_library(library);
        source.open().unwrap_or_else(|error| panic!("{error}"))
    });
    // Both are alive at the same time, and take turns.
    let (mut a, mut b) = (settings.session(&*linked, 512), settings.session(&*loaded, 512));
    for prompt in &prompts::all()[..3] {
        let tokens = settings.generate(&*linked, &mut *a, prompt);
        assert_eq!(settings.generate(&*loaded, &mut *b, prompt), tokens, "{prompt:?}");
        assert!(!tokens.is_empty());
    }
}

/// What one door saved the other restores: the state is the library's, not the process's.
#[test]
fn a_state_saved_behind_one_door_is_restored_behind_the_other() {
    let path = build_support::fixtures::model("tiny-llama").unwrap_or_else(|error| panic!("{error}"));
    let settings = Settings { threads: 1, context: 256, count: 1 };
    let [linked, loaded] = [Library::Linked, Library::Found].map(|library| {
        let source = ModelSource::new(&path).with_library(library);
        source.open().unwrap_or_else(|error| panic!("{error}"))
    });
    let (mut a, mut b) = (settings.session(&*linked, 64), settings.session(&*loaded, 64));
    let (prompt, more) = ((0..50).map(Token).collect::<Vec<_>>(), [Token(7), Token(9)]);
    let feed = |session: &mut dyn Session, seq: &infer::Sequence, tokens: &[Token]| {
        let mut batch = Batch::new();
        batch.push(seq, tokens, Want::Logits);
        session.decode(&batch).unwrap();
        session.outputs().logits(0).unwrap().to_vec()
    };
    let seq = a.open(&OpenOptions::default()).unwrap();
    feed(&mut *a, &seq, &prompt);
    let mut state = Vec::new();
    a.save(&seq, &mut state).unwrap();
    let restored = b.restore(&mut &state[..]).unwrap();
    assert_eq!(restored.len(), prompt.len());
    let (there, here) = (feed(&mut *b, &restored, &more), feed(&mut *a, &seq, &more));
    let apart = there.iter().zip(&here).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 0.01, "{apart}");
}
