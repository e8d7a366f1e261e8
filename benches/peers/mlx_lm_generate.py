"""Greedy tokens by mlx-lm.

    python mlx_lm_generate.py FOLDER

Computes on the CPU, with the threads that MLX takes there: it has no setting for them, and its library of linear algebra none either.
Reads a line of JSON a task and prints one for each:

{"prompt": [token…], "count": n} is one text by `generate_step`: {"tokens": [token…], "gaps": [gap…], "prefill": seconds, "decode": seconds}. A gap
is how far a token's logit stood above the next best, and is there where the task has "gaps": true.

{"prompts": [[token…]…], "count": n} are texts at once by `BatchGenerator`: {"tokens": [[token…]…], "prefill": seconds, "decode": seconds}.

A text has `count` tokens, or fewer when the model ends it; where the task has "on": true it goes on after that. The first token comes with the
prefill. Both times are those of mlx-lm's own calls, in this process.
"""

import json
import sys
import time
from pathlib import Path

# Beside what makes the fixtures.
sys.path.append(str(Path(__file__).resolve().parents[2] / "build-support/fixtures"))

import mlx_lm_alone  # noqa: F401 (before mlx_lm)
import mlx.core as mx
from mlx_lm.generate import BatchGenerator, generate_step, generation_stream
from mlx_lm.utils import load_model


class Peer:
    def __init__(self, folder):
        self.model, config = load_model(Path(folder))
        ends = config.get("eos_token_id", [])
        self.ends = ends if isinstance(ends, list) else [ends]

    def one(self, prompt, count, gaps=False, on=False):
        ends = [] if on else self.ends
        tokens, between = [], []
        begun = first = time.perf_counter()
        for token, logprobs in generate_step(mx.array(prompt), self.model, max_tokens=count):
            if not tokens:
                first = time.perf_counter()
            tokens.append(token)
            if gaps:
                low, high = mx.topk(logprobs, 2).tolist()
                between.append(abs(high - low))
            if token in ends:
                break
        ended = time.perf_counter()
        settle()
        return {"tokens": tokens, "gaps": between, "prefill": first - begun, "decode": ended - first}

    def many(self, prompts, count, on=False):
        stops = [] if on else [[token] for token in self.ends]
        generator = BatchGenerator(self.model, max_tokens=count, stop_tokens=stops, prefill_batch_size=len(prompts))
        begun = first = time.perf_counter()
        texts = {uid: [] for uid in generator.insert(prompts)}
        while answers := generator.next_generated():
            for answer in answers:
                texts[answer.uid].append(answer.token)
            if first == begun:
                first = time.perf_counter()
        ended = time.perf_counter()
        generator.close()
        settle()
        return {"tokens": list(texts.values()), "prefill": first - begun, "decode": ended - first}


def settle():
    """Waits for the step after the last, which is begun before anybody knows that it is not wanted: it belongs to nobody's time."""
    mx.synchronize(generation_stream)


def main(folder):
    mx.set_default_device(mx.cpu)
    peer = Peer(folder)
    for line in sys.stdin:
        task = json.loads(line)
        answer = peer.many(**task) if "prompts" in task else peer.one(**task)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
