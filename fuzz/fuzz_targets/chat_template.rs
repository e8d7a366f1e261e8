//! Chat templates by anybody, for conversations by anybody: text or an error, without a panic of ours, without a hang, and in
//! bounded memory.
#![no_main]

use infer_core::{
    ErrorKind,
    chat::{Message, RenderOptions, Template},
};
use infer_fuzz::{input::texts, seeds};
use libfuzzer_sys::fuzz_target;
use std::{
    panic,
    time::{Duration, UNIX_EPOCH},
};

#[global_allocator]
static ALLOCATOR: test_kit::Counting = test_kit::Counting;

/// The most that one template may hold at a time: the bound that `infer-core/tests/chat_limits.rs` has too.
const MOST: usize = 64 << 20;

// The template, and then each message: what stands before its first `:` is the role, `fields` a message's fields, `tools` the tools.
fuzz_target!(init: { seeds::write_if_asked(first); engine_may_panic() }, |input: &[u8]| {
    let mut parts = texts(input);
    let source = parts.next().unwrap_or_default();
    let (mut messages, mut options) = (Vec::new(), RenderOptions::new().with_now(UNIX_EPOCH + Duration::from_secs(1 << 30)));
    for part in parts.take(8) {
        match part.split_once(':').unwrap_or(("user", &part)) {
            ("tools", json) => options = options.with_tools(json),
            ("fields", json) => messages.push(Message::assistant("").with_field("tool_calls", json)),
            (role, content) => messages.push(Message::new(role, content)),
        }
    }
    let (peak, rendered) = test_kit::peak(|| Template::new(&source)?.render(&messages, &options));
    assert!(peak < MOST, "{peak} bytes at a time");
    if let Err(error) = rendered {
        let of_input = error.kind() == ErrorKind::InvalidInput;
        assert!(of_input || error.to_string().starts_with("chat template"), "{error}");
    }
});

/// The engine has corners where it panics, which `Template::render` catches and says; the fuzzer's hook would end the process
/// before that. A panic anywhere else still does.
fn engine_may_panic() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !info.location().is_some_and(|place| place.file().contains("minijinja")) {
            abort(info);
        }
    }));
}

/// What templates in use are made of, a piece each, and one conversation with tools.
fn first() -> Vec<Vec<u8>> {
    let templates = [
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
        "{%- set ns = namespace(seen=[], text='') -%}{% for m in messages %}{% set ns.seen = ns.seen + [m.role] %}{% endfor %}{{ ns.seen | length }}",
        "{% if messages[0]['role'] != 'user' %}{{ raise_exception('Users first!') }}{% endif %}{{ bos_token }}{{ messages[-1].content.split('x')[-1].strip() }}",
        "{% macro show(x, n=2) %}{{ x * n }}{% endmacro %}{{ show('a') }}{{ tools | tojson(indent=4) }}{{ strftime_now('%d %b %Y') }}",
        "{% for m in messages if m.tool_calls is defined %}{% for c in m.tool_calls %}{{ c.name }}({{ c.arguments | tojson }}){% endfor %}{% else %}none{% endfor %}",
        "{% set a, b = [1, 2] %}{{ a // b }}{{ -a ** b }}{{ 'x' in ['x'] }}{{ [1, 2, 3][::-1] | join(', ') }}{{ {'a': 1}.items() | list }}{{ 'y' if a else 'n' }}",
        "{% generation %}{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list }}{% endgeneration %}{# note #}{% raw %}{{ }}{% endraw %}",
        "{% for m in messages %}{{ loop.index0 }}{{ loop.last }}{% if loop.index > 2 %}{% break %}{% endif %}{% endfor %}{{ 'a\\nb' | indent(2) }}{{ '{:>4}'.format(1) }}",
    ];
    let conversation: [&[u8]; 5] = [
        b"system:Be brief.",
        b"user:What time is it, \xc3\xa9?",
        br#"fields:[{"name": "time", "arguments": {"zone": "UTC", "n": [1, 2.5, null, true]}}]"#,
        b"tool:12:00",
        br#"tools:[{"type": "function", "function": {"name": "time"}}]"#,
    ];
    let with = |template: &&str| [&[template.as_bytes()], &conversation[..]].concat().join(&0xff);
    templates.iter().map(with).collect()
}
