"""Runs a model over and over with onnxruntime's own Python package, and says how long that took.

    graph.py MODEL THREADS

The model has one input and one output of f32 and fixed shapes. Each line on stdin is a way and a count:

    run N      N times what people write, InferenceSession.run
    bound N    N times InferenceSession.run_with_iobinding, with input and output bound once

Each is answered with the nanoseconds it took, as a line.
"""

import sys
import time

import numpy
import onnxruntime

model, threads = sys.argv[1], int(sys.argv[2])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
source, target = session.get_inputs()[0], session.get_outputs()[0]
feed = {source.name: numpy.linspace(-1, 1, numpy.prod(source.shape), dtype=numpy.float32).reshape(source.shape)}
names = [target.name]
binding = session.io_binding()
binding.bind_cpu_input(source.name, feed[source.name])
result = onnxruntime.OrtValue.ortvalue_from_numpy(numpy.zeros(target.shape, numpy.float32))
binding.bind_ortvalue_output(target.name, result)

for line in sys.stdin:
    way, count = line.split()
    rounds = range(int(count))
    if way == "run":
        run = session.run
        begun = time.perf_counter_ns()
        for _ in rounds:
            run(names, feed)
        took = time.perf_counter_ns() - begun
    else:
        run = session.run_with_iobinding
        begun = time.perf_counter_ns()
        for _ in rounds:
            run(binding)
        took = time.perf_counter_ns() - begun
    print(took, flush=True)
