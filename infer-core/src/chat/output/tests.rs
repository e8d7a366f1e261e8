use super::*;
use crate::chat::{Fields, Markers, ToolBody, ToolFormat};
use proptest::prelude::*;

fn format(tools: ToolFormat) -> AnswerFormat {
    AnswerFormat::new().with_tools(tools).with_reasoning(Markers::new("<think>", "</think>"))
}

fn parse_pieces<'t>(parser: &mut OutputParser, pieces: impl IntoIterator<Item = &'t str>) -> AnswerParts {
    let mut parts = AnswerParts::default();
    for piece in pieces {
        parser.push(piece, &mut parts);
    }
    parser.finish(&mut parts);
    parts
}

/// The parts of a text, which are the same when it comes one character at a time.
fn parse(format: &AnswerFormat, text: &str) -> AnswerParts {
    let mut parser = OutputParser::new(format).unwrap();
    let whole = parse_pieces(&mut parser, [text]);
    let letters = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
    assert_eq!(parse_pieces(&mut parser, letters), whole, "{text:?}");
    whole
}

fn parts(content: &str, reasoning: &str, calls: &[ToolCall]) -> AnswerParts {
    AnswerParts { content: content.into(), reasoning: reasoning.into(), calls: calls.to_vec() }
}

fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall::new(name, arguments)
}

/// What is read from a text with calls only.
fn calls(tools: ToolFormat, text: &str) -> Vec<ToolCall> {
    let read = parse(&format(tools), text);
    assert_eq!((read.content.as_str(), read.reasoning.as_str()), ("", ""), "{text:?}");
    read.calls
}

#[track_caller]
fn is_text(tools: ToolFormat, text: &str) {
    assert_eq!(parse(&format(tools), text), parts(text, "", &[]));
}

#[test]
fn hermes() {
    let of = ToolFormat::hermes;
    let rome = call("weather", r#"{"city": "Rome", "days": 2}"#);
    for text in [
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 2}}\n</tool_call>",
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 2}}</tool_call>",
        "\n\n<tool_call> {\"arguments\": {\"city\": \"Rome\", \"days\": 2}, \"name\": \"weather\"}\n\n</tool_call>\n",
        // Ended without what ends a call, or with a part of it.
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 2}}",
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\", \"days\": 2}}\n</tool_",
        // The arguments as a text.
        r#"<tool_call>{"name": "weather", "arguments": "{\"city\": \"Rome\", \"days\": 2}"}</tool_call>"#,
    ] {
        assert_eq!(calls(of(), text), std::slice::from_ref(&rome), "{text:?}");
    }
    let tag = r#"{"text": "</tool_call><tool_call>{\"name\": 1}"}"#;
    let several = format!(
        "<tool_call>{{\"name\": \"a\", \"arguments\": {tag}}}</tool_call>\n<tool_call>{{\"name\": \"b\"}}</tool_call>"
    );
    assert_eq!(calls(of(), &several), [call("a", tag), call("b", "{}")]);
    let among = "I look.\n\n<tool_call>{\"name\": \"a\", \"arguments\": null}</tool_call>\n Done. \n";
    assert_eq!(parse(&format(of()), among), parts("I look.Done. \n", "", &[call("a", "{}")]));
}

#[test]
fn llama3() {
    let of = ToolFormat::llama3;
    let rome = call("weather", r#"{"city": "Rome"}"#);
    for text in [
        r#"{"name": "weather", "parameters": {"city": "Rome"}}"#,
        " \n{ \"name\" : \"weather\", \"parameters\" : {\"city\": \"Rome\"} } \n",
        r#"{"type": "function", "name": "weather", "parameters": {"city": "Rome"}}"#,
        r#"<|python_tag|>{"name": "weather", "parameters": {"city": "Rome"}}"#,
    ] {
        assert_eq!(calls(of(), text), std::slice::from_ref(&rome), "{text:?}");
    }
    let two = [rome, call("time", "{}")];
    for between in ["; ", ";", "\n", "; <|python_tag|>"] {
        let text = format!(
            "{{\"name\": \"weather\", \"parameters\": {{\"city\": \"Rome\"}}}}{between}{{\"name\": \"time\", \"parameters\": {{}}}}"
        );
        assert_eq!(calls(of(), &text), two, "{text:?}");
    }
    is_text(of(), "{\"name\": \"Bob\", \"age\": 3}");
    is_text(of(), "{\"name\": \"Bob\"}");
    is_text(of(), "<|python_tag|>print('hello')");
    // Not the whole answer.
    is_text(of(), "Like so: {\"name\": \"weather\", \"parameters\": {}}");
    let mut parser = OutputParser::new(&format(of())).unwrap();
    let mut read = AnswerParts::default();
    parser.push("{\"name\": \"Bob\", \"age\"", &mut read);
    assert_eq!(read.content, "{\"name\": \"Bob\", \"age\"", "with this key it is certainly no call");
}

#[test]
fn names_before_the_arguments() {
    let (a, b) = (call("a", r#"{"x": "</function>"}"#), call("b-2", "{}"));
    let text = "<function=a>{\"x\": \"</function>\"}</function><function=b-2>{}</function>";
    assert_eq!(calls(ToolFormat::llama_named(), text), [a, b]);
    is_text(ToolFormat::llama_named(), "<function=a b>{}</function>");
    is_text(ToolFormat::llama_named(), "<function=>{}</function>");
    is_text(ToolFormat::llama_named(), "<function=a>[1]</function>");
    is_text(ToolFormat::llama_named(), &format!("<function={}>{{}}</function>", "a".repeat(257)));

    let text = "[TOOL_CALLS]time[ARGS]{\"a\": 1}[TOOL_CALLS]zone[CALL_ID]123456789[ARGS]{}";
    assert_eq!(
        calls(ToolFormat::mistral_named_ids(), text),
        [call("time", "{\"a\": 1}"), call("zone", "{}").with_id("123456789")]
    );
    assert_eq!(calls(ToolFormat::mistral_named(), "[TOOL_CALLS]time[ARGS]{}"), [call("time", "{}")]);
}

#[test]
fn sections() {
    let (a, b) = (call("a", r#"{"x": 1}"#), call("b", "{}"));
    let r1 = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a\n```json\n{\"x\": 1}\n```<｜tool▁call▁end｜>\n\
              <｜tool▁call▁begin｜>function<｜tool▁sep｜>b\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
    assert_eq!(calls(ToolFormat::deepseek_r1(), r1), [a.clone(), b.clone()]);
    let v3 = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a<｜tool▁sep｜>{\"x\": 1}<｜tool▁call▁end｜>\
              <｜tool▁call▁begin｜>b<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
    assert_eq!(calls(ToolFormat::deepseek_v3(), v3), [a, b]);
    let kimi = "<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{\"x\": 1}\
                <|tool_call_end|><|tool_calls_section_end|>";
    assert_eq!(calls(ToolFormat::kimi_k2(), kimi), [call("a", "{\"x\": 1}").with_id("0")]);
    // A section that is begun by hand, and nothing in it.
    is_text(ToolFormat::kimi_k2(), "<|tool_calls_section_begin|> and <|tool_calls_section_end|>");
}

#[test]
fn lists() {
    let text = r#"[TOOL_CALLS][{"name": "a", "arguments": {"x": [1]}, "id": "abcdefghi"}, {"name": "b", "arguments": {}, "id": 7}]"#;
    let two = [call("a", r#"{"x": [1]}"#).with_id("abcdefghi"), call("b", "{}").with_id("7")];
    assert_eq!(calls(ToolFormat::mistral(), text), two);
    let text =
        "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"a\", \"parameters\": {}}\n]<|END_ACTION|>";
    assert_eq!(calls(ToolFormat::command_r(), text), [call("a", "{}").with_id("0")]);
    is_text(ToolFormat::mistral(), "[TOOL_CALLS][]");
    is_text(ToolFormat::mistral(), "[TOOL_CALLS][{\"name\": \"a\"}, 3]");
}

#[test]
fn a_family_by_hand() {
    let ours = ToolFormat::new("ours", ToolBody::Object(Fields::new("fn", "args"))).with_markers("<<CALL>>", "<<END>>");
    assert_eq!(calls(ours, "<<CALL>>{\"fn\": \"f\", \"args\": {}}<<END>>"), [call("f", "{}")]);
    let refused = |tools: ToolFormat| {
        let error = OutputParser::new(&AnswerFormat::new().with_tools(tools)).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::InvalidInput);
        error.to_string()
    };
    let object = || ToolBody::Object(Fields::new("name", "arguments"));
    assert!(refused(ToolFormat::new("x", object()).with_markers(" ", "</x>")).contains("tool format `x`"));
    refused(ToolFormat::new("x", ToolBody::Object(Fields::new("", "a"))).with_markers("<x>", ""));
    refused(ToolFormat::new("x", ToolBody::List(Fields::new("a", "a"))).with_markers("<x>", ""));
    let named = |arguments: &str| ToolBody::Named { id: None, arguments: arguments.into() };
    refused(ToolFormat::new("x", named(" ")).with_markers("<x>", ""));
    refused(ToolFormat::new("x", named(">")).with_bare(true));
    refused(ToolFormat::new("x", object()).with_markers("<x>", "").with_section("", "y"));
    refused(ToolFormat::mistral().with_id_pattern("a/b"));
    let blank = AnswerFormat::new().with_reasoning(Markers::new("<think>", "\n"));
    assert_eq!(OutputParser::new(&blank).unwrap_err().kind(), crate::ErrorKind::InvalidInput);
}

#[cfg(feature = "serde")]
#[test]
fn a_family_out_of_a_file() {
    let json = r#"{"name": "ours", "call": {"begin": "<c>", "end": "</c>"}, "body": {"named": {"arguments": ":"}}}"#;
    let ours: ToolFormat = serde_json::from_str(json).unwrap();
    assert_eq!(
        ours,
        ToolFormat::new("ours", ToolBody::Named { id: None, arguments: ":".into() }).with_markers("<c>", "</c>")
    );
    assert_eq!(calls(ours, "<c>f: {}</c>"), [call("f", "{}")]);
    for known in ToolFormat::known() {
        let written = serde_json::to_string(&known).unwrap();
        assert_eq!(serde_json::from_str::<ToolFormat>(&written).unwrap(), known);
    }
    let object =
        r#"{"name": "o", "call": {"begin": "<c>", "end": ""}, "body": {"object": {"name": "n", "arguments": "a"}}}"#;
    let format: AnswerFormat = serde_json::from_str(&format!("{{\"tools\": {object}}}")).unwrap();
    assert_eq!(format.tools.unwrap().body, ToolBody::Object(Fields::new("n", "a")));
}

#[test]
fn what_is_no_call_is_text_as_it_was_written() {
    for text in [
        "<tool_call>{\"name\": \"a\"",
        "<tool_call>{\"name\": }</tool_call>",
        "<tool_call>{\"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"\"}</tool_call>",
        "<tool_call>{\"name\": 1}</tool_call>",
        "<tool_call>{\"name\": \"a\", \"arguments\": [1]}</tool_call>",
        "<tool_call>{\"name\": \"a\", \"arguments\": \"text\"}</tool_call>",
        "<tool_call>{\"name\": \"a\"}} </tool_call>",
        "<tool_call>\n\ntext\n</tool_call>",
        "a  <tool_call> {'name': 'a'} </tool_call>  b",
        "<tool_call>",
        "<tool_c",
        "<<tool_call",
        "  ",
        "\n<think",
    ] {
        is_text(ToolFormat::hermes(), text);
    }
    // Behind one that is none, the next is one.
    let text = "<tool_call>{\"name\": <tool_call>{\"name\": \"b\"}</tool_call>";
    assert_eq!(parse(&format(ToolFormat::hermes()), text), parts("<tool_call>{\"name\":", "", &[call("b", "{}")]));
}

#[test]
fn a_long_text_of_beginnings_takes_no_longer_than_it_is() {
    // Each is followed until it breaks; followed to the end each time, this would take minutes.
    for unit in [
        "<tool_call>",
        "<tool_call>{\"",
        "<tool_call>{\"name\": \"a\", ",
        "<tool_call>[[",
        "<tool_call> \n",
        "<think>{",
        "<tool_",
    ] {
        is_text(ToolFormat::hermes(), format!("x{}", unit.repeat(10_000)).trim_end());
    }
    is_text(ToolFormat::hermes(), &format!("<tool_call>{{\"{}", "a<tool_call>".repeat(10_000)));
    is_text(ToolFormat::llama_named(), &format!("x{}", "<function=a".repeat(10_000)));
}

#[test]
fn text_is_given_as_soon_as_it_is_certain() {
    let mut parser = OutputParser::new(&format(ToolFormat::hermes())).unwrap();
    let mut given = Vec::new();
    for piece in ["a <b> <too", "l_ca", "p", "\n", "\n<tool_call>{\"name\": ", "x", "<", "/"] {
        let mut read = AnswerParts::default();
        parser.push(piece, &mut read);
        given.push(read.content);
    }
    assert_eq!(given, ["a <b>", "", " <tool_cap", "", "", "\n\n<tool_call>{\"name\": x", "", "</"]);
    let mut blanks = AnswerParts::default();
    parser.push(&" ".repeat(100), &mut blanks);
    assert_eq!(blanks.content.len(), 100 - MAX_BLANKS, "blanks are not collected without end");
}

#[test]
fn reasoning() {
    let of = format(ToolFormat::hermes());
    let none = AnswerFormat::new();
    let thought = "<think>\nHm <tool_call>{\"name\": \"a\"}</tool_call>?\n</think>\n\nYes.\n";
    let said = "Hm <tool_call>{\"name\": \"a\"}</tool_call>?";
    assert_eq!(parse(&of, thought), parts("Yes.\n", said, &[]), "what is thought is no call");
    assert_eq!(parse(&none, thought), parts(thought, "", &[]), "and where there is no format, all is content");
    assert_eq!(parse(&of, "<think>cut </th"), parts("", "cut </th", &[]));
    assert_eq!(parse(&of, "<think></think>x"), parts("x", "", &[]));
    let late = "The tag <think> opens, and </think> closes.";
    assert_eq!(parse(&of, late), parts(late, "", &[]), "only at the beginning");
    let again = "<think>a</think><tool_call>{\"name\": \"f\"}</tool_call>\n<think>b</think>\n<tool_call>{\"name\": \"g\"}</tool_call>";
    assert_eq!(parse(&of, again), parts("", "ab", &[call("f", "{}"), call("g", "{}")]));
    let bare = "<think>I call.</think>\n{\"name\": \"f\", \"parameters\": {}}";
    assert_eq!(parse(&format(ToolFormat::llama3()), bare), parts("", "I call.", &[call("f", "{}")]));
}

#[test]
fn an_answer_may_begin_inside_its_reasoning() {
    let markers = Markers::new("<think>\n", "\n</think>\n\n");
    let format = AnswerFormat::new().with_reasoning(markers);
    assert!(!format.clone().for_prompt("<|im_start|>assistant\n<think>\n\n</think>\n\n").reasoning_open);
    let format = format.for_prompt("<|im_start|>assistant\n<think>\n");
    let mut parser = OutputParser::new(&format).unwrap();
    for (text, content, thought) in [
        ("Hm.\n</think>\n\nYes.", "Yes.", "Hm."),
        ("<think>\nHm.</think>Yes.", "Yes.", "Hm."),
        ("</think>Yes.", "Yes.", ""),
        ("Hm. <think> ", "", "Hm. <think> "),
        ("", "", ""),
    ] {
        assert_eq!(parse_pieces(&mut parser, [text]), parts(content, thought, &[]), "{text:?}");
    }
    let mut without = OutputParser::new(&AnswerFormat::new().with_reasoning_open(true)).unwrap();
    assert_eq!(parse_pieces(&mut without, ["Yes."]), parts("Yes.", "", &[]));
}

/// Texts of which markers, calls and what is like them are made, in any order.
fn words() -> impl Strategy<Value = Vec<&'static str>> {
    const WORDS: &[&str] = &[
        "<tool_call>",
        "</tool_call>",
        "<tool",
        "_call>",
        "{\"name\": \"a\", \"arguments\": {\"x\": 1}}",
        "{\"name\": ",
        "\"b\"",
        "}",
        "{",
        "\"parameters\": {}",
        ", ",
        ";",
        "<|python_tag|>",
        "<function=",
        "f",
        ">",
        "</function>",
        "<think>",
        "</think>",
        "</th",
        " ",
        "\n",
        "text",
        "é",
        "[TOOL_CALLS]",
        "[",
        "]",
        "[ARGS]",
        "<|tool_calls_section_begin|>",
        "<|tool_calls_section_end|>",
        "<|tool_call_begin|>functions.",
        ":0",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "{\"name\": \"a\", \"parameters\": {}}",
    ];
    prop::collection::vec(prop::sample::select(WORDS), 0..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn it_makes_no_difference_how_a_text_is_cut(
        words in words(),
        tools in prop::sample::select(ToolFormat::known()),
        open in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text = words.concat();
        let mut parser = OutputParser::new(&format(tools).with_reasoning_open(open)).unwrap();
        let whole = parse_pieces(&mut parser, [text.as_str()]);
        let mut at: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(cut.index(text.len() + 1))).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let pieces = at.windows(2).map(|cut| &text[cut[0]..cut[1]]);
        prop_assert_eq!(&parse_pieces(&mut parser, pieces), &whole, "{:?}", text);
        let letters = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]);
        prop_assert_eq!(&parse_pieces(&mut parser, letters), &whole, "{:?}", text);
    }

    /// What is given as text is in the text, in its order: nothing is made up, nothing moves.
    #[test]
    fn content_and_reasoning_are_what_was_written(words in words(), tools in prop::sample::select(ToolFormat::known())) {
        let text = words.concat();
        let read = parse(&format(tools), &text);
        for part in [&read.content, &read.reasoning] {
            let mut rest = text.chars();
            prop_assert!(part.chars().all(|c| rest.any(|next| next == c)), "{:?} of {:?}", part, text);
        }
        let letters = |text: &str| text.chars().filter(|c| !BLANKS.contains(c)).count();
        if read.calls.is_empty() && !text.contains("think>") && !text.contains("section_end") {
            prop_assert_eq!(letters(&read.content), letters(&text), "nothing is lost");
        }
    }
}
