//! Answers by kind: each stream tells reasoning, text and calls apart.

use super::*;
use infer_core::chat::{Message, ToolCall, ToolChoice};

const TEMPLATE: &str = "{% if tools %}{{ tools | tojson }}<tool_call>{% endif %}\
    {% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %} {% if think %}<think>{% endif %}{# </think> #}";

const TOOLS: &str =
    r#"[{"name": "time", "parameters": {"properties": {"zone": {"enum": ["UTC", "CET"]}}, "required": ["zone"]}}]"#;

fn question() -> Request {
    Request::chat([Message::user("What time is it?")]).with_tools(TOOLS)
}

#[test]
fn reasoning_text_and_calls_come_apart_in_each_completion() {
    let said =
        "<think>Hm.</think>I look. <tool_call>{\"name\": \"time\", \"arguments\": {\"zone\": \"UTC\"}}</tool_call>";
    let engine = engine(Script::new().with_chat_template(TEMPLATE).with_line("it? ", said));
    let completions = engine.generate(question().with_n(2)).complete_all().unwrap();
    assert_eq!(completions.len(), 2);
    for done in completions {
        assert_eq!((done.reasoning.as_str(), done.text.as_str()), ("Hm.", "I look."));
        assert_eq!(done.tool_calls, [ToolCall::new("time", "{\"zone\": \"UTC\"}")]);
        assert_eq!(done.finish, FinishReason::ToolCalls);
    }
    let none = engine.generate(question().with_tool_choice(ToolChoice::None)).complete().unwrap();
    assert!(none.tool_calls.is_empty() && none.text.contains("<tool_call>"), "{none:?}");
}

#[cfg(feature = "constraint")]
#[test]
fn a_call_that_is_demanded_is_made_and_fits() {
    let engine = engine(Script::new().with_chat_template(TEMPLATE));
    for choice in [ToolChoice::Required, ToolChoice::Named("time".into())] {
        let request = question().with_tool_choice(choice).with_parallel_tool_calls(false).with_max_tokens(200);
        let format = infer_core::chat::AnswerFormat::detect(TEMPLATE).with_reasoning(None);
        let done = engine.generate(request.with_answer_format(format)).complete().unwrap();
        assert_eq!((done.text.as_str(), done.finish), ("", FinishReason::ToolCalls));
        let [call] = &done.tool_calls[..] else { panic!("{done:?}") };
        assert_eq!(call.name, "time");
        assert!(["{\"zone\": \"UTC\"}", "{\"zone\": \"CET\"}"].contains(&call.arguments.as_str()), "{call:?}");
    }
}

#[test]
fn what_is_wrong_with_tools_is_the_first_item_of_the_stream() {
    let engine = engine(Script::new().with_chat_template(TEMPLATE));
    for request in [
        question().with_tools("{}"),
        question().with_tool_choice(ToolChoice::Named("date".into())),
        Request::chat([Message::user("Hi")]).with_tool_choice(ToolChoice::Required),
    ] {
        assert_eq!(engine.generate(request).complete().unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(engine.stats().steps, 0);
}
