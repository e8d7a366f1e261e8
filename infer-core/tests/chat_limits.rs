//! A template comes from a file: whatever is in it, it ends, in bounded memory and on a thread's usual stack, with text
//! or with an error. An abort, a stack overflow or a hang fails these tests.

#[allow(unreachable_pub, reason = "the fuzz targets' library shares it and exports it")]
use infer_core::{
    ErrorKind,
    chat::{Message, RenderOptions, Template},
};

#[global_allocator]
static ALLOCATOR: test_kit::Counting = test_kit::Counting;

/// The most that one template may hold at a time.
const MOST: usize = 64 << 20;

/// Renders a small conversation. Fails the test where that takes too much memory.
fn run(source: &str) -> Result<String, infer_core::Error> {
    let (peak, outcome) = test_kit::peak(|| {
        let template = Template::new(source)?;
        template.render(&[Message::system("Be brief."), Message::user("Hello!")], &RenderOptions::new())
    });
    let shown: String = source.chars().take(120).collect();
    assert!(peak < MOST, "{peak} bytes at a time for {shown}");
    if let Err(error) = &outcome {
        assert_eq!(error.kind(), ErrorKind::Template, "{shown}: {error}");
        let placed = error.to_string().starts_with("chat template, line ");
        assert!(placed || has_no_line(source), "{shown}: {error}");
    }
    outcome
}

/// What makes the engine itself panic, and what is too large to be looked at.
fn has_no_line(source: &str) -> bool {
    source.contains("loop.cycle()") || source.len() > 256 << 10
}

/// A namespace `n` whose fields are assigned in a loop that goes on for longer than the fuel lasts.
fn grown(start: &str, step: &str, then: &str) -> String {
    format!(
        "{{% set n = namespace({start}) %}}{{% for i in range(100000) %}}{{% set {step} %}}{{% endfor %}}{{{{ {then} }}}}"
    )
}

/// The same in as many statements as a template has room for, without a loop.
fn repeated(start: &str, step: &str, then: &str) -> String {
    format!("{{% set {start} %}}{}{{{{ {then} }}}}", format!("{{% set {step} %}}").repeat(2000))
}

#[test]
fn work_without_end_is_stopped() {
    let templates = [
        "{% for i in range(1000000000) %}{% endfor %}",
        "{% for i in range(1000000000) %}x{% endfor %}",
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "{% macro a() %}{% call a() %}{{ a() }}{% endcall %}{% endmacro %}{{ a() }}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% for x in [1, 2] recursive %}{{ loop([1, 2]) }}{{ loop([1, 2]) }}{% endfor %}",
        "{% set x = 'a' * 50000 %}{% for i in range(100000) %}{% if x.count('b') %}{% endif %}{% endfor %}",
        "{% set x = 'a' * 50000 %}{% for i in range(100000) %}{% if x|length == x[1:]|length %}{% endif %}{% endfor %}",
        "{% set x = range(100000)|list %}{% for i in range(1000) %}{% if x == x|list %}{% endif %}{% endfor %}",
        "{% set x = range(100000)|list %}{% for i in range(1000) %}{{ x|sort|first }}{{ x.count(1) }}{% endfor %}",
    ];
    for source in templates {
        run(source).expect_err(source);
    }
}

#[test]
fn memory_without_end_is_refused() {
    let mut templates: Vec<String> = [
        "{{ 'x' * 10 ** 9 }}",
        "{{ 'x' * 10 ** 9 ~ 'x' * 10 ** 9 }}",
        "{{ range(10 ** 9)|list }}",
        "{{ range(100000)|join('x' * 100000) }}",
        "{{ ('x' * 100000).join(range(100000)|map('string')) }}",
        "{{ range(100000)|map('default', 'x' * 100000, true)|list ~ '' }}",
        "{{ ('0' * 50000)|list|map('int')|map('default', 'x' * 100000, true)|list ~ '' }}",
        "{{ ('0' * 50000)|list|map('int')|map('default', 'x' * 100000, true)|join }}",
        "{{ ['x'] * 10 ** 7 }}",
        "{{ [['x'] * 10 ** 7] * 10 ** 7 ~ '' }}",
        "{{ (['x'] * 10 ** 7)|join }}",
        "{{ ''.join(['x' * 1000] * 10 ** 7) }}",
        "{{ 10 ** 7 * ['x'] }}",
        "{{ (('x',) * 10 ** 7)|length }}",
        "{% set x = ['x'] %}{{ x * 10 ** 7 == x * 10 ** 7 }}",
        "{% set x = ['x'] %}{{ 10 ** 7 * x[:] }}",
        "{% set x = {'a': ['x']} %}{{ x.a * 10 ** 7 ~ x['a'] * 10 ** 7 }}",
        "{% set x = {'a': ['x']} %}{{ x.get('a') * 10 ** 7 }}{{ x.a|list * 10 ** 7 }}",
        "{{ '{:>1000000000}'.format(1) }}",
        "{{ '{:.1000000000f}'.format(1.5) }}",
        "{{ '%1000000000d'|format(1) }}",
        "{{ '%.1000000000f'|format(1.5) }}",
        "{{ 'a\\nb'|indent(10 ** 9) }}",
        "{{ ('a\\n' * 10000)|indent(10000) }}",
        "{{ ('a' * 100000).replace('a', 'a' * 100000) }}",
        "{{ ('a' * 100000).replace('', 'a' * 100000) }}",
        "{{ ('a' * 100000)|replace('a', 'a' * 100000) }}",
        "{{ [1]|batch(10 ** 9, 0)|list }}",
        "{{ [1]|slice(10 ** 9, 0)|list }}",
        "{% for a in [messages + messages] %}{% for b in [a + a] %}{% for c in [b + b] %}{% for d in [c + c] %}\
         {% for e in range(100000) %}{{ d }}{% endfor %}{% endfor %}{% endfor %}{% endfor %}{% endfor %}",
        "{% macro f(x, n) %}{{ f(x + x, n + 1) }}{% endmacro %}{{ f([1], 0) }}",
        "{% macro f(x) %}{{ f([x, x]) }}{{ x|length }}{% endmacro %}{{ f([1]) }}",
        "{% for x in [[1]] recursive %}{{ loop([x + x]) }}{% endfor %}",
        "{% for x in [1] recursive %}{{ loop([1] + [x] * 100000) }}{% endfor %}",
    ]
    .map(str::to_owned)
    .into();
    templates.extend([
        grown("x='ab'", "n.x = n.x ~ n.x", "n.x"),
        grown("x='ab'", "n.x = n.x + n.x", "n.x"),
        grown("x='ab'", "n.x = '%s%s' | format(n.x, n.x)", "n.x"),
        grown("x='ab'", "n.x = '{}{}'.format(n.x, n.x)", "n.x"),
        grown("x='ab'", "n.x = n.x | replace('a', 'aa')", "n.x"),
        grown("x=[1, 2]", "n.x = n.x + n.x", "n.x|length"),
        grown("x=[1, 2]", "n.x = [n.x, n.x]", "n.x ~ ''"),
        grown("x=[1, 2]", "n.x = {'a': n.x, 'b': n.x}", "n.x|tojson"),
        grown("x=[1, 2]", "n.x = {'a': n.x, 'b': n.x}", "n.x == n.x"),
        grown("x=[1, 2]", "n.x = (n.x, n.x)", "n.x|string"),
        repeated("x = [1, 2]", "x = x + x", "x|length"),
        repeated("x = [1, 2]", "x = [x, x]", "x ~ ''"),
        repeated("x = 'ab'", "x = x ~ x", "x"),
        repeated("x = [1, 2]", "x = namespace(x=x + x).x", "x|length"),
        repeated("x = [1, 2]", "x, y = [x + x, 1]", "x|length"),
        format!("{{% with a = [1]{} %}}{{{{ a|length }}}}{{% endwith %}}", ", a = a + a".repeat(30)),
        format!("{{% macro f(a=[1]{}) %}}{{{{ a29|length }}}}{{% endmacro %}}{{{{ f() }}}}", defaults()),
    ]);
    for source in &templates {
        run(source).expect_err(source);
    }
}

fn defaults() -> String {
    (0..30).map(|i| if i == 0 { ", a0=a + a".into() } else { format!(", a{i}=a{0} + a{0}", i - 1) }).collect()
}

#[test]
fn depth_without_end_is_refused() {
    let mut templates: Vec<String> = [
        "{% set a = namespace() %}{% set a.x = a %}{{ a }}",
        "{% set a = namespace() %}{% set a.x = [a] %}{{ a.x }}",
        "{% set a = namespace() %}{% set a.x = {'a': a} %}{{ a.x }}",
        "{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{{ a == b }}",
        "{% set a, b = [namespace(), namespace()] %}{% set a.x = b %}{% set b.x = a %}{{ a < b }}",
        "{% set a = namespace() %}{% with b = a %}{% set b.x = a %}{% endwith %}{{ a }}",
        "{% set a = namespace() %}{% macro f(b) %}{% set b.x = a %}{% endmacro %}{{ f(a) }}{{ a }}",
        "{% set a = namespace() %}{% for b in [a] %}{% set b.x = b %}{% endfor %}{{ a }}",
    ]
    .map(str::to_owned)
    .into();
    for step in ["[n.x]", "{'a': n.x}", "(n.x,)", "{'a': [n.x]}", "[n.x, 1]|map('list')"] {
        for then in ["n.x", "n.x ~ ''", "n.x == n.x", "n.x|tojson", "n.x in [n.x]", "[n.x, n.x]|sort"] {
            templates.push(grown("x=[1]", &format!("n.x = {step}"), then));
        }
    }
    templates.push(repeated("x = [1]", "x = [x]", "x ~ ''"));
    for (open, close) in [("(", ")"), ("[", "]"), ("{'a':", "}"), ("f(", ")"), ("x[", "]")] {
        templates.push(format!("{{{{ {}1{} }}}}", open.repeat(5000), close.repeat(5000)));
    }
    for link in ["+ 1", "* 1", "~ 1", "** 1", "and 1", "or x", "if 1 else 1", ".a", "[0]", "()", "|trim", "is defined"]
    {
        templates.push(format!("{{{{ x {} }}}}", format!("{link} ").repeat(5000)));
    }
    for link in ["not ", "-", "+", "- -"] {
        templates.push(format!("{{{{ {}1 }}}}", link.repeat(5000)));
    }
    let blocks = [
        ("{% if 1 %}", "{% endif %}"),
        ("{% for x in [1] %}", "{% endfor %}"),
        ("{% with x = 1 %}", "{% endwith %}"),
        ("{% set x %}", "{% endset %}"),
        ("{% filter trim %}", "{% endfilter %}"),
        ("{% call f() %}", "{% endcall %}"),
        ("{% macro f() %}", "{% endmacro %}"),
        ("{% generation %}", "{% endgeneration %}"),
        ("{% autoescape false %}", "{% endautoescape %}"),
    ];
    for (open, close) in blocks {
        templates.push(format!("{}x{}", open.repeat(2000), close.repeat(2000)));
        templates.push(open.repeat(2000));
    }
    templates.push(format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(5000)));
    for source in &templates {
        run(source).expect_err(source);
    }
}

/// As deep and as long as is taken fits a thread's usual stack.
#[test]
fn what_is_just_allowed_fits_the_stack() {
    let blocks = |open: &str, close: &str, n: usize| format!("{}x{}", open.repeat(n), close.repeat(n));
    let templates = [
        blocks("{% if 1 %}", "{% endif %}", 32),
        blocks("{% for x in [1] %}", "{% endfor %}", 32),
        blocks("{% if 1 %}", "{% endif %}", 31) + &blocks("{{ ", " }}", 1).replace('x', &"[".repeat(24)),
        format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(64)),
        format!("{{{{ {}1{} }}}}", "(".repeat(24), ")".repeat(24)),
        format!("{{{{ 1{} }}}}", " + 1".repeat(120)),
        format!("{{{{ 'x'{} }}}}", "|trim".repeat(120)),
        format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(60)),
        "{% set n = namespace(x=[1]) %}{% for i in range(50) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}{{ n.x == n.x }}".into(),
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{% else %}x{% endif %}{% endmacro %}{{ f(12) }}".into(),
    ];
    for (nth, source) in templates.iter().enumerate() {
        assert_eq!(run(source).is_err(), nth == 2, "{source}"); // the third has its brackets open
    }
}

#[test]
fn damaged_templates_are_errors() {
    let whole = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content|trim * 2 }}{# c #}{% raw %}{{ x }}{% endraw %}\
                 {% endif %}{% endfor %}{% macro f(a, b=[1]) -%}{{ a ~ b[0] }}{%- endmacro %}{{ f(1) }}";
    run(whole).unwrap();
    for end in 0..whole.len() {
        let _ = run(&whole[..end]);
        let _ = run(&whole[end..]);
    }
    for at in 0..whole.len() {
        for byte in ["{", "}", "%", "'", "(", "]", "*", "=", ",", ".", "|", "\\", "\n", "é", "-", "is", "in"] {
            let _ = run(&format!("{}{byte}{}", &whole[..at], &whole[at..]));
            let _ = run(&format!("{}{byte}{}", &whole[..at], &whole[at + 1..]));
        }
    }
    for source in ["{{ loop.cycle() }}", "{% for x in [1] %}{{ loop.cycle() }}{% endfor %}", "{{ __own(1) }}", "{{ 1 }"]
    {
        let _ = run(source);
    }
    assert!(run(&"x".repeat(300_000)).unwrap_err().to_string().contains("300000"), "too large");
}

#[test]
fn a_long_conversation_is_no_bomb() {
    let template = "{% set n = namespace(seen=[], text='') %}{% for m in messages %}{% set n.seen = n.seen + [m.role] %}\
                    {% if m.content.strip().split('x')[-1] %}{{ m.content | trim }}{% endif %}{% endfor %}{{ n.seen|length }}";
    let messages: Vec<Message> = (0..300).map(|i| Message::user(format!("{i} ").repeat(2000))).collect();
    let text = Template::new(template).unwrap().render(&messages, &RenderOptions::new()).unwrap();
    assert!(text.len() > 2_000_000 && text.ends_with("300"));
}
