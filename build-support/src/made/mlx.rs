//! The models that MLX reads.

use super::{Made, Scripts};
use crate::python::Packages;

/// All of them. Beside each tiny one lies what mlx-lm computes with it: `expected.safetensors` (`fixtures/mlx_expected.py`).
pub const MLX: &[Made] = &[
    made(
        "tiny-mlx-llama",
        "a Llama 3 with random weights: positions scaled by their wavelengths, the head tied to the embedding",
        "tiny-llama",
        "aee89515e58bc413c62dd3bd5cf0ab2e6c928812692c22488da473d17dcc5600",
    ),
    made(
        "tiny-mlx-llama-f16",
        "the same numbers as floats of 16 bits",
        "tiny-llama",
        "fd40db081487be09aa13d52bd5cce1472d27de0347ae938559d0ed84962e9794",
    ),
    made(
        "tiny-mlx-llama-bf16",
        "the same numbers as bfloat16",
        "tiny-llama",
        "624a30b87aa157e5a53f3943ea4db45bea4cfdf8980ca6ea2515f6b5290725a3",
    ),
    made(
        "tiny-mlx-llama-sharded",
        "a Llama with biases, a head of its own and positions scaled alike, in three files",
        "tiny-llama",
        "a885a01a9b98852a86681649907b03f8fa25eed35cb6e4a6738c71a5c5024861",
    ),
    made(
        "tiny-mlx-llama-4bit",
        "a Llama 3 with 4 bits a weight, 64 weights a scale, and bfloat16",
        "tiny-llama",
        "35c025e4f4df37bfdd90e93472289d3a6d1317f9a2c20f41df37b969b2eabe63",
    ),
    made(
        "tiny-mlx-llama-mixed",
        "a Llama with 2 to 8 bits a weight and 32 to 128 weights a scale, by module, and some modules as they were",
        "tiny-llama",
        "49c6263611c68119b42d0cbc0ecb466cc9fe3f9ce1cbd276322ba5641f8375ec",
    ),
    made(
        "tiny-mlx-mistral",
        "a Mistral whose configuration names a window for no layer: mlx-lm computes it without one",
        "tiny-llama",
        "136d6ef895b539d6dfa3fdc768f1f41aad580b78efd7941bc7874c6943bb7614",
    ),
    made(
        "tiny-mlx-mistral-windows",
        "a Mistral with a window of 16 positions in two of three layers",
        "tiny-llama",
        "bea55291ce64e7ed9375f278b74f6d0c8e61fbdf942c1626c22411012ce3e37d",
    ),
    made(
        "tiny-mlx-qwen2",
        "a Qwen2: biases of queries, keys and values",
        "tiny-llama",
        "0cd1ad5930cc064fa574c6c9c7f7e8d0951298a6739fc493e185577279e57447",
    ),
    made(
        "tiny-mlx-qwen3",
        "a Qwen3: norms of queries and keys",
        "tiny-llama",
        "ec9217878f9d2fb44864504d038368a7d2b6a3e17ed38ae92fdff23733611a3f",
    ),
    made(
        "tiny-mlx-gemma3",
        "a Gemma 3 with a window of 16 positions in four of six layers",
        "tiny-llama",
        "6890b4d20ce0477d80ca6073680f03db73745b50e91d3eca3796a62e35055e6b",
    ),
    made(
        "tiny-mlx-gemma3-bf16",
        "the same numbers as bfloat16",
        "tiny-llama",
        "9a8fd3f622887ea5be06fc767b247e683500d8f9784762899f0dd836c186dd7c",
    ),
    made(
        "tiny-mlx-phi3",
        "a Phi-3: queries, keys and values in one matrix",
        "tiny-llama",
        "35059df5f65dd7edd8c57ea8642af9aac5e51ed8f13a2ed971d99b59470afbad",
    ),
    made(
        "tiny-mlx-phi3-longrope",
        "a Phi-3 whose positions turn three quarters of a head, by factors of its own",
        "tiny-llama",
        "505e06eb0f576fc920a4130d377736e0a2b33da6f89274d440a4a585bfd5aae8",
    ),
    Made {
        package: true,
        ..made(
            "minilm-mlx",
            "all-MiniLM-L6-v2 with everything beside it, as published",
            "minilm",
            "f64e2d9f0d70692eb78c9c16881dab276b793952bbf4600e782d4c88ab1acc66",
        )
    },
    made(
        "smollm2-mlx",
        "SmolLM2-135M-Instruct, the numbers of the Q4_1 file as 32-bit floats",
        "smollm2",
        "9dce287769d7bd3a8ecec8c68c76399f050a0a304c2c2dba9c6ee316534c14ca",
    ),
    made(
        "smollm2-mlx-4bit",
        "the same numbers in the blocks of the Q4_1 file: 4 bits a weight, 32 weights a scale, and the embedding with 8 bits",
        "smollm2",
        "cb9adfaa22ca0ee6e8f8e61771f03f72e145a285714224532b46d7fc9e05466f",
    ),
];

const fn made(name: &'static str, about: &'static str, from: &'static str, sha256: &'static str) -> Made {
    Made { name, about, from, package: false, file: None, sha256, by: &SCRIPTS }
}

static SCRIPTS: Scripts = Scripts {
    packages: Packages::Mlx,
    files: &[
        ("make_mlx.py", include_str!("../../fixtures/make_mlx.py")),
        ("decoder.py", include_str!("../../fixtures/decoder.py")),
        ("files.py", include_str!("../../fixtures/files.py")),
        ("gguf.py", include_str!("../../fixtures/gguf.py")),
        ("mlx_expected.py", include_str!("../../fixtures/mlx_expected.py")),
        ("mlx_lm_alone.py", include_str!("../../fixtures/mlx_lm_alone.py")),
        ("mlx_smollm2.py", include_str!("../../fixtures/mlx_smollm2.py")),
        ("mlx_tiny.py", include_str!("../../fixtures/mlx_tiny.py")),
        ("safetensors_file.py", include_str!("../../fixtures/safetensors_file.py")),
        ("tokenizer.py", include_str!("../../fixtures/tokenizer.py")),
    ],
};
