//! Answers by any model, of any family: the same parts however the text comes, nothing made up, and soon.
#![no_main]

use infer_core::chat::{AnswerFormat, AnswerParts, Markers, OutputParser, ToolFormat};
use infer_fuzz::{input::Bytes, seeds};
use libfuzzer_sys::fuzz_target;

// Which family and how the answer begins, how it is cut, and then the text.
fuzz_target!(init: seeds::write_if_asked(first), |input: &[u8]| {
    let mut input = Bytes(input);
    let families = ToolFormat::known();
    let (head, step) = (input.byte(), usize::from(input.byte() % 16) + 1);
    let format = AnswerFormat::new()
        .with_tools(families[usize::from(head >> 1) % families.len()].clone())
        .with_reasoning(Markers::new("<think>", "</think>"))
        .with_reasoning_open(head & 1 == 1);
    let text = String::from_utf8_lossy(input.0);
    let mut parser = OutputParser::new(&format).expect("the families are right");
    let whole = parts(&mut parser, [&*text]);
    assert_eq!(parts(&mut parser, Pieces { rest: &text, step }), whole);
    assert_eq!(parts(&mut parser, Pieces { rest: &text, step: 1 }), whole);
    for part in [&whole.content, &whole.reasoning] {
        let mut rest = text.chars();
        assert!(part.chars().all(|c| rest.any(|next| next == c)), "{part:?} was not written");
    }
    for call in &whole.calls {
        assert!(!call.name.is_empty() && call.arguments.starts_with('{'), "{call:?}");
    }
});

fn parts<'t>(parser: &mut OutputParser, pieces: impl IntoIterator<Item = &'t str>) -> AnswerParts {
    let mut parts = AnswerParts::default();
    for piece in pieces {
        parser.push(piece, &mut parts);
    }
    parser.finish(&mut parts);
    parts
}

/// A text in pieces of so many characters.
struct Pieces<'t> {
    rest: &'t str,
    step: usize,
}

impl<'t> Iterator for Pieces<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let at = self.rest.char_indices().nth(self.step).map_or(self.rest.len(), |(at, _)| at);
        let (piece, rest) = self.rest.split_at(at);
        self.rest = rest;
        (!piece.is_empty()).then_some(piece)
    }
}

/// Calls of each family, and what is around them.
fn first() -> Vec<Vec<u8>> {
    let calls = [
        "<function=time>{\"zone\": \"UTC\"}</function><function=b>{}</function>",
        "Well. <tool_call>\n{\"name\": \"a\", \"arguments\": {\"x\": [1, \"}\\\"\"]}}\n</tool_call>\n<tool_call>{\"name\": \"b\"}</tool_call>",
        "{\"name\": \"a\", \"parameters\": {}}; <|python_tag|>{\"type\": \"function\", \"name\": \"b\", \"parameters\": {\"c\": -1.5e3}}",
        "[TOOL_CALLS][{\"name\": \"a\", \"arguments\": \"{}\", \"id\": \"abcdefghi\"}, {\"name\": \"b\", \"arguments\": null}]",
        "[TOOL_CALLS]a[ARGS]{}[TOOL_CALLS]b[ARGS]{\"c\": true}",
        "[TOOL_CALLS]a[CALL_ID]123456789[ARGS]{}",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>a\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.a:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
        "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"a\", \"parameters\": {}}]<|END_ACTION|>",
        "<|tool_call|>[{\"name\": \"a\", \"arguments\": {}}]",
        "<TOOLCALL>[{\"name\": \"a\", \"arguments\": {}}]</TOOLCALL>",
        "<tool_calls>[{\"name\": \"a\", \"arguments\": {}}]</tool_calls>",
    ];
    let with = |(family, call): (usize, &&str)| {
        let head = u8::try_from(family * 2).expect("few families");
        let plain = [&[head, 2][..], call.as_bytes()].concat();
        let inside = [&[head + 1, 4][..], b"Hm.\n</think>\n\n", call.as_bytes()].concat();
        let thought = [&[head, 0][..], b"<think> a</think>", call.as_bytes(), b" and text"].concat();
        [plain, inside, thought]
    };
    calls.iter().enumerate().flat_map(with).collect()
}
