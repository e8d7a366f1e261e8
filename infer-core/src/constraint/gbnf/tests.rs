use super::{
    parse::{Grammar, Node, parse},
    to_lark,
};
use crate::{
    Constraint, ErrorKind, Sampling, Token,
    sampling::Sampler,
    testing::{ByteTokenizer, byte_vocab},
};
use proptest::prelude::*;
use std::{collections::BTreeSet, fmt::Write as _};

/// Whether a text can be drawn, to its end.
fn takes(sampler: &mut Sampler, text: &str) -> bool {
    let vocab = byte_vocab();
    let tokens: Vec<Token> = text.bytes().map(|byte| Token(byte.into())).collect();
    sampler.truncate(0);
    sampler.accept(0, &tokens);
    let mut drawable = Vec::new();
    let drawn = sampler.distribution(&vec![0.0_f32; vocab.len()], tokens.len(), &mut drawable);
    drawn.is_ok() && drawable.iter().any(|&(token, _)| vocab.is_end(token))
}

fn sampler(grammar: &str) -> Sampler {
    let constraint = Constraint::gbnf(grammar).with_forced_tokens(false);
    let sampling = Sampling::default().with_temperature(1.0).with_constraint(constraint);
    let tokenizer = ByteTokenizer::default();
    Sampler::for_vocab(&sampling, &[], crate::Tokenizer::vocab(&tokenizer))
        .unwrap_or_else(|error| panic!("{error}\n{grammar}"))
}

#[test]
fn grammars_take_what_they_say() {
    for (grammar, taken, refused) in [
        ("root ::= \"ab\"", &["ab"][..], &["", "a", "abc", "AB"][..]),
        ("root ::= [a-cx]", &["a", "b", "c", "x"], &["d", "", "ab"]),
        ("root ::= [^a-c]", &["d", "\n", "ä", "😀"], &["a", "c", ""]),
        ("root ::= [a\\-\\]\\\\^-]+", &["-]\\^a", "-"], &["b", "["]),
        ("root ::= \"\\x41\\u00e4\\U0001F600\\t\\r\\n\\\\\\\"\"", &["Aä😀\t\r\n\\\""], &["A"]),
        ("root ::= [\\x41-\\x43][\\u00e4\\U0001F600]", &["Aä", "C😀"], &["Dä", "A"]),
        ("root ::= .", &["a", "\n", "€"], &["", "ab"]),
        ("root ::= \"a\"? \"b\"* \"c\"+", &["c", "ac", "abbcc"], &["", "ab", "aac"]),
        (
            "root ::= \"a\"{2} \"b\"{1,} \"c\"{ 0 , 2 } \"d\"{0,1}x\nx ::= \"\"",
            &["aab", "aabbccd"],
            &["ab", "aaccc", "aabccc"],
        ),
        ("root ::= \"a\"{0} \"b\"", &["b"], &["ab", ""]),
        ("root ::= (\"a\" | \"b\" \"c\") (\"d\" | )", &["a", "ad", "bcd", "bc"], &["b", "d", "acd"]),
        (
            "# said\nroot ::= x # and said\n  \n\nx ::=\n  \"a\" |\n  # between\n  \"b\" (\n \"c\"\n | \"d\" )",
            &["a", "bc", "bd"],
            &["b"],
        ),
        ("root ::= | \"x\"", &["", "x"], &["xx"]),
        ("root ::= ((x?)*)+ \"!\"\nx ::= \"a\" | \"(\" x \")\"", &["!", "a(a)!"], &["a", "(a!"]),
        ("root ::= x{2}{2}\nx ::= \"a\" | \"(\" x \")\"", &["a(a)aa"], &["aa", "aaa"]),
        ("a-1 ::= \"x\" root\nroot ::= \"(\" a-1 \")\" | \"y\"", &["y", "(xy)", "(x(xy))"], &["(x)", "(xy", "xy"]),
        // What would swallow the end.
        ("root ::= [a-z]* \"end\"", &["end", "endend", "friend"], &["en", "endx"]),
        ("root ::= \"[\" root \"]\" | [a-z]+ \"z\"", &["az", "[azz]", "[[zz]]"], &["z", "[a]", "[az"]),
        (
            "root ::= list \"\\n\"\nlist ::= item (\",\" item)*\nitem ::= [a-z]+ [ \\n]* | \"(\" list \")\"",
            &["a\n", "a \n\n", "(a,b\n),c\n"],
            &["a", "(a\n"],
        ),
        // Left recursion, which llama.cpp refuses.
        ("root ::= root \"+\" [0-9] | [0-9]", &["1", "1+2+3"], &["1+", "+1"]),
    ] {
        let mut sampler = sampler(grammar);
        for text in taken {
            assert!(takes(&mut sampler, text), "{grammar}\ndoes not take {text:?}\n{}", to_lark(grammar).unwrap());
        }
        for text in refused {
            assert!(!takes(&mut sampler, text), "{grammar}\ntakes {text:?}\n{}", to_lark(grammar).unwrap());
        }
    }
}

#[test]
fn tokens_are_named_by_number_or_name() {
    let vocab = byte_vocab();
    for (grammar, next) in [
        ("root ::= \"a\" <[258]> \"b\"", vec![258]),
        ("root ::= \"a\" <|im_start|> \"b\"", vec![258]),
        ("root ::= \"a\" !<[258]>", (0..260).filter(|&id| id != 258).collect()),
    ] {
        let mut sampler = sampler(grammar);
        sampler.accept(0, &[Token(b'a'.into())]);
        let mut drawable = Vec::new();
        sampler.distribution(&vec![0.0_f32; vocab.len()], 1, &mut drawable).unwrap();
        let mut ids: Vec<u32> = drawable.iter().map(|(token, _)| token.0).collect();
        ids.sort_unstable();
        assert_eq!(ids, next, "{grammar}");
    }
}

#[test]
fn a_mistake_is_named_with_its_line_and_column() {
    for (grammar, says) in [
        ("", "line 1, column 1: there is no rule `root`"),
        ("root ::= \"a\"\nx :: \"b\"", "line 2, column 3: `::=` is expected"),
        ("root ::= \"a\" y\n\nz ::= \"b\" ö", "line 3, column 11: the end of the line"),
        ("root ::= \"a\" y", "line 1, column 14: this rule is nowhere defined"),
        ("root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: this rule is defined twice"),
        ("root ::= \"ä\" \"b", "line 1, column 16: the literal has no end"),
        ("root ::= [ab", "line 1, column 13: the class has no end"),
        ("root ::= []", "line 1, column 10: no character"),
        ("root ::= [z-a]", "line 1, column 14: this range ends before it begins"),
        ("root ::= \"\\q\"", "line 1, column 11: this escape is not known"),
        ("root ::= \"\\x4\"", "line 1, column 13: 2 hexadecimal digits"),
        ("root ::= \"\\ud800\"", "line 1, column 11: this is no character"),
        ("root ::= * \"a\"", "line 1, column 10: there is nothing before this"),
        ("root ::= \"a\"{3,2}", "at most fewer"),
        ("root ::= \"a\"{x}", "line 1, column 14: a number"),
        ("root ::= \"a\"{99999999999}", "a number below"),
        ("root ::= (\"a\" | \"b\"", "line 1, column 20: `)` is expected"),
        ("root ::= \"a\"\n | \"b\"", "line 2, column 2: the name of a rule"),
        ("root ::= !<think>", "a token is expected here"),
    ] {
        let error = to_lark(grammar).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConstraint);
        assert!(error.to_string().contains(says), "{grammar}: {error}");
    }
    let deep = format!("root ::= {}\"a\"{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(to_lark(&deep).unwrap_err().to_string().contains("column 34: groups are nested too deeply"));
}

#[test]
fn groups_as_deep_as_are_read_are_compiled() {
    let grammar = format!("root ::= {}\"a\" root?{}", "(\"x\" | ".repeat(22), ")*".repeat(22));
    assert!(takes(&mut sampler(&grammar), "aax"));
}

/// Where matches of a node that begin at `from` end.
fn ends(grammar: &Grammar, node: &Node, text: &[char], from: usize) -> BTreeSet<usize> {
    match node {
        Node::Char(chars) => text
            .get(from)
            .filter(|&&c| chars.meets(&super::chars::Chars::of([(c.into(), c.into())])))
            .map(|_| from + 1)
            .into_iter()
            .collect(),
        Node::Token(_) => BTreeSet::new(),
        Node::Rule(rule) => ends(grammar, &grammar.rules[*rule], text, from),
        Node::Choice(nodes) => nodes.iter().flat_map(|node| ends(grammar, node, text, from)).collect(),
        Node::Sequence(nodes) => nodes.iter().fold([from].into(), |places: BTreeSet<usize>, node| {
            places.into_iter().flat_map(|from| ends(grammar, node, text, from)).collect()
        }),
        Node::Repeat(node, least, most) => {
            let mut all = BTreeSet::new();
            let mut places = BTreeSet::from([from]);
            for times in 0..=most.unwrap_or(u32::MAX) {
                if times >= *least {
                    let before = all.len();
                    all.extend(&places);
                    if times > *least && all.len() == before {
                        break;
                    }
                }
                places = places.into_iter().flat_map(|from| ends(grammar, node, text, from)).collect();
            }
            all
        }
    }
}

/// The text of an expression over a, b and c; it refers to the rules `r0` to `r2`, `root` behind a bracket only.
fn expression(recursive: bool) -> impl Strategy<Value = String> {
    let class =
        prop::sample::select(vec!["[a-b]", "[^ab]", "\"a\"", "\"b\"", "\"ab\"", "\"\"", "[bc]"]).prop_map(String::from);
    let rule = prop::sample::select(vec!["r0", "r1", "r2"]).prop_map(String::from);
    let leaf = prop_oneof![4 => class, 1 => rule];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let times = prop::sample::select(vec!["*", "+", "?", "{2}", "{1,2}", "{2,}"]);
        let again = if recursive { "(\"(\" root \")\")" } else { "(\"(\" r1 \")\")" };
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|all| all.join(" ")),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|all| format!("({})", all.join(" | "))),
            (inner.clone(), times).prop_map(|(inner, times)| format!("({inner}){times}")),
            inner.prop_map(move |inner| format!("{inner} {again}")),
        ]
    })
}

fn grammar(recursive: bool) -> impl Strategy<Value = String> {
    (expression(recursive), expression(false)).prop_map(|(root, r2)| {
        let r2 = r2.replace("r2", "r0").replace("r1", "r0");
        format!("root ::= {root}\nr0 ::= \"c\"?\nr1 ::= r0 \"a\"\nr2 ::= {r2}\n")
    })
}

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::collection::vec(prop::sample::select(vec!['a', 'b', 'c', '(', ')']), 0..7), 40)
        .prop_map(|words| words.into_iter().map(String::from_iter).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// What does not refer to itself is taken exactly.
    #[test]
    fn regular_grammars_are_kept_exactly(grammar in grammar(false), words in words()) {
        let (mut sampler, read) = (sampler(&grammar), parse(&grammar).unwrap());
        for word in words {
            let text: Vec<char> = word.chars().collect();
            let is_taken = ends(&read, &read.rules[read.root], &text, 0).contains(&text.len());
            prop_assert_eq!(takes(&mut sampler, &word), is_taken, "{} {:?}", grammar, word);
        }
    }

    /// Of what does, nothing is taken that is not said.
    #[test]
    fn recursive_grammars_are_not_exceeded(grammar in grammar(true), words in words()) {
        let (mut sampler, read) = (sampler(&grammar), parse(&grammar).unwrap());
        for word in words {
            let text: Vec<char> = word.chars().collect();
            let is_taken = ends(&read, &read.rules[read.root], &text, 0).contains(&text.len());
            prop_assert!(!takes(&mut sampler, &word) || is_taken, "{grammar} {word:?}");
        }
    }
}

#[test]
fn what_is_written_stays_small() {
    let mut grammar = String::from("root ::= x0\n");
    for rule in 0..40 {
        let _ = writeln!(grammar, "x{rule} ::= x{} x{}", rule + 1, rule + 1);
    }
    grammar.push_str("x40 ::= [a-z]\n");
    assert!(to_lark(&grammar).unwrap().len() < 2_000);
}
