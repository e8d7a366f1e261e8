//! The library that `cargo xtask setup` or `infer setup` left in the cache is a door like the linked one.

mod kit;

use infer_sys::LoadOptions;
use infer_sys::llama::Api;
use kit::{Model, gguf};

fn loaded() -> Api {
    let api = Api::load(&LoadOptions::new()).unwrap_or_else(|error| panic!("{error}"));
    kit::quiet(api)
}

#[test]
fn it_decodes() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::load(loaded(), &gguf::tiny(folder.path()), |_| {}).unwrap();
    let mut context = model.context(|_| {}).unwrap();
    assert_eq!(context.decode(0, 0, &model.tokenize("abc").unwrap()), Ok(0));
    assert!(context.logits(2).unwrap().iter().all(|logit| logit.is_finite()));
}

#[test]
fn it_throws_no_further_than_the_wall() {
    let folder = tempfile::tempdir().unwrap();
    let path = gguf::without_bytes(folder.path());
    let model = Model::load(loaded(), &path, |params| params.vocab_only = true).unwrap();
    let thrown = model.tokenize("x").unwrap_err();
    assert_eq!(thrown.status, infer_sys::llama::bindings::INFER_LLAMA_EXCEPTION);
}

#[test]
fn loading_it_again_gives_the_same_door() {
    assert!(std::ptr::eq(loaded().table(), loaded().table()));
}

/// Two copies of the whole runtime in one process, of which neither knows.
#[cfg(feature = "llama-link")]
#[test]
fn the_linked_one_and_it_work_side_by_side() {
    let linked = kit::quiet(Api::linked().unwrap());
    let loaded = loaded();
    assert!(!std::ptr::eq(linked.table(), loaded.table()));
    let folder = tempfile::tempdir().unwrap();
    let path = gguf::tiny(folder.path());
    let rows = [linked, loaded].map(|api| {
        let model = Model::load(api, &path, |_| {}).unwrap();
        let mut context = model.context(|_| {}).unwrap();
        assert_eq!(context.decode(0, 0, &[3, 4, 5]), Ok(0));
        context.logits(2).unwrap()
    });
    assert_eq!(rows[0], rows[1]);
}
