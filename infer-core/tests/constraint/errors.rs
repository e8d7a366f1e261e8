//! What cannot be kept is said before anything is generated, and where it is; and soon, whatever it asks for.

use crate::kit::{draw, session, warm};
use infer_core::{
    Constraint, Error, ErrorKind, OpenOptions, Sampling, Session, SpecialTokens, Token, TokenFlags, Vocab, VocabKind,
    testing::byte_vocab,
};
use std::sync::Arc;

fn refused(constraint: &Constraint) -> Error {
    let error = constraint.compile(&Arc::new(byte_vocab())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConstraint, "{error}");
    error
}

fn compiles(constraint: Constraint) {
    constraint.compile(&Arc::new(byte_vocab())).unwrap();
}

#[test]
fn a_schema_says_where_it_is_wrong() {
    for (schema, says) in [
        (r#"{"type": "object",}"#, "not JSON: trailing comma at line 1 column 19"),
        ("7", "#: a schema is an object"),
        ("false", "allows no document"),
        (
            r#"{"properties": {"a/b": {"minlength": 3}}}"#,
            "#/properties/a~1b/minlength: the keyword \"minlength\" is unknown",
        ),
        (r#"{"items": {"not": {}}}"#, "#/items/not: the keyword"),
        (r#"{"uniqueItems": true}"#, "#/uniqueItems"),
        (r#"{"x-guidance": {"lenient": true}}"#, "#/x-guidance"),
        (r##"{"anyOf": [{}, {"$ref": "#/$defs/x"}]}"##, "#/anyOf/1/$ref: \"#/$defs/x\" is not there"),
        (r#"{"$ref": "https://json.org/x"}"#, "does not begin with \"#/\""),
        (r##"{"$ref": "#/$defs/a~1b", "$defs": {"a/b": {}}}"##, "escaped characters"),
        (r##"{"$ref": "#"}"##, "no text that the vocabulary can write"),
        (r#"{"properties": {"a": 3}}"#, "#/properties/a: a schema is an object"),
        (r#"{"minLength": -1}"#, "#/minLength: -1 is not a count"),
        (r#"{"exclusiveMinimum": true, "minimum": 3}"#, "#/exclusiveMinimum: true is not a number"),
        (r#"{"required": "a"}"#, "#/required: \"a\" is not a list of names"),
        (r#"{"pattern": 7}"#, "#/pattern: 7 is not a string"),
        (r#"{"type": "strin"}"#, "strin"),
        (r#"{"type": "string", "minLength": 5, "maxLength": 2}"#, "minLength (5) is greater than maxLength (2)"),
        (r#"{"type": "integer", "minimum": 5, "maximum": 2}"#, "minimum (5) is greater than maximum (2)"),
        (r#"{"type": "integer", "multipleOf": 7, "minimum": 3, "maximum": 6}"#, "multiple of 7"),
        (r#"{"type": "integer", "multipleOf": 1000000007}"#, "#/multipleOf: 1000000007 has too many digits"),
        (r#"{"type": "number", "multipleOf": 1e-9}"#, "#/multipleOf: 1e-9 has too many digits"),
        (
            r#"{"allOf": [{"multipleOf": 99991}, {"type": "integer", "multipleOf": 99989}]}"#,
            "a common multiple of too many digits",
        ),
        (r##"{"$ref": "#/$defs/a", "multipleOf": 1e-5, "$defs": {"a": {"multipleOf": 9999}}}"##, "a common multiple"),
        (r#"{"type": "integer", "multipleOf": -3}"#, "#/multipleOf: -3 is not a number above 0"),
        (r#"{"enum": []}"#, "empty"),
        (r#"{"format": "nope", "type": "string"}"#, "Unknown format: nope"),
        (r#"{"type": "string", "pattern": "(("}"#, "unclosed group"),
        (r#"{"type": "object", "required": ["a"], "additionalProperties": false}"#, "required property 'a'"),
        (r#"{"oneOf": [{"type": "string"}, {"type": "string", "maxLength": 3}]}"#, "use anyOf"),
    ] {
        let error = refused(&Constraint::json_schema(schema)).to_string();
        assert!(error.starts_with("JSON schema: ") && error.contains(says), "{schema}: {error}");
    }
}

#[test]
fn an_expression_and_a_grammar_say_where_they_are_wrong() {
    for (constraint, says) in [
        (Constraint::regex("a(b"), "regular expression: at 1(8)"),
        (Constraint::regex("a(?=b)"), "look-around"),
        (Constraint::regex(r"(a)\1"), "backreferences are not supported"),
        (Constraint::regex(r"[^\x00-\x{10ffff}]"), "no text that the vocabulary can write"),
        (Constraint::lark(""), "Lark grammar: no start rule"),
        (Constraint::lark("start: \"a\" foo"), "unknown name: \"foo\""),
        (Constraint::lark("start: \"a\"\n  (\n"), "2("),
        (Constraint::lark("start: start \"a\""), "no text that the vocabulary can write"),
        (Constraint::lark("start: /[/"), "unclosed character class"),
    ] {
        let error = refused(&constraint).to_string();
        assert!(error.contains(says), "{}: {error}", constraint.text());
    }
}

/// Whatever follows rules into each other takes stack for each, and one that overflows would end the process.
#[test]
fn what_is_too_deep_or_too_large_is_refused() {
    let rules = |count: usize, rule: fn(usize) -> String| (0..count).map(rule).collect::<String>();
    let chain = rules(100_000, |i| format!("r{i} ::= \"a\" r{}\n", i + 1));
    let open = "(\"a\" ".repeat(22);
    let nested =
        (0..1400).fold(String::new(), |all, i| format!("{all}r{i} ::= {open} r{} {}\n", i + 1, ")??".repeat(22)));
    let schemas = rules(20_000, |i| {
        format!(r##""a{i}":{{"type":"object","properties":{{"x":{{"$ref":"#/$defs/a{}"}}}}}},"##, i + 1)
    });
    for (constraint, says) in [
        (Constraint::gbnf(format!("root ::= \"a\"{}", "?".repeat(100_000))), "column 21: too many repetitions"),
        (Constraint::gbnf(format!("root ::= r0\n{chain}r100000 ::= \"b\"")), "a grammar has at most 2000 rules"),
        (Constraint::gbnf(format!("root ::= r0\n{chain}r100000 ::= \"b\" r0")), "a grammar has at most 2000 rules"),
        (Constraint::gbnf(format!("root ::= r0\n{nested}r1400 ::= \"b\"")), "levels deep together"),
        (Constraint::gbnf(format!("root ::= \"{}\"", "a".repeat(3_000_000))), "at most 200000 characters"),
        (
            Constraint::gbnf(format!("root ::= \"x\"{}", rules(20_000, |i| format!(" | \"{i}\" root")))),
            "20001 places where text stands between rules",
        ),
        (
            Constraint::lark(format!(
                r##"start: %json {{"$ref":"#/$defs/a0","$defs":{{{schemas}"a20000":{{"type":"string"}}}}}}"##
            )),
            "brackets, 4000 are the most",
        ),
    ] {
        let error = refused(&constraint).to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn bounds_that_nobody_can_fill_cost_nothing() {
    for schema in [
        r#"{"type": "string", "maxLength": 1000000000}"#,
        r#"{"type": "string", "minLength": 1000000000}"#,
        r#"{"type": "array", "minItems": 1000000000, "maxItems": 2000000000, "items": {"type": "integer"}}"#,
        r#"{"type": "object", "maxProperties": 1000000000}"#,
        r#"{"type": "string", "pattern": "((a{1,1000}){1,1000}){1,1000}b"}"#,
    ] {
        compiles(Constraint::json_schema(schema));
    }
    for expression in ["a{1000000000}", "((a{0,255}){0,255}){0,255}", "(x+x+)+y"] {
        compiles(Constraint::regex(expression));
    }
}

#[test]
fn many_values_are_kept() {
    let values: Vec<String> = (0..2000).map(|i| format!("\"value {i} of {}\"", i * 7919)).collect();
    let constraint = Constraint::json_schema(format!("{{\"enum\": [{}]}}", values.join(",")));
    for seed in 0..5 {
        let text = crate::kit::generate(&warm(constraint.clone(), seed), 60);
        assert!(values.contains(&text), "{text}");
    }
}

#[test]
fn what_is_deep_or_long_is_refused_and_ends_no_process() {
    let nested = |open: &str, close: &str| format!("{}{}{}", open.repeat(100_000), "a", close.repeat(100_000));
    refused(&Constraint::json_schema(nested("[", "]")));
    refused(&Constraint::regex(nested("(", ")")));
    refused(&Constraint::lark(format!("start: {}", nested("(", ")").replace('a', "\"a\""))));
    let chain = |n: usize| -> String {
        (0..n).map(|i| format!("r{i}: \"a\" r{}\n", i + 1)).chain([format!("r{n}: \"x\"\nstart: r0\n")]).collect()
    };
    compiles(Constraint::lark(chain(1_500)));
    let error = refused(&Constraint::lark(chain(5_000)));
    assert!(error.to_string().contains("5002 rules, 2000 are the most"), "{error}");
    let chain = |n: usize| {
        let link = |i| format!(r##""r{i}": {{"items": {{"$ref": "#/$defs/r{}"}}}}"##, i + 1);
        let links: Vec<String> = (0..n).map(link).collect();
        format!(r##"{{"$ref": "#/$defs/r0", "$defs": {{{}, "r{n}": {{}}}}}}"##, links.join(","))
    };
    compiles(Constraint::json_schema(chain(300)));
    let error = refused(&Constraint::json_schema(chain(3_000)));
    assert!(error.to_string().contains("more than 2000 schemas within each other"), "{error}");
    let error = refused(&Constraint::regex("a".repeat(5 << 20)));
    assert!(error.to_string().contains("bytes"), "{error}");
    assert!(refused(&Constraint::lark(format!("start: {}", "(".repeat(9_999)))).to_string().len() < 1_000);
}

#[test]
fn a_vocabulary_that_cannot_write_it_is_told() {
    let pieces = [("a", TokenFlags::TEXT), ("</s>", TokenFlags::END)];
    let vocab = Arc::new(Vocab::new(VocabKind::Other, SpecialTokens::default(), pieces).unwrap());
    Constraint::regex("a{3}").compile(&vocab).unwrap();
    let error = Constraint::regex("b").compile(&vocab).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConstraint);
    assert!(error.to_string().contains("no text that the vocabulary can write"), "{error}");
    let endless = Arc::new(Vocab::new(VocabKind::Other, SpecialTokens::default(), [("a", TokenFlags::TEXT)]).unwrap());
    let error = Constraint::regex("a").compile(&endless).unwrap_err();
    assert!(error.to_string().contains("no token that ends a text"), "{error}");
}

#[test]
fn it_is_an_error_of_sample_with_and_leaves_the_sequence_as_it_was() {
    let mut session = session();
    let seq = session.open(&OpenOptions::default()).unwrap();
    let good = Sampling::greedy().with_constraint(Constraint::regex("ab"));
    session.sample_with(&seq, &good, &[]).unwrap();
    let error = session.sample_with(&seq, &warm(Constraint::regex("("), 0), &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConstraint);
    drop(seq);
    let drawn = draw(&mut session, &good, 9, false).unwrap();
    assert_eq!(drawn[..2], [Token(b'a'.into()), Token(b'b'.into())]);
}
