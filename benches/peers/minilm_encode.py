"""all-MiniLM-L6-v2 as people run it from Python: `tokenizers`, `onnxruntime`, and pooling in NumPy.

    python minilm_encode.py FOLDER THREADS BATCH TEXTS

FOLDER has `model.onnx` and `tokenizer.json`. Reads a line of JSON, a list of texts; prints one with their vectors, of length 1. Then
each empty line is a round: all texts again, and a line with the seconds it took.

The texts are put in the order of their lengths and cut into batches as infer's encoder does it: of up to BATCH tokens with the padding and
up to TEXTS texts, so that padding and batches cost least in all. Which those are is found before the clock runs.
"""

import json
import sys
import time
from pathlib import Path

import numpy
import onnxruntime
import tokenizers


# What a batch costs beside its tokens, in tokens.
EACH = 16


class Encoder:
    def __init__(self, folder, threads, batch, texts):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])
        self.inputs = {port.name for port in self.session.get_inputs()}
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.room = batch, texts
        self.batches = []

    def tokens(self, texts):
        return [encoding.ids for encoding in self.tokenizer.encode_batch(texts)]

    def encode(self, texts):
        encoded = self.tokens(texts)
        vectors = [None] * len(texts)
        for batch in self.batches:
            for index, vector in zip(batch, self.run([encoded[index] for index in batch])):
                vectors[index] = vector
        return vectors

    def plan(self, lengths):
        tokens, texts = self.room
        order = sorted(range(len(lengths)), key=lambda text: -lengths[text])
        cost, before = [0], [0]
        for end in range(1, len(order) + 1):
            ways = []
            for begin in range(end - 1, max(end - texts, 0) - 1, -1):
                padded = (end - begin) * lengths[order[begin]]
                if end - begin > 1 and padded > tokens:
                    break
                ways.append((cost[begin] + EACH + padded, begin))
            # Of two that cost the same the one with fewer texts.
            least = min(ways, key=lambda way: way[0])
            cost.append(least[0])
            before.append(least[1])
        end = len(order)
        while end > 0:
            self.batches.insert(0, order[before[end] : end])
            end = before[end]

    def run(self, texts):
        longest = max(map(len, texts))
        ids = numpy.zeros((len(texts), longest), numpy.int64)
        mask = numpy.zeros((len(texts), longest), numpy.int64)
        for row, text in enumerate(texts):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        hidden = self.session.run(None, {name: feed[name] for name in self.inputs})[0]
        weight = mask[:, :, None].astype(numpy.float32)
        mean = (hidden * weight).sum(axis=1) / weight.sum(axis=1)
        return mean / numpy.linalg.norm(mean, axis=1, keepdims=True)


def main(folder, threads, batch, texts):
    encoder = Encoder(Path(folder), threads, batch, texts)
    texts = json.loads(sys.stdin.readline())
    encoder.plan([len(text) for text in encoder.tokens(texts)])
    print(json.dumps([vector.tolist() for vector in encoder.encode(texts)]), flush=True)
    for _ in sys.stdin:
        begun = time.perf_counter()
        encoder.encode(texts)
        print(time.perf_counter() - begun, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
