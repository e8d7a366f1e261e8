"""Renders conversations with Jinja2, set up as the libraries do for which chat templates are written.

Reads one JSON object: "template", "bos", "eos", and "conversations", each a list of messages with "role" and "content".
Prints a JSON list with one text for each conversation.
"""

import json
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

task = json.load(sys.stdin)
environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
template = environment.from_string(task["template"])
json.dump(
    [
        template.render(messages=messages, add_generation_prompt=True, bos_token=task["bos"], eos_token=task["eos"])
        for messages in task["conversations"]
    ],
    sys.stdout,
)
