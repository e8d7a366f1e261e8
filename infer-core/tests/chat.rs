//! Templates of the kinds there are, rendered: every character of the prompt.

use infer_core::{
    Error, ErrorKind, Result,
    chat::{Message, RenderOptions, Role, Template, ToolCall},
    testing::byte_vocab,
};
use std::time::{Duration, UNIX_EPOCH};

fn render(source: &str, messages: &[Message], options: &RenderOptions) -> Result<String> {
    Template::new(source)?.with_bos("<s>").with_eos("</s>").render(messages, options)
}

/// The text that one expression gives.
fn expression(source: &str) -> String {
    let user = [Message::user("Hi")];
    render(&format!("{{{{ {source} }}}}"), &user, &RenderOptions::new())
        .unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn refusal(source: &str, messages: &[Message]) -> Error {
    let error = render(source, messages, &RenderOptions::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Template);
    error
}

fn talk() -> [Message; 4] {
    [
        Message::system("Be brief."),
        Message::user("Hello <b>you</b> & \"me\" — 🎉\n"),
        Message::assistant("Hi!  "),
        Message::user("2 + 2?"),
    ]
}

mod families {
    use super::*;

    const CHATML: &str = "\
{% for message in messages %}
    {% if loop.first and message['role'] != 'system' %}
<|im_start|>system
You help.<|im_end|>
    {% endif %}
<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}

<|im_start|>assistant
{% endif %}
";

    #[test]
    fn chatml() {
        let prompt = "<|im_start|>system\nBe brief.<|im_end|>\n\
                      <|im_start|>user\nHello <b>you</b> & \"me\" — 🎉\n<|im_end|>\n\
                      <|im_start|>assistant\nHi!  <|im_end|>\n\
                      <|im_start|>user\n2 + 2?<|im_end|>\n\n\
                      <|im_start|>assistant\n";
        assert_eq!(render(CHATML, &talk(), &RenderOptions::new()).unwrap(), prompt);
        let closed = RenderOptions::new().with_generation_prompt(false);
        let short = "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n";
        assert_eq!(render(CHATML, &[Message::user("Hi")], &closed).unwrap(), short);
    }

    const INST: &str = "\
{%- if messages[0].role == 'system' -%}
    {%- set system = '<<SYS>>\\n' + messages[0].content + '\\n<</SYS>>\\n\\n' -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set system, turns = '', messages -%}
{%- endif -%}
{%- for turn in turns -%}
    {%- if (turn.role == 'user') != (loop.index0 % 2 == 0) -%}
        {{- raise_exception('Roles must alternate: user, assistant, user, …') -}}
    {%- endif -%}
    {%- if turn.role == 'user' -%}
        {{- bos_token + '[INST] ' + (system if loop.first else '') + turn.content.strip() + ' [/INST]' -}}
    {%- else -%}
        {{- ' ' ~ turn.content | trim ~ ' ' ~ eos_token -}}
    {%- endif -%}
{%- endfor -%}
";

    #[test]
    fn inst() {
        let prompt = "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHello <b>you</b> & \"me\" — 🎉 [/INST] Hi! </s>\
                      <s>[INST] 2 + 2? [/INST]";
        assert_eq!(render(INST, &talk(), &RenderOptions::new()).unwrap(), prompt);
        let error = refusal(INST, &[Message::user("a"), Message::user("b")]).to_string();
        assert_eq!(
            error,
            "chat template, line 9: it refuses this conversation: Roles must alternate: user, assistant, user, …"
        );
    }

    const HEADERS: &str = "\
{{- bos_token }}
{%- if date_string is not defined %}
    {%- set date_string = strftime_now('%d %b %Y') %}
{%- endif %}
{%- macro header(role) -%}
    <|start_header_id|>{{ role }}<|end_header_id|>

{% endmacro %}
{%- for message in messages %}
    {{- header(message.role) }}
    {%- if message.role == 'system' %}
        {{- 'Today: ' + date_string + '\\n' }}
    {%- endif %}
    {{- message.content | trim }}<|eot_id|>
{%- endfor %}
{%- if add_generation_prompt %}
    {{- header('assistant') }}
{%- endif %}
";

    #[test]
    fn headers_and_a_date() {
        let options = RenderOptions::new().with_now(UNIX_EPOCH + Duration::from_secs(1_700_000_000));
        let messages = [Message::system("Be brief."), Message::user(" Hi ")];
        let prompt = "<s><|start_header_id|>system<|end_header_id|>\n\nToday: 14 Nov 2023\nBe brief.<|eot_id|>\
                      <|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>\
                      <|start_header_id|>assistant<|end_header_id|>\n\n";
        assert_eq!(render(HEADERS, &messages, &options).unwrap(), prompt);
        let dated = options.with_variable("date_string", "\"1 May\"");
        assert_eq!(render(HEADERS, &messages, &dated).unwrap(), prompt.replace("14 Nov 2023", "1 May"));
    }

    const TOOLS: &str = "\
{%- if tools %}
    {{- '# Tools\\n' }}
    {%- for tool in tools %}
        {{- tool.function | tojson }}{{ '\\n' }}
    {%- endfor %}
{%- endif %}
{%- set ns = namespace(calls=0) %}
{%- for message in messages %}
    {%- if message.tool_calls %}
        {%- for call in message.tool_calls %}
            {%- set ns.calls = ns.calls + 1 %}
            {{- '<call ' ~ ns.calls ~ '>' ~ call.function.name ~ '(' }}
            {%- for name, value in call.function.arguments.items() %}
                {{- name ~ '=' ~ value | tojson }}{{ ', ' if not loop.last }}
            {%- endfor %}
            {{- ')\\n' }}
        {%- endfor %}
    {%- elif message.role == 'tool' %}
        {{- '<answer ' ~ message.name ~ '>' ~ message.content ~ '\\n' }}
    {%- else %}
        {{- message.role ~ ': ' ~ message.content.split('</think>')[-1].lstrip('\\n') ~ '\\n' }}
    {%- endif %}
{%- endfor %}
";

    #[test]
    fn tools_and_their_calls() {
        let tools = r#"[{"type": "function", "function": {"name": "now", "description": "<é>", "parameters": {"z": [1, 2.5, null, true]}}}]"#;
        let calls = r#"[{"function": {"name": "now", "arguments": {"zone": "UTC", "n": 1.0, "a": {"b": []}}}}, {"function": {"name": "x", "arguments": {}}}]"#;
        let messages = [
            Message::user("Time?"),
            Message::assistant("").with_field("tool_calls", calls),
            Message::tool("12:00").with_field("name", "\"now\""),
            Message::assistant("<think>hm</think>\n\nNoon."),
        ];
        let prompt = "# Tools\n\
            {\"name\": \"now\", \"description\": \"<é>\", \"parameters\": {\"z\": [1, 2.5, null, true]}}\n\
            user: Time?\n\
            <call 1>now(zone=\"UTC\", n=1.0, a={\"b\": []})\n\
            <call 2>x()\n\
            <answer now>12:00\n\
            assistant: Noon.\n";
        assert_eq!(render(TOOLS, &messages, &RenderOptions::new().with_tools(tools)).unwrap(), prompt);
        let without = render(TOOLS, &messages[..1], &RenderOptions::new()).unwrap();
        assert_eq!(without, "user: Time?\n");

        let now = ToolCall::new("now", r#"{"zone": "UTC", "n": 1.0, "a": {"b": []}}"#);
        let calls = Message::assistant_calls([now.clone(), ToolCall::new("x", "{}")]);
        let typed = [Message::user("Time?"), calls, Message::tool_result(&now, "12:00"), messages[3].clone()];
        assert_eq!(render(TOOLS, &typed, &RenderOptions::new().with_tools(tools)).unwrap(), prompt);
    }

    #[test]
    fn calls_are_told_as_a_template_takes_them() {
        let call = ToolCall::new("f", r#"{"a": "é"}"#).with_id("7");
        let messages =
            [Message::assistant_calls([call.clone()]).with_reasoning("\"Hm\""), Message::tool_result(&call, "ok")];
        let told = |source: &str| render(source, &messages, &RenderOptions::new());
        let all = "{% for m in messages %}{{ m | tojson }}{% endfor %}{# tool_calls #}";
        assert_eq!(
            told(all).unwrap(),
            "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"7\", \"type\": \"function\", \"function\": \
             {\"name\": \"f\", \"arguments\": {\"a\": \"é\"}}}], \"reasoning_content\": \"\\\"Hm\\\"\"}\
             {\"role\": \"tool\", \"content\": \"ok\", \"name\": \"f\", \"tool_call_id\": \"7\"}"
        );
        let text = "{{ 'call: ' + messages[0].tool_calls[0].function.arguments }}";
        assert_eq!(told(text).unwrap(), "call: {\"a\": \"é\"}", "as text, where nothing can be done with an object");
        let none =
            "{% if messages[0].tool_calls and messages[0].content is none %}{{ messages[1].content }}{% endif %}";
        assert_eq!(told(none).unwrap(), "ok", "no content, where a template asks");
        let error = told("{% for m in messages %}{{ m.content }}{% endfor %}").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "calls are not left out in silence");
        let broken = [Message::assistant_calls([ToolCall::new("f", "{")])];
        let error = render(all, &broken, &RenderOptions::new()).unwrap_err();
        assert_eq!((error.kind(), error.to_string().contains("`arguments`")), (ErrorKind::InvalidInput, true));
        let refused = "{{ raise_exception('No.') }}{# tool_calls #}";
        assert!(told(refused).unwrap_err().to_string().contains("No."));
    }
}

mod language {
    use super::*;

    /// The expected texts are those of Jinja2 under CPython 3.11, set up as the reference implementation sets it up.
    #[test]
    fn expressions_are_those_of_python() {
        let cases = [
            ("{'b': 1, 'a': [1, 'x', none, true, 1.5]} | tojson", r#"{"b": 1, "a": [1, "x", null, true, 1.5]}"#),
            ("{'b': 1, 'a': []} | tojson(indent=2)", "{\n  \"b\": 1,\n  \"a\": []\n}"),
            ("{'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':'))", r#"{"a":2,"b":1}"#),
            (r#"'é"\\\n<' | tojson"#, r#""é\"\\\n<""#),
            (r#"'é🎉' | tojson(ensure_ascii=true)"#, r#""\u00e9\ud83c\udf89""#),
            ("[1, 2] + [3]", "[1, 2, 3]"),
            ("'a,b,,c'.split(',') | length", "4"),
            ("'a b  c'.split() | join('-')", "a-b-c"),
            ("'a.b.c'.rsplit('.', 1) | join('|')", "a.b|c"),
            ("' x '.strip() ~ '<' ~ 'xxabxx'.strip('x') ~ '>' ~ 'ab'.lstrip('a')", "x<ab>b"),
            ("'hello'.startswith('he') and 'hello'.endswith(('x', 'lo'))", "True"),
            ("'%s=%d' | format('a', 3) ~ ' {}-{}'.format('b', 4)", "a=3 b-4"),
            ("'aXbX'.replace('X', '-') ~ 'abc'[1:] ~ 'abc'[::-1] ~ 'abc'[-1]", "a-b-bccbac"),
            ("'-'.join(['a', 'b']) ~ 'ab'.upper() ~ 'hello world'.title()", "a-bABHello World"),
            ("'prefix-x'.removeprefix('prefix-') ~ 'x.txt'.removesuffix('.txt')", "xx"),
            ("'a=b=c'.partition('=') | join('/')", "a/=/b=c"),
            ("{'a': 1}.get('b', 'none') ~ {'a': 1}.get('a')", "none1"),
            ("{'a': 1, 'b': 2}.items() | list | length ~ {'a': 1}.keys() | first", "2a"),
            ("7 // 2 ~ ' ' ~ 7 % 4 ~ ' ' ~ 2 ** 3 ~ ' ' ~ 3 * 2 ~ ' ' ~ '-' * 3", "3 3 8 6 ---"),
            ("2 * (1 + 2) * 'ab' ~ 'x' * messages | length", "ababababababx"),
            ("none is none and undefined_thing is undefined and not (none is iterable)", "True"),
            ("'text' is iterable and [1] is sequence and {} is mapping and 'a' is string", "True"),
            ("undefined_thing ~ '|' ~ (undefined_thing | default('x'))", "|x"),
            (
                "(messages | map(attribute='role') | list) ~ (messages | selectattr('role', 'eq', 'x') | list)",
                "['user'][]",
            ),
            ("true and 1 ~ false ~ none", "1FalseNone"),
            ("1 in [1, 2] and 'b' not in 'ac' and 'role' in messages[0]", "True"),
        ];
        for (source, expected) in cases {
            assert_eq!(expression(source), expected, "{source}");
        }
    }

    #[test]
    fn blank_lines_are_treated_as_by_the_reference() {
        let source =
            "a\n  {% if true %}\n  b\n  {% endif %}\nc {%- if true %} d\n{%- endif +%}\n e  {# f #}\n{{ 'g' }}\n";
        assert_eq!(render(source, &[], &RenderOptions::new()).unwrap(), "a\n  b\nc d\n e  g");
    }

    #[test]
    fn loops_break_and_continue_and_blocks_marked_for_training_are_plain() {
        let source = "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}\
                      {{ i }}{% endfor %}{%- generation -%} own {%- endgeneration %}.";
        assert_eq!(render(source, &[], &RenderOptions::new()).unwrap(), "0134own.");
    }

    /// What the guards are put around keeps its meaning.
    #[test]
    fn names_bind_as_usual() {
        let source = "\
{%- set a, b = 1, [2, 3] -%}
{%- set ns = namespace(list=[], n=0) -%}
{%- macro add(ns, item, twice=[7, 7]) -%}
    {%- set ns.list = ns.list + twice -%}
    {{- item -}}
{%- endmacro -%}
{%- for x in b if x > 2 -%}{{ x }}{%- endfor -%}
{%- for key, value in {'k': [1]}.items() -%}{{ key }}{{ value[0] }}{%- endfor -%}
{%- for node in [[1, [2, 3]]] recursive -%}
    {%- if node is iterable %}({{ loop(node) }}){% else %}{{ node }}{% endif -%}
{%- endfor -%}
{%- with c = a + 1, d = c * 2 -%}{{ c }}{{ d }}{%- endwith -%}
{{ add(ns, 7) }}{{ add(ns, 8, twice=[9]) }}{{ ns.list }}
{%- macro around(word='w') %}<{{ caller(word) }}>{% endmacro -%}
{%- call(word) around() -%}{{ word * 2 }}{%- endcall -%}
{%- set outer = ns -%}{%- set outer.n = 5 -%}{{ ns.n }}
{%- set text -%} {{ a }} {%- endset -%}{{ text }}";
        let expected = "3k1(1(23))2478[7, 7, 9]<ww>51";
        let mut lines = render(source, &[], &RenderOptions::new()).unwrap();
        lines.retain(|c| c != '\n');
        assert_eq!(lines, expected);
    }

    #[test]
    fn special_tokens_come_from_the_vocabulary() {
        let template = Template::new("{{ bos_token }}|{{ eos_token }}").unwrap();
        assert_eq!(template.render(&[], &RenderOptions::new()).unwrap(), "|");
        let template = template.with_vocab(&byte_vocab());
        assert_eq!(template.render(&[], &RenderOptions::new()).unwrap(), "<s>|</s>");
    }
}

mod messages {
    use super::*;

    #[test]
    fn have_roles_and_fields_in_order() {
        assert_eq!(Role::from("developer"), Role::Other("developer".into()));
        assert_eq!((Role::from("tool"), Role::Assistant.to_string()), (Role::Tool, "assistant".to_owned()));
        let message = Message::new("developer", "x").with_field("name", "\"n\"").with_field("content", "[1]");
        let source = "{{ messages[0] | tojson }}";
        let expected = r#"{"role": "developer", "content": [1], "name": "n"}"#;
        assert_eq!(render(source, &[message], &RenderOptions::new()).unwrap(), expected);
    }

    #[test]
    fn with_fields_that_are_no_json_are_invalid_input() {
        let bad = Message::user("x").with_field("tool_calls", "[");
        let deep = Message::user("x").with_field("deep", "[".repeat(100) + &"]".repeat(100));
        for message in [bad, deep] {
            let error = render("", &[message], &RenderOptions::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
        for options in [RenderOptions::new().with_tools("x"), RenderOptions::new().with_variable("v", "")] {
            assert_eq!(render("", &[], &options).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }
}

mod errors {
    use super::*;

    #[test]
    fn say_where_and_what() {
        let user = [Message::user("Hi")];
        let cases = [
            ("a\n{{ x.y }}", "line 2", "undefined"),
            ("a\n\n{% if %}", "line 3", "syntax error"),
            ("{{ 'a' | nonsense }}", "line 1", "nonsense"),
            ("a\n{{ 'a'.nonsense() }}", "line 2", "nonsense"),
            ("{% include 'other' %}", "line 1", "include"),
            ("{% import '/etc/passwd' as x %}", "line 1", "import"),
            ("a\n{{ (1 }}", "line 2", "not open"),
            ("{% for x in range(10 ** 9) %}{% endfor %}", "line 1", "range"),
            ("{{ strftime_now('%Q') }}", "line 1", "%Q"),
            ("{% for i in range(100000) %}{{ messages }}{% endfor %}", "line 1", "more work"),
            ("{% macro f() %}\n{{ raise_exception('no') }}{% endmacro %}{{ f() }}", "line 2", "no"),
        ];
        for (source, line, what) in cases {
            let error = refusal(source, &user).to_string();
            assert!(error.contains(line) && error.contains(what), "{source}: {error}");
            assert!(!error.contains("__"), "{source}: {error}");
        }
    }
}
