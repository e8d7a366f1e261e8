//! Conversations by hand: tools go into the prompt, and what comes is told apart.

use super::*;
use infer_core::chat::{AnswerFormat, Markers, Message, RenderOptions, ToolCall, ToolChoice, ToolFormat};

/// Of the Hermes family, with reasoning that it opens itself.
const TEMPLATE: &str = "\
{% if tools %}{% for tool in tools %}{{ tool.function.name }} {% endfor %}<tool_call> {% endif %}\
{% for message in messages %}{{ message.role }}: {{ message.content }}{% for call in message.tool_calls or [] %}\
{{ call.function.name }}({{ call.function.arguments | tojson }}){% endfor %}{{ '\\n' }}{% endfor %}\
{% if add_generation_prompt %}assistant: {% if think %}<think>{{ '\\n' }}{% endif %}{% endif %}{# </think> #}";

const TOOLS: &str = r#"[{"name": "time", "parameters": {"type": "object"}}]"#;

fn start(script: Script) -> (Box<dyn Session>, Generator) {
    let model = ScriptedModel::new(script.with_chat_template(TEMPLATE));
    let session = model.session(&SessionOptions::new()).unwrap();
    (session, Generator::for_model(&model))
}

fn complete(script: Script, request: &Request) -> Completion {
    let (mut session, mut generator) = start(script);
    finish(&mut *session, &mut generator, request)
}

fn question() -> Request {
    Request::chat([Message::user("What time is it?")])
}

#[test]
fn a_conversation_is_rendered_and_its_reasoning_told_apart() {
    let script = Script::new().with_line("user: What time is it?\nassistant: ", "<think>\nHm.\n</think>\n\nLate.");
    let done = complete(script.clone(), &question());
    assert_eq!((done.text.as_str(), done.reasoning.as_str()), ("Late.", "Hm."));
    let all = complete(script, &question().with_answer_format(AnswerFormat::new()));
    assert_eq!((all.text.as_str(), all.reasoning.as_str()), ("<think>\nHm.\n</think>\n\nLate.", ""));

    // The template has opened it.
    let script = Script::new().with_line("assistant: <think>\n", "Hm.</think>Late.");
    let thinking = RenderOptions::new().with_variable("think", "true");
    let done = complete(script.clone(), &question().with_render_options(thinking));
    assert_eq!((done.text.as_str(), done.reasoning.as_str()), ("Late.", "Hm."));
    // So it is where the prompt was rendered by hand.
    let format = AnswerFormat::new().with_reasoning(Markers::new("<think>", "</think>"));
    for request in [ask("assistant: <think>\n"), Request::tokens(encode("assistant: <think>\n"))] {
        let done = complete(script.clone(), &request.with_answer_format(format.clone()));
        assert_eq!((done.text.as_str(), done.reasoning.as_str()), ("Late.", "Hm."));
    }
}

#[test]
fn a_call_comes_whole_and_its_result_goes_back() {
    let call = "<tool_call>\n{\"name\": \"time\", \"arguments\": {\"in\": \"Rome\"}}\n</tool_call>";
    let script = Script::new()
        .with_line("time <tool_call> user: What time is it?\nassistant: ", &format!("I look.\n{call}"))
        .with_line("assistant: I look.time({\"in\": \"Rome\"})\ntool: noon\nassistant: ", "Noon.");
    let (mut session, mut generator) = start(script);
    let request = question().with_tools(TOOLS);
    let pieces: Vec<Piece> = generator.generate(&mut *session, &request).unwrap().map(Result::unwrap).collect();
    let texts: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    let calls: Vec<ToolCall> = pieces.iter().flat_map(|piece| piece.tool_calls.clone()).collect();
    assert_eq!(texts, "I look.");
    assert_eq!(calls, [ToolCall::new("time", "{\"in\": \"Rome\"}")]);
    assert_eq!(pieces.last().unwrap().finish.as_ref().unwrap().reason, FinishReason::ToolCalls);

    let mut said = Message::assistant_calls(calls.clone());
    said.content = texts;
    let conversation = [Message::user("What time is it?"), said, Message::tool_result(&calls[0], "noon")];
    let done = finish(&mut *session, &mut generator, &Request::chat(conversation).with_tools(TOOLS));
    assert_eq!((done.text.as_str(), done.finish), ("Noon.", FinishReason::EndOfText));
    assert!(done.stats.cached_tokens > 30, "the conversation goes on where it was");

    // A cut answer ended for another reason.
    let script = Script::new().with_line("assistant: ", call);
    let cut = complete(script.clone(), &question().with_tools(TOOLS).with_max_tokens(call.len()));
    assert_eq!((cut.tool_calls.len(), cut.finish), (1, FinishReason::Length));
    // Without tools, and where none may be called, it is text.
    let none = question().with_tools(TOOLS).with_tool_choice(ToolChoice::None);
    for request in [question(), none, ask("assistant: ")] {
        let done = complete(script.clone(), &request);
        assert_eq!((done.text.as_str(), done.tool_calls.len(), done.finish), (call, 0, FinishReason::EndOfText));
    }
}

#[test]
fn a_stop_string_is_found_before_an_answer_is_taken_apart() {
    let script = Script::new().with_line("assistant: ", "<think>one two</think>three");
    let done = complete(script, &question().with_stop("</think>"));
    assert_eq!((done.reasoning.as_str(), done.text.as_str()), ("one two", ""));
    assert_eq!(done.finish, FinishReason::StopString(0));
}

#[test]
fn what_is_wrong_with_tools_is_an_error_before_anything_is_computed() {
    let (script, passes) = counting(Script::new());
    let (mut session, mut generator) = start(script.clone());
    for (request, kind) in [
        (question().with_tools("[{]"), ErrorKind::InvalidInput),
        (question().with_tools("[{\"name\": \"a b\"}]"), ErrorKind::InvalidInput),
        (question().with_tool_choice(ToolChoice::Required), ErrorKind::InvalidInput),
        (question().with_tools("[]").with_tool_choice(ToolChoice::Required), ErrorKind::InvalidInput),
        (question().with_tools(TOOLS).with_tool_choice(ToolChoice::Named("date".into())), ErrorKind::InvalidInput),
        (
            ask("x").with_answer_format(AnswerFormat::new().with_reasoning(Markers::new("", ""))),
            ErrorKind::InvalidInput,
        ),
    ] {
        assert_eq!(refusal(&mut *session, &mut generator, &request), kind, "{request:?}");
    }
    let hermes = AnswerFormat::new().with_tools(ToolFormat::hermes());
    let sampling = Sampling::greedy().with_constraint(infer_core::Constraint::any_json());
    let both = ask("x").with_tools(TOOLS).with_answer_format(hermes).with_tool_choice(ToolChoice::Required);
    assert_eq!(refusal(&mut *session, &mut generator, &both.with_sampling(sampling)), ErrorKind::InvalidInput);

    // Models whose templates know no tools, or no family that is known, or nothing at all.
    for template in ["{{ messages[0].content }}", "{{ tools }}"] {
        let model = ScriptedModel::new(script.clone().with_chat_template(template));
        let mut generator = Generator::for_model(&model);
        let request = question().with_tools(TOOLS);
        assert_eq!(refusal(&mut *session, &mut generator, &request), ErrorKind::Unsupported, "{template}");
    }
    let mut bare = Generator::new(ScriptedModel::new(script).tokenizer());
    assert_eq!(refusal(&mut *session, &mut bare, &question()), ErrorKind::Unsupported);
    assert_eq!(*passes.lock().unwrap(), 0);
}
