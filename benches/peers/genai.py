"""Greedy tokens by onnxruntime-genai's generator.

    python genai.py FOLDER THREADS CONTEXT

Reads a line of JSON a text, {"prompt": [token…], "count": n}, and prints one for each: {"tokens": [token…], "prefill": seconds, "decode":
[seconds…]}. The first token comes with the prefill, each other one with a step; a text ends before `count` where the model ends it. The times
are those of the generator's own calls, in this process.
"""

import json
import sys
import time

import numpy
import onnxruntime_genai as og


def main(folder, threads, context):
    config = og.Config(folder)
    options = {"intra_op_num_threads": threads, "inter_op_num_threads": 1}
    config.overlay(json.dumps({"model": {"decoder": {"session_options": options}}}))
    model = og.Model(config)
    for line in sys.stdin:
        task = json.loads(line)
        prompt = numpy.array(task["prompt"], numpy.int32)
        params = og.GeneratorParams(model)
        params.set_search_options(do_sample=False, max_length=context)
        generator = og.Generator(model, params)
        begun = time.perf_counter()
        generator.append_tokens(prompt)
        generator.generate_next_token()
        first = time.perf_counter()
        steps = [first]
        while len(steps) < task["count"] and not generator.is_done():
            generator.generate_next_token()
            steps.append(time.perf_counter())
        tokens = generator.get_sequence(0)[len(prompt) :].tolist()
        decode = [after - before for before, after in zip(steps, steps[1:])]
        print(json.dumps({"tokens": tokens, "prefill": first - begun, "decode": decode}), flush=True)
        del generator


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
