//! The tokenizer of ONNX models gives the tokens that llama.cpp gives, on the vectors that come with llama.cpp.

mod convert;

use infer::{Special, Token, Tokenizer, Vocab};
use infer_core::huggingface;
use infer_llama::{Llama, gguf};
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// Families of which there are vectors, and which `convert` describes.
const FAMILIES: [&str; 10] =
    ["bert-bge", "command-r", "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "refact", "starcoder"];

fn encode(tokenizer: &dyn Tokenizer, text: &str, special: Special) -> Vec<Token> {
    let mut tokens = Vec::new();
    tokenizer.encode(text, special, &mut tokens).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    tokens
}

fn vocabulary(name: &str) -> PathBuf {
    build_support::fixtures::vocabularies().unwrap().join(format!("ggml-vocab-{name}.gguf"))
}

/// The texts of the vectors of a vocabulary.
fn texts(model: &Path) -> Vec<String> {
    let texts = fs::read_to_string(model.with_extension("gguf.inp")).unwrap();
    texts.split("\n__ggml_vocab_test__\n").map(str::to_owned).collect()
}

/// Texts that mean something to one vocabulary or another.
fn texts_with_control() -> Vec<String> {
    let texts = [
        "<|im_start|>user\nGrüße, 世界!<|im_end|>\n<|endoftext|>",
        "<|begin_of_text|>a<|eot_id|>",
        "[CLS] hello [SEP][MASK] x [PAD]",
        "<s>one <unk> two<|end|>",
        "1234567 it's  we'LL\t\n\n  x\r\n",
    ];
    texts.map(str::to_owned).to_vec()
}

/// The tokenizers of a family: ours, and llama.cpp's.
struct Both {
    model: PathBuf,
    ours: huggingface::Tokenizer,
    theirs: infer_llama::Tokenizer,
}

/// Every family, opened once.
static ALL: LazyLock<HashMap<&str, Both>> = LazyLock::new(|| {
    let open = |family| {
        let model = vocabulary(family);
        (family, Both { ours: in_rust(&model), theirs: in_llama(&model), model })
    };
    FAMILIES.map(open).into()
});

fn in_rust(model: &Path) -> huggingface::Tokenizer {
    let header = gguf::open(model).unwrap();
    let json =
        convert::tokenizer_json(&header).unwrap_or_else(|| panic!("{} is of no family there is", model.display()));
    huggingface::Tokenizer::from_json(json.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn in_llama(model: &Path) -> infer_llama::Tokenizer {
    infer_llama::Tokenizer::open(&Llama::linked().unwrap(), model).unwrap()
}

#[test]
fn vectors_encode_to_the_tokens_that_llama_cpp_has() {
    let mut cases = 0;
    for (family, Both { model, ours, theirs }) in &*ALL {
        for text in texts(model) {
            let wanted = encode(theirs, &text, Special::NONE);
            assert_eq!(encode(ours, &text, Special::NONE), wanted, "{family}: {text:?}");
            cases += 1;
        }
    }
    assert!(cases > 400, "{cases}");
}

#[test]
fn control_tokens_are_recognised_where_llama_cpp_recognises_them() {
    for family in ["gpt-2", "llama-bpe", "qwen2", "command-r"] {
        let Both { ours, theirs, .. } = &ALL[family];
        for text in texts_with_control() {
            for special in [Special::NONE, Special::PARSE] {
                assert_eq!(
                    encode(ours, &text, special),
                    encode(theirs, &text, special),
                    "{family}: {text:?} {special:?}"
                );
            }
            let spelled = encode(ours, &text, Special::NONE);
            assert!(spelled.iter().all(|&token| !ours.vocab().is_control(token)), "{family}: {text:?}");
        }
    }
}

#[test]
fn tokens_are_the_bytes_that_llama_cpp_has() {
    for family in ["gpt-2", "llama-bpe", "llama-spm", "bert-bge"] {
        let Both { ours, theirs, .. } = &ALL[family];
        same_vocabulary(ours.vocab(), theirs.vocab(), family);
    }
}

fn same_vocabulary(ours: &Vocab, theirs: &Vocab, name: &str) {
    assert_eq!(
        (ours.len(), ours.kind(), ours.space_prefix()),
        (theirs.len(), theirs.kind(), theirs.space_prefix()),
        "{name}"
    );
    for token in (0..).map(Token).take(ours.len()) {
        assert_eq!(
            (ours.is_control(token), ours.bytes(token).map(<[u8]>::escape_ascii).map(|text| text.to_string())),
            (theirs.is_control(token), theirs.bytes(token).map(<[u8]>::escape_ascii).map(|text| text.to_string())),
            "{name}: token {token}"
        );
    }
}

/// SmolLM2 as it is: the folder that the project makes of the GGUF file.
#[test]
fn the_folder_of_smollm2_has_the_tokenizer_of_its_gguf_file() {
    let folder = build_support::fixtures::model("smollm2-onnx").unwrap();
    let ours = huggingface::Tokenizer::open(folder).unwrap();
    let theirs = in_llama(&build_support::fixtures::model("smollm2").unwrap());
    same_vocabulary(ours.vocab(), theirs.vocab(), "smollm2");
    let (roles, wanted) = (ours.vocab().special(), theirs.vocab().special());
    // Of several tokens that end a turn by their names llama.cpp takes whichever its table has first.
    assert!(theirs.vocab().is_end(roles.eot.unwrap()));
    assert_eq!((roles.bos, roles.eos, roles.pad), (wanted.bos, wanted.eos, wanted.pad));
    assert_eq!((roles.add_bos, roles.add_eos), (wanted.add_bos, wanted.add_eos));
    for token in (0..).map(Token).take(ours.vocab().len()) {
        assert_eq!(ours.vocab().is_end(token), theirs.vocab().is_end(token), "token {token}");
    }
    let all = FAMILIES.iter().flat_map(|family| texts(&vocabulary(family)));
    for text in all.chain(texts_with_control()) {
        for special in [Special::NONE, Special::ADD, Special::PARSE] {
            assert_eq!(encode(&ours, &text, special), encode(&theirs, &text, special), "{text:?} {special:?}");
        }
    }
}

/// MiniLM as it is: its own `tokenizer.json`, and llama.cpp's on the GGUF file that the project makes of it.
#[test]
fn the_folder_of_minilm_has_the_tokenizer_of_its_gguf_file() {
    let folder = build_support::fixtures::model("minilm-onnx").unwrap();
    let ours = huggingface::Tokenizer::open(folder).unwrap();
    let theirs = in_llama(&build_support::fixtures::model("minilm").unwrap());
    for text in texts(&vocabulary("bert-bge")).into_iter().chain(texts_with_control()) {
        for special in [Special::NONE, Special::ADD] {
            assert_eq!(encode(&ours, &text, special), encode(&theirs, &text, special), "{text:?} {special:?}");
        }
    }
    // Names in brackets that were never trained have a space before them in the GGUF file.
    let is_name = |token: Token| ours.vocab().bytes(token).is_some_and(|bytes| bytes.starts_with(b"[unused"));
    for token in (0..).map(Token).take(theirs.vocab().len()).filter(|&token| !is_name(token)) {
        assert_eq!(ours.vocab().bytes(token), theirs.vocab().bytes(token), "token {token}");
    }
}
