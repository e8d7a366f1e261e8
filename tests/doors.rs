//! The linked door and the loaded one in one process: two copies of llama.cpp that know nothing of each other.

use infer::{Library, ModelSource};
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
