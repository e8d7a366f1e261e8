"""The conformance cases of the `onnx` package that ONNX Runtime's Python passes, and what it computes in them.

    python onnx_cases.py FOLDER

`onnx`'s own runner makes the cases and judges them: those that lie in its data folders, and those it generates for each
operator. What goes into ONNX Runtime and what comes out is noted on the way. Into FOLDER go `cases.bin`, all bytes one after
another, and `cases.json`, a line a case:

    {"name": …, "passed": true, "model": SPAN, "inputs": [PORT…], "runs": [{"inputs": [VALUE…], "outputs": [VALUE…]}…]}
    {"name": …, "passed": false, "why": …}

SPAN is [first byte, bytes]; PORT is [name, type], and VALUE is null, or has a "shape" and "bytes" (a SPAN) or "strings", or is a "sequence"
of VALUEs.
"""

import json
import os
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import numpy
import onnxruntime
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test import BackendTest

class Noted(BackendRep):
    """A session that notes what it is asked and what it answers. The last one made is `last`."""

    last = None

    def __init__(self, model):
        options = onnxruntime.SessionOptions()
        # One thread adds up in one order.
        options.intra_op_num_threads = 1
        self.model = model.SerializeToString()
        self.session = onnxruntime.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])
        self.runs = []
        Noted.last = self

    def run(self, inputs, **kwargs):
        # A case may say more inputs than the graph has: initializers that could be replaced.
        ports = self.session.get_inputs()
        inputs = [value if value is None or isinstance(value, list) else numpy.asarray(value) for value in inputs]
        feed = {port.name: value for port, value in zip(ports, inputs)}
        outputs = self.session.run(None, feed)
        self.runs.append((inputs[: len(ports)], outputs))
        return outputs


class Runtime(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return Noted(model)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


class Writer:
    """Puts cases into the two files."""

    def __init__(self, folder):
        self.bin = open(folder / "cases.bin", "wb")
        self.json = open(folder / "cases.json", "w", encoding="utf-8")

    def passed(self, name, noted):
        inputs, outputs = ([[port.name, port.type] for port in ports()] for ports in (noted.session.get_inputs, noted.session.get_outputs))
        runs = [
            {
                "inputs": [self.value(value, kind) for value, (_, kind) in zip(run[0], inputs)],
                "outputs": [self.value(value, kind) for value, (_, kind) in zip(run[1], outputs)],
            }
            for run in noted.runs
        ]
        model = self.span(noted.model)
        self.line({"name": name, "passed": True, "model": model, "inputs": inputs, "outputs": outputs, "runs": runs})

    def failed(self, name, why):
        self.line({"name": name, "passed": False, "why": why})

    def value(self, value, kind):
        if value is None:
            return None
        if kind.startswith("optional("):
            return self.value(value, inner(kind))
        if isinstance(value, list):
            return {"sequence": [self.value(element, inner(kind)) for element in value]}
        shape = list(value.shape)
        if kind == "tensor(string)":
            return {"shape": shape, "strings": [str(element) for element in value.reshape(-1).tolist()]}
        return {"shape": shape, "bytes": self.span(numpy.ascontiguousarray(value).tobytes())}

    def span(self, data):
        at = self.bin.tell()
        self.bin.write(data)
        return [at, len(data)]

    def line(self, case):
        self.json.write(json.dumps(case, ensure_ascii=False) + "\n")


def inner(kind):
    """`tensor(float)` of `seq(tensor(float))`."""
    return kind[kind.index("(") + 1 : -1]


def cases(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from cases(part)
        else:
            yield part


def main(folder):
    onnxruntime.set_default_logger_severity(4)
    warnings.simplefilter("ignore")
    writer = Writer(Path(folder))
    with tempfile.TemporaryDirectory() as home:
        # The runner puts inputs that it makes there.
        os.environ["ONNX_HOME"] = home
        for case in cases(BackendTest(Runtime, __name__).test_suite):
            result, Noted.last = unittest.TestResult(), None
            case.run(result)
            # Only for devices that are not there.
            if result.skipped:
                continue
            # Its file or folder, and its name.
            name = f"{type(case).__name__}.{case.id().rsplit('.', 1)[1]}"
            wrong = result.errors + result.failures
            if wrong:
                writer.failed(name, wrong[0][1].strip().splitlines()[-1])
            else:
                writer.passed(name, Noted.last)


if __name__ == "__main__":
    # What the runner prints is no answer.
    with open(os.devnull, "w") as sys.stdout:
        main(sys.argv[1])
