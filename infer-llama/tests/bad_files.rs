//! Files that are wrong, each opened in a child process: an abort, a signal or a hang is a failed case, and so is an error
//! that does not name the file and the field.

mod kit;

use infer_core::{Batch, ErrorKind, OpenOptions, Result, Sampling, Session as _, Special, Token, Tokenizer as _, Want};
use infer_llama::{Llama, Model, SessionOptions, Tokenizer};
use kit::{
    gguf::{Field, Gguf, Tensor},
    tiny,
};
use std::path::{Path, PathBuf};
use test_kit::{Folder, Random, child};

/// Not a case by itself: what the children run.
#[test]
fn open_and_decode() {
    let Some(path) = child::file() else { return };
    match decode_a_little(&path) {
        Ok(()) => child::answer("a model"),
        Err(error) => child::answer(&format!("{:?}: {}", error.kind(), error.to_string().replace('\n', " "))),
    }
}

/// As far as a header can do damage: loaded, a text encoded, a context made, a prompt and a token computed.
fn decode_a_little(path: &Path) -> Result<()> {
    let model = Model::open(&Llama::linked()?, path)?;
    model.tokenizer().encode("A word, é\n", Special::ADD, &mut Vec::new())?;
    let mut session = model.session(&SessionOptions::new().with_context(64).with_threads(1))?;
    let seq = session.open(&OpenOptions::default())?;
    let prompt = [1, 2, 3].map(Token);
    session.sample_with(&seq, &Sampling::greedy(), &prompt)?;
    let mut batch = Batch::new();
    batch.push(&seq, &prompt, Want::Token);
    session.decode(&batch)?;
    let next = session.outputs().token(0).expect("a token was wanted");
    batch.clear();
    batch.push(&seq, &[next], Want::Token);
    session.decode(&batch)
}

fn open(path: &Path) -> Result<String, String> {
    child::open_in_child("open_and_decode", path)
}

/// Opens the file and wants an error of this kind whose text has all of `words`, the file's name among them.
#[track_caller]
fn refused(path: &Path, kind: ErrorKind, words: &[&str]) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let said = open(path).unwrap_or_else(|end| panic!("{name}: {end}"));
    let wanted = format!("{kind:?}: ");
    assert!(said.starts_with(&wanted), "{name}: {said}, not {kind:?}");
    for word in words.iter().chain([&name]) {
        assert!(said.contains(word), "{name}: no {word:?} in {said}");
    }
}

#[test]
fn the_model_these_are_made_of_is_good() {
    let folder = Folder::new();
    let path = folder.file("tiny.gguf", &tiny::llama().bytes());
    assert_eq!(open(&path).unwrap(), "a model");
}

#[test]
fn no_file_at_all() {
    let folder = Folder::new();
    refused(&folder.path().join("missing.gguf"), ErrorKind::Io, &["No such file"]);
    refused(folder.path(), ErrorKind::Io, &["is a directory"]);
    refused(&folder.file("empty.gguf", b""), ErrorKind::InvalidModel, &["the file is empty"]);
}

#[test]
fn wrong_magic_and_versions() {
    let folder = Folder::new();
    let good = tiny::llama().bytes();
    let with = |name: &str, at: usize, bytes: &[u8]| {
        let mut file = good.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        folder.file(name, &file)
    };
    refused(&with("magic.gguf", 0, b"GGML"), ErrorKind::InvalidModel, &["GGML", "GGUF"]);
    refused(&with("v0.gguf", 4, &0_u32.to_le_bytes()), ErrorKind::InvalidModel, &["version 0"]);
    refused(&with("v1.gguf", 4, &1_u32.to_le_bytes()), ErrorKind::InvalidModel, &["version 1"]);
    refused(&with("v4.gguf", 4, &4_u32.to_le_bytes()), ErrorKind::InvalidModel, &["version 4"]);
    refused(&with("big-endian.gguf", 4, &3_u32.to_be_bytes()), ErrorKind::InvalidModel, &["byte order"]);
}

/// Counts and lengths that claim more than there is: refused at once, without memory for what is claimed.
#[test]
fn counts_that_overflow() {
    let folder = Folder::new();
    let good = tiny::llama().bytes();
    let with = |name: &str, at: usize, number: u64| {
        let mut file = good.clone();
        file[at..at + 8].copy_from_slice(&number.to_le_bytes());
        folder.file(name, &file)
    };
    for (index, number) in [1 << 60, u64::MAX, 1 << 32, i64::MAX as u64].into_iter().enumerate() {
        refused(
            &with(&format!("tensors-{index}.gguf"), 8, number),
            ErrorKind::InvalidModel,
            &["the number of tensors"],
        );
        refused(&with(&format!("fields-{index}.gguf"), 16, number), ErrorKind::InvalidModel, &["metadata fields"]);
        refused(&with(&format!("key-{index}.gguf"), 24, number), ErrorKind::InvalidModel, &["metadata field 0"]);
    }
    let mut array = tiny::llama();
    let claim = [4_u32.to_le_bytes().as_slice(), &(1_u64 << 60).to_le_bytes()].concat();
    array.set("llama.lies", Field::Raw(9, claim));
    refused(&folder.file("array.gguf", &array.bytes()), ErrorKind::InvalidModel, &["llama.lies"]);
}

#[test]
fn fifty_truncations() {
    let folder = Folder::new();
    let good = tiny::llama().bytes();
    let header = tiny::llama().header().len() as u64;
    let mut random = Random(20_240_607);
    for number in 0..50 {
        // Half of them inside the header, which is a small part of the file.
        let end = if number % 2 == 0 { random.below(header) } else { random.below(good.len() as u64 - 32) };
        let path = folder.file(&format!("truncated-{end}.gguf"), &good[..end as usize]);
        let word = if end == 0 {
            "empty"
        } else if end < 8 {
            ""
        } else {
            "truncated"
        };
        let said = open(&path).unwrap_or_else(|how| panic!("cut at {end}: {how}"));
        let names = said.contains(&format!("truncated-{end}.gguf"));
        // Counts may be found out before the end of the file is met.
        let reason = said.contains(word) || said.contains("cannot hold them") || said.contains("this is no GGUF file");
        assert!(said.starts_with("InvalidModel: ") && names && reason, "cut at {end}: {said}");
    }
}

/// A case: what is done to the good model, and words that the error has to have.
type Case = (&'static str, fn(&mut Gguf), &'static [&'static str]);

fn set(gguf: &mut Gguf, key: &str, value: Field) {
    gguf.set(key, value);
}

#[track_caller]
fn all_refused(cases: &[Case]) {
    let folder = Folder::new();
    for (name, change, words) in cases {
        let mut gguf = tiny::llama();
        change(&mut gguf);
        let path = folder.file(&format!("{name}.gguf"), &gguf.bytes());
        refused(&path, ErrorKind::InvalidModel, words);
    }
}

#[test]
fn fields_that_describe_the_network() {
    all_refused(&[
        ("no-architecture", |g| _ = g.remove("general.architecture"), &["general.architecture"]),
        ("nul-in-architecture", |g| set(g, "general.architecture", Field::text("llama\0x")), &["general.architecture"]),
        ("clip", |g| set(g, "general.architecture", Field::text("clip")), &["clip"]),
        ("unknown-architecture", |g| set(g, "general.architecture", Field::text("nobody")), &["nobody"]),
        ("blocks-0", |g| set(g, "llama.block_count", Field::U32(0)), &["llama.block_count is 0"]),
        ("blocks-513", |g| set(g, "llama.block_count", Field::U32(513)), &["llama.block_count is 513"]),
        ("blocks-max", |g| set(g, "llama.block_count", Field::U32(u32::MAX)), &["llama.block_count"]),
        ("blocks-type", |g| set(g, "llama.block_count", Field::I32(2)), &["llama.block_count is of type i32"]),
        ("nextn", |g| set(g, "llama.nextn_predict_layers", Field::U32(3)), &["llama.nextn_predict_layers"]),
        ("context-0", |g| set(g, "llama.context_length", Field::U32(0)), &["llama.context_length is 0"]),
        ("context-max", |g| set(g, "llama.context_length", Field::U32(u32::MAX)), &["llama.context_length"]),
        ("no-context", |g| _ = g.remove("llama.context_length"), &["llama.context_length is missing"]),
        ("width-0", |g| set(g, "llama.embedding_length", Field::U32(0)), &["llama.embedding_length"]),
        ("epsilon-negative", |g| set(g, EPSILON, Field::F32(-1e-5)), &[EPSILON]),
        ("epsilon-nan", |g| set(g, EPSILON, Field::F32(f32::NAN)), &[EPSILON]),
        ("epsilon-infinite", |g| set(g, EPSILON, Field::F32(f32::INFINITY)), &[EPSILON]),
        ("rope-base-nan", |g| set(g, "llama.rope.freq_base", Field::F32(f32::NAN)), &["llama.rope.freq_base"]),
        (
            "rope-base-infinite",
            |g| set(g, "llama.rope.freq_base", Field::F32(f32::INFINITY)),
            &["llama.rope.freq_base"],
        ),
        ("rope-base-0", |g| set(g, "llama.rope.freq_base", Field::F32(0.0)), &["llama.rope.freq_base"]),
        ("rope-base-negative", |g| set(g, "llama.rope.freq_base", Field::F32(-1.0)), &["llama.rope.freq_base"]),
        ("rope-factor", |g| set(g, "llama.rope.scaling.factor", Field::F32(-2.0)), &["llama.rope.scaling.factor"]),
        ("rope-type", |g| set(g, "llama.rope.scaling.type", Field::text("su")), &["llama.rope.scaling.type"]),
        ("rope-odd", |g| reshape_heads(g, 2, 15, 15), &["llama.rope.dimension_count"]),
        ("rope-long", |g| set(g, "llama.rope.dimension_count", Field::U32(32)), &["llama.rope.dimension_count is 32"]),
        ("heads-0", |g| set(g, "llama.attention.head_count", Field::U32(0)), &["llama.attention.head_count"]),
        ("heads-many", |g| set(g, "llama.attention.head_count", Field::U32(1 << 31)), &["heads"]),
        ("heads-uneven", |g| reshape_heads(g, 3, 16, 16), &["llama.attention.head_count_kv"]),
        (
            "heads-array",
            |g| set(g, "llama.attention.head_count", Field::U32s(vec![4])),
            &["llama.attention.head_count"],
        ),
        ("heads-negative", |g| set(g, "llama.attention.head_count", Field::I32s(vec![-4, 4])), &["head_count"]),
        ("key-length-0", |g| set(g, "llama.attention.key_length", Field::U32(0)), &["llama.attention.key_length"]),
        ("value-length", |g| reshape_heads(g, 2, 16, 32), &["llama.attention.value_length"]),
        ("experts-unused", |g| set(g, "llama.expert_count", Field::U32(4)), &["llama.expert_used_count"]),
        ("experts-none", |g| set(g, "llama.expert_used_count", Field::U32(4)), &["llama.expert_used_count"]),
        ("experts-many", |g| set(g, "llama.expert_count", Field::U32(5000)), &["llama.expert_count"]),
        ("groups", |g| set(g, "llama.expert_group_count", Field::U32(2)), &["llama.expert_group_count"]),
        ("sections-missing", |g| rename(g, "paddleocr"), &["paddleocr.rope.dimension_sections is missing"]),
        ("sections-last", |g| sections(g, [0, 0, 0, 8]), &["paddleocr.rope.dimension_sections is [0, 0, 0, 8]"]),
        ("sections-long", |g| sections(g, [8, 8, 8, 0]), &["paddleocr.rope.dimension_sections is [8, 8, 8, 0]"]),
        ("sections-negative", |g| sections(g, [8, -8, 4, 4]), &["paddleocr.rope.dimension_sections"]),
        ("sections-overflow", |g| sections(g, [i32::MAX, i32::MAX, 2, 8]), &["paddleocr.rope.dimension_sections"]),
        ("step", |g| rename(g, "ernie4_5-moe"), &["ernie4_5-moe.interleave_moe_layer_step"]),
        ("pooling", |g| set(g, "llama.pooling_type", Field::U32(9)), &["llama.pooling_type is 9"]),
        ("nan", |g| set(g, "llama.logit_scale", Field::F32(f32::NAN)), &["llama.logit_scale"]),
    ]);
}

const EPSILON: &str = "llama.attention.layer_norm_rms_epsilon";

/// Another architecture with the same numbers and tensors.
fn rename(gguf: &mut Gguf, architecture: &str) {
    for (key, _) in &mut gguf.fields {
        if let Some(name) = key.strip_prefix(b"llama.") {
            *key = [architecture.as_bytes(), b".", name].concat();
        }
    }
    gguf.set("general.architecture", Field::text(architecture));
}

/// Positions with several coordinates: heads of 16 numbers, so many of which turn with each.
fn sections(gguf: &mut Gguf, sizes: [i32; 4]) {
    rename(gguf, "paddleocr");
    gguf.set("paddleocr.rope.dimension_sections", Field::I32s(sizes.to_vec()));
}

#[test]
fn positions_with_several_coordinates() {
    let folder = Folder::new();
    let mut gguf = tiny::llama();
    sections(&mut gguf, [4, 2, 2, 0]);
    assert_eq!(open(&folder.file("sections.gguf", &gguf.bytes())).unwrap(), "a model");
}

/// Heads of other lengths or numbers, with tensors that fit them: llama.cpp checks no more than the fit.
fn reshape_heads(gguf: &mut Gguf, kv_heads: u32, key: u32, value: u32) {
    gguf.set("llama.attention.head_count_kv", Field::U32(kv_heads))
        .set("llama.attention.key_length", Field::U32(key))
        .set("llama.attention.value_length", Field::U32(value))
        .set("llama.rope.dimension_count", Field::U32(key));
    let (heads, kv_heads, key, value) = (u64::from(tiny::HEADS), u64::from(kv_heads), u64::from(key), u64::from(value));
    for layer in 0..tiny::LAYERS {
        let shapes = [
            ("attn_q", [tiny::WIDTH, heads * key]),
            ("attn_k", [tiny::WIDTH, kv_heads * key]),
            ("attn_v", [tiny::WIDTH, kv_heads * value]),
            ("attn_output", [heads * key, tiny::WIDTH]),
        ];
        for (name, shape) in shapes {
            let tensor = gguf.tensor(&format!("blk.{layer}.{name}.weight"));
            tensor.data = vec![0; (shape[0] * shape[1] * 4) as usize];
            tensor.shape = shape.to_vec();
        }
    }
}

#[test]
fn fields_that_describe_the_vocabulary() {
    all_refused(&[
        ("eos", |g| set(g, "tokenizer.ggml.eos_token_id", Field::U32(1_000_000_000)), &["tokenizer.ggml.eos_token_id"]),
        ("bos", |g| set(g, "tokenizer.ggml.bos_token_id", Field::U32(259)), &["tokenizer.ggml.bos_token_id is 259"]),
        ("fim", |g| set(g, "tokenizer.ggml.fim_pre_token_id", Field::U32(u32::MAX)), &["fim_pre_token_id"]),
        ("eos-type", |g| set(g, "tokenizer.ggml.eos_token_id", Field::I32(-1)), &["tokenizer.ggml.eos_token_id"]),
        ("size-10", |g| set(g, "llama.vocab_size", Field::U32(10)), &["llama.vocab_size is 10"]),
        ("size-2-31", |g| set(g, "llama.vocab_size", Field::U32(1 << 31)), &["llama.vocab_size"]),
        ("dummies", |g| dummies(g), &["llama.vocab_size"]),
        ("no-model", |g| _ = g.remove("tokenizer.ggml.model"), &["tokenizer.ggml.model"]),
        ("no-tokens", |g| _ = g.remove("tokenizer.ggml.tokens"), &["tokenizer.ggml.tokens"]),
        ("empty-tokens", |g| g.strings(TOKENS).clear(), &["tokenizer.ggml.tokens is empty"]),
        ("tokens-type", |g| set(g, TOKENS, Field::I32s(vec![1, 2, 3])), &["tokenizer.ggml.tokens"]),
        ("twins", |g| g.strings(TOKENS)[5] = b"A".to_vec(), &["tokenizer.ggml.tokens: token 65"]),
        ("twins-before-nul", |g| g.strings(TOKENS)[200] = b"A\0B".to_vec(), &["tokenizer.ggml.tokens: token 200"]),
        ("named-empty", |g| named_empty(g), &["tokenizer.ggml.tokens"]),
        ("merge", |g| set(g, MERGES, Field::Strs(vec![b"ab".to_vec()])), &["tokenizer.ggml.merges: merge 0"]),
        ("merge-empty", |g| set(g, MERGES, Field::Strs(vec![b"".to_vec()])), &["tokenizer.ggml.merges"]),
        ("add-bos", |g| no_bos(g), &["tokenizer.ggml.add_bos_token"]),
        ("byte", |g| byte_in_words(g), &["tokenizer.ggml.token_type: token 70"]),
        ("spaces", |g| set(g, "tokenizer.ggml.pre", Field::text("whitespace")), &["tokenizer.ggml.pre is whitespace"]),
        ("rwkv", |g| rwkv(g, "B", r"\x41B"), &["tokenizer.ggml.tokens: token 256 begins with the byte 0x41"]),
        ("misspelt-byte", |g| set(g, TYPES, Field::I32s([6; 259].to_vec())), &["tokenizer.ggml.token_type"]),
    ]);
}

const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";

/// No vocabulary, and more made-up tokens than memory.
fn dummies(gguf: &mut Gguf) {
    gguf.set("tokenizer.ggml.model", Field::text("no_vocab")).set("llama.vocab_size", Field::U32(1 << 31));
}

/// An empty token, and the name llama.cpp gives to it.
fn named_empty(gguf: &mut Gguf) {
    gguf.strings(TOKENS)[7].clear();
    gguf.strings(TOKENS)[9] = b"[EMPTY_7]".to_vec();
}

/// The default of this family is token 11, which there is; another family has none.
fn no_bos(gguf: &mut Gguf) {
    gguf.remove("tokenizer.ggml.bos_token_id")
        .set("tokenizer.ggml.pre", Field::text("chatglm-bpe"))
        .set("tokenizer.ggml.add_bos_token", Field::Bool(true));
}

fn byte_in_words(gguf: &mut Gguf) {
    let types = (0..259).map(|id| if id == 70 { 6 } else { 1 }).collect();
    gguf.strings(TOKENS)[70] = b"<0x0A>".to_vec();
    gguf.set("tokenizer.ggml.model", Field::text("bert")).set(TYPES, Field::I32s(types));
}

/// A vocabulary with a token for each byte, spelt with escapes, and a longer one; in place of the token for `A`, another.
fn rwkv(gguf: &mut Gguf, instead: &str, longer: &str) {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| format!("\\x{byte:02x}").into_bytes()).collect();
    tokens[0] = b"<s>".to_vec();
    tokens[65] = instead.as_bytes().to_vec();
    tokens.extend([longer.as_bytes().to_vec(), br"\n\n".to_vec(), br"\\word".to_vec()]);
    gguf.set("tokenizer.ggml.model", Field::text("rwkv")).set(TOKENS, Field::Strs(tokens));
}

/// What the case above is like without its fault.
#[test]
fn a_vocabulary_that_is_spelt_with_escapes() {
    let folder = Folder::new();
    let mut gguf = tiny::llama();
    rwkv(&mut gguf, "A", r"\x41B");
    assert_eq!(open(&folder.file("rwkv.gguf", &gguf.bytes())).unwrap(), "a model");
}

/// A pattern cuts a text into words, and its matcher calls itself for each character of one: what anybody may send must not end the
/// process. Each in a child, of which the test runs on a thread with the usual stack.
#[test]
fn words_without_end() {
    let folder = Folder::new();
    for pre in ["default", "deepseek-llm", "tekken", "gpt-4o", "tiny_aya", "youtu"] {
        let mut gguf = tiny::llama();
        gguf.set("tokenizer.ggml.pre", Field::text(pre));
        let path = folder.file(&format!("{pre}.gguf"), &gguf.bytes());
        assert_eq!(child::open_in_child("encode_long_words", &path).unwrap(), "encoded", "{pre}");
    }
}

/// Not a case by itself: what the children run.
#[test]
fn encode_long_words() {
    let Some(path) = child::file() else { return };
    let tokenizer = Tokenizer::open(&Llama::linked().unwrap(), path).unwrap();
    for word in ["a", "aA", "a ", " ", "1", "!", "\n", "漢", "a\u{301}"] {
        let mut tokens = Vec::new();
        tokenizer.encode(&word.repeat(20_000), Special::NONE, &mut tokens).unwrap();
        assert_eq!(tokens.len(), 20_000 * word.len(), "a token a byte");
    }
    child::answer("encoded");
}

#[test]
fn tensors() {
    all_refused(&[
        ("none", |g| g.tensors.clear(), &["no tensors"]),
        ("missing", |g| g.tensors.retain(|t| t.name != "blk.0.attn_q.weight"), &["attn_q.weight"]),
        ("shape", |g| g.tensor("output_norm.weight").shape = vec![32, 2], &["output_norm.weight"]),
        ("empty", |g| g.tensor("output_norm.weight").shape = vec![0], &["output_norm.weight"]),
        ("overflow", |g| g.tensor("output_norm.weight").shape = vec![1 << 40, 1 << 40], &["output_norm.weight"]),
        (
            "rank",
            |g| g.tensor("output_norm.weight").shape = vec![1, 2, 2, 4, 4],
            &["output_norm.weight", "5 dimensions"],
        ),
        ("type-99", |g| g.tensor("output_norm.weight").dtype = 99, &["output_norm.weight", "type 99"]),
        ("type-removed", |g| g.tensor("token_embd.weight").dtype = 4, &["token_embd.weight", "type 4"]),
        ("norm-f16", |g| halved(g, "blk.0.attn_norm.weight", 1), &["blk.0.attn_norm.weight", "F16"]),
        ("norm-q8", |g| quantised(g, "output_norm.weight", 8, 34), &["output_norm.weight", "Q8_0"]),
        ("scale-f16", |g| add(g, "blk.0.attn_q.scale", &[], 1, 2), &["blk.0.attn_q.scale", "F16"]),
        ("input-scale-f16", |g| add(g, "blk.0.ffn_up.input_scale", &[1], 1, 2), &["blk.0.ffn_up.input_scale", "F16"]),
        ("sinks-f16", |g| add(g, "blk.0.attn_sinks.weight", &[4], 1, 8), &["blk.0.attn_sinks.weight", "F16"]),
        ("weights-i32", |g| g.tensor("blk.0.attn_q.weight").dtype = 26, &["blk.0.attn_q.weight", "I32"]),
        ("weights-q8_1", |g| quantised(g, "blk.0.attn_q.weight", 9, 36), &["blk.0.attn_q.weight", "Q8_1"]),
        ("embeddings-i16", |g| halved(g, "token_embd.weight", 25), &["token_embd.weight", "I16"]),
        ("twice", |g| g.tensors[4].name = "output_norm.weight".into(), &["output_norm.weight is there twice"]),
        ("long-name", |g| g.tensors[4].name = "x".repeat(64), &["the name of tensor 4"]),
        ("alignment-8", |g| unaligned(g), &["multiple of 32"]),
        ("alignment-0", |g| set(g, "general.alignment", Field::U32(0)), &["general.alignment is 0"]),
        ("alignment-type", |g| set(g, "general.alignment", Field::U64(32)), &["general.alignment"]),
        (
            "key-twice",
            |g| g.fields.push(("llama.vocab_size".into(), Field::U32(259))),
            &["llama.vocab_size is there twice"],
        ),
        ("key-nul", |g| g.fields.push((b"llama.x\0".to_vec(), Field::U32(1))), &["metadata field"]),
        (
            "nested",
            |g| set(g, "llama.nested", Field::Raw(9, [[9, 0, 0, 0], [0; 4], [0; 4]].concat())),
            &["llama.nested"],
        ),
    ]);
}

/// One tensor more, of `bytes` bytes.
fn add(gguf: &mut Gguf, name: &str, shape: &[u64], dtype: u32, bytes: usize) {
    gguf.tensors.push(Tensor { name: name.into(), shape: shape.to_vec(), dtype, data: vec![0; bytes] });
}

/// 16-bit numbers of type `dtype` where 32-bit ones were.
fn halved(gguf: &mut Gguf, name: &str, dtype: u32) {
    let tensor = gguf.tensor(name);
    tensor.data.truncate(tensor.data.len() / 2);
    tensor.dtype = dtype;
}

/// Blocks of 32 numbers in `bytes` bytes where 32-bit numbers were.
fn quantised(gguf: &mut Gguf, name: &str, dtype: u32, bytes: usize) {
    let tensor = gguf.tensor(name);
    tensor.data.truncate(tensor.data.len() / 4 / 32 * bytes);
    tensor.dtype = dtype;
}

/// A legal alignment at which ggml asserts when the file is mapped; the name makes the header end off a multiple of 32.
fn unaligned(gguf: &mut Gguf) {
    gguf.alignment = 8;
    gguf.set("general.alignment", Field::U32(8));
    while gguf.header().len().is_multiple_of(32) {
        gguf.set(&format!("general.pad{}", gguf.fields.len()), Field::U8(0));
    }
}

/// Headers changed at random: an error or a model, never the end of the process.
#[test]
fn two_hundred_mutations() {
    let folder = Folder::new();
    let good = tiny::llama();
    let (bytes, header) = (good.bytes(), good.header().len() as u64);
    let mut random = Random(99);
    let mut models = 0;
    for number in 0..200 {
        let mut file = bytes.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(header) as usize;
            file[at] = match random.below(4) {
                0 => 0,
                1 => 0xff,
                2 => file[at] ^ (1 << random.below(8)),
                _ => random.next() as u8,
            };
        }
        let path = folder.file("mutated.gguf", &file);
        let said = open(&path).unwrap_or_else(|end| panic!("mutation {number}: {end}"));
        models += u32::from(said == "a model");
        assert!(
            said == "a model" || said.contains("mutated.gguf") || !said.starts_with("Io"),
            "mutation {number}: {said}"
        );
    }
    assert!(models > 0, "some changes hurt nobody");
}

/// Numbers of the network changed at random, one at a time, with everything else right: what random bytes rarely hit.
#[test]
fn two_hundred_odd_numbers() {
    let folder = Folder::new();
    let mut random = Random(4711);
    let good = tiny::llama();
    let numbers: Vec<usize> =
        (0..good.fields.len()).filter(|&index| matches!(good.fields[index].1, Field::U32(_) | Field::F32(_))).collect();
    for number in 0..200 {
        let mut gguf = good.clone();
        let index = numbers[random.below(numbers.len() as u64) as usize];
        let odd = [0, 1, 2, 3, 5, 7, 15, 64, 255, 1024, 1 << 16, i32::MAX as u32, 1 << 31, u32::MAX];
        let odd_floats = [0.0, -0.0, -1.0, 1e-40, 1e38, f32::MAX, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let (key, value) = &mut gguf.fields[index];
        *value = match value {
            Field::U32(_) => Field::U32(odd[random.below(odd.len() as u64) as usize]),
            _ => Field::F32(odd_floats[random.below(odd_floats.len() as u64) as usize]),
        };
        let key = String::from_utf8_lossy(key).into_owned();
        let path = folder.file("odd.gguf", &gguf.bytes());
        if let Err(end) = open(&path) {
            panic!("case {number}, {key}: {end}");
        }
    }
}

type SplitCase = (&'static str, fn(&mut [Gguf; 2]), &'static [&'static str]);

/// Parts that do not belong together.
#[test]
fn split_models() {
    let folder = Folder::new();
    let parts = tiny::split(tiny::llama());
    let write = |prefix: &str, parts: &[Gguf; 2]| -> PathBuf {
        folder.file(&format!("{prefix}-00002-of-00002.gguf"), &parts[1].bytes());
        folder.file(&format!("{prefix}-00001-of-00002.gguf"), &parts[0].bytes())
    };
    assert_eq!(open(&write("good", &parts)).unwrap(), "a model");

    let cases: [SplitCase; 6] = [
        ("number-type", |p| set(&mut p[1], "split.no", Field::U32(1)), &["split.no is of type u32"]),
        ("number", |p| set(&mut p[1], "split.no", Field::U16(0)), &["split.no is 0"]),
        ("no-number", |p| _ = p[1].remove("split.no"), &["split.no is missing"]),
        ("count", |p| set(&mut p[1], "split.count", Field::U16(3)), &["split.count is 3"]),
        ("tensors", |p| _ = p[1].tensors.pop(), &["split.tensors.count"]),
        ("twins", |p| p[1].tensors[0].name = p[0].tensors[0].name.clone(), &["token_embd.weight"]),
    ];
    for (name, change, words) in cases {
        let mut parts = parts.clone();
        change(&mut parts);
        let path = write(name, &parts);
        let said = open(&path).unwrap();
        assert!(said.starts_with("InvalidModel: ") && said.contains(name), "{name}: {said}");
        words.iter().for_each(|word| assert!(said.contains(word), "{name}: no {word:?} in {said}"));
    }

    let second = folder.path().join("good-00002-of-00002.gguf");
    refused(&second, ErrorKind::InvalidModel, &["this is part 2 of 2", "good-00001-of-00002.gguf"]);
    let alone = folder.file("alone-00001-of-00002.gguf", &parts[0].bytes());
    let said = open(&alone).unwrap();
    assert!(said.starts_with("Io: ") && said.contains("alone-00002-of-00002.gguf"), "{said}");
    let renamed = folder.file("renamed.gguf", &parts[0].bytes());
    refused(&renamed, ErrorKind::InvalidModel, &["split.count"]);
}
