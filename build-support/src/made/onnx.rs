//! The models that ONNX Runtime reads, and llama.cpp beside it.

use super::{Made, Scripts};
use crate::python::Packages;

/// All of them.
pub const ONNX: &[Made] = &[
    made(
        "tiny-onnx",
        "tiny-llama as a folder of onnxruntime-genai: a graph with fused attention (GroupQueryAttention)",
        "tiny-llama",
        "158d34158b14f2f2eb7eb562e27f0a16ab92ac6557614a5fd9307f51cee0c85e",
    ),
    made(
        "tiny-onnx-int4",
        "the same with matrices of 4 bits a number (MatMulNBits)",
        "tiny-llama",
        "5eed8bcf69053dea6f826500cc46a92bab39409ce6af496d99cbb8d715ecb136",
    ),
    made(
        "tiny-onnx-f16",
        "the same with weights, cache and logits of 16 bits",
        "tiny-llama",
        "6481f3b569f7ba6e0ea5f7c80c9a86ad15dd1c044cea2437d43b66d4a9b1181e",
    ),
    made(
        "tiny-onnx-plain",
        "tiny-llama as a folder of optimum: attention in plain operators, with position_ids",
        "tiny-llama",
        "88d9716b356b9bdae9f500d3e9b3b61aa829021ece411995070b2bab2e67830d",
    ),
    made(
        "tiny-onnx-no-positions",
        "the same without position_ids: what is fed comes right after what is cached",
        "tiny-llama",
        "47912f3171f93118bf6e63671379527be97674c0366ff8b43647fc50e7f7f370",
    ),
    made(
        "tiny-onnx-merged",
        "the same as optimum made it before: a graph for first tokens, one for a token behind others, and one with both in it",
        "tiny-llama",
        "57e2b2305cf99e6a23e58949ed11374c61642ce70a500e6f248cfbc2cc884c1f",
    ),
    made(
        "tiny-onnx-encoder",
        "tiny-bert: a state a token, whose mean is the embedding",
        "tiny-bert",
        "c8f50a5ed8d027c8e51d8b3f8cc4e3e1666f4eb4746cc8551497e40df703c06d",
    ),
    made(
        "tiny-onnx-classifier",
        "tiny-rank: a number for each of three labels",
        "tiny-rank",
        "12fc029ac8b611080d3dd293d723aac97ead732e82207a26b860ddba89d6bd57",
    ),
    made(
        "tiny-onnx-reranker",
        "the same with the number for one label alone, and without token_type_ids",
        "tiny-rank",
        "029287180fcb45d7ad4c0b1ac8a29540842a4991f577fcb28c336719c304a84b",
    ),
    made(
        "minilm-onnx",
        "all-MiniLM-L6-v2, with its tokenizer as published, which cuts at 128 tokens and fills up to as many",
        "minilm",
        "4395b8fa36c0b69da4e0c75b95ac10069a62e47e3dd8caecc8078b6a23ba3f46",
    ),
    Made {
        file: Some("SmolLM2-135M-Instruct.F32.gguf"),
        ..made(
            "smollm2-f32",
            "SmolLM2-135M-Instruct as GGUF, the numbers of the Q4_1 file as 32-bit floats",
            "smollm2",
            "d75979ca658908a57b52c3ad2a683282e27a4c0addf4bfd104db444423309b42",
        )
    },
    made(
        "smollm2-onnx",
        "the same numbers as a folder of onnxruntime-genai: a graph with fused attention (GroupQueryAttention)",
        "smollm2",
        "9dbe1cbd13f8e9b984a79d69c193c14da0c1f2df2201d43b6fe9b262109cb887",
    ),
    made(
        "smollm2-onnx-int4",
        "the same with matrices of 4 bits a number (MatMulNBits), as the model builder makes them for a CPU",
        "smollm2",
        "2421932abe93fb5ca7b9f8e3f1ce4a9b66394324b563fd7c9665a8d0988dfb78",
    ),
    made(
        "smollm2-onnx-plain",
        "the same numbers as a folder of optimum: attention in plain operators, with position_ids",
        "smollm2",
        "e5de736b43b9ddcacff5d1c2f87a5c29fcb67883532c7371ec7b930645b4bbeb",
    ),
];

const fn made(name: &'static str, about: &'static str, from: &'static str, sha256: &'static str) -> Made {
    Made { name, about, from, package: false, file: None, sha256, by: &SCRIPTS }
}

static SCRIPTS: Scripts = Scripts {
    packages: Packages::Common,
    files: &[
        ("make.py", include_str!("../../fixtures/make.py")),
        ("decoder.py", include_str!("../../fixtures/decoder.py")),
        ("encoder.py", include_str!("../../fixtures/encoder.py")),
        ("files.py", include_str!("../../fixtures/files.py")),
        ("four_bits.py", include_str!("../../fixtures/four_bits.py")),
        ("genai.py", include_str!("../../fixtures/genai.py")),
        ("gguf.py", include_str!("../../fixtures/gguf.py")),
        ("graph.py", include_str!("../../fixtures/graph.py")),
        ("plain.py", include_str!("../../fixtures/plain.py")),
        ("tokenizer.py", include_str!("../../fixtures/tokenizer.py")),
    ],
};
