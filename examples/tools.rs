//! A model that calls functions of the program: ask, call, tell the result, answer.
//!
//! `cargo run -p infer-examples --bin tools -- MODEL [QUESTION]`

use infer::{
    Engine, FinishReason, Request,
    chat::{Message, ToolCall, ToolChoice, ToolFormat},
};
use serde_json::Value;

/// What the model is told of the functions. The schemas are kept to where a call is required.
const TOOLS: &str = r#"[
    {"type": "function", "function": {"name": "distance", "description": "The distance between two ports in kilometres.",
        "parameters": {"type": "object", "required": ["from", "to"], "properties": {
            "from": {"enum": ["Bergen", "Oslo", "Stavanger"]}, "to": {"enum": ["Bergen", "Oslo", "Stavanger"]}}}}},
    {"type": "function", "function": {"name": "ferry", "description": "When the next ferry leaves a port.",
        "parameters": {"type": "object", "required": ["port"], "properties": {
            "port": {"enum": ["Bergen", "Oslo", "Stavanger"]}}}}}
]"#;

/// Rounds of calls before the answer.
const MOST_ROUNDS: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which model? `cargo xtask model smollm2` prints the path of one")?;
    let question = arguments.next().unwrap_or_else(|| "How far is it from Bergen to Oslo by sea?".to_owned());

    let mut builder = Engine::builder(path.as_str()).with_context(4096);
    // The template of a model that was tuned for tools says how it writes calls. One that was not gets another template, and
    // must be made to write them.
    let template = infer::inspect(&path)?.info.chat_template;
    if template.as_deref().and_then(ToolFormat::detect).is_none() {
        builder = builder.with_chat_template(include_str!("tools.jinja"));
    }
    let engine = builder.build()?;

    let mut messages = vec![Message::user(question)];
    for round in 0..MOST_ROUNDS {
        // The first answer is a call; whether more follow is the model's choice.
        let choice = if round == 0 { ToolChoice::Required } else { ToolChoice::Auto };
        let request = Request::chat(messages.clone())
            .with_tools(TOOLS)
            .with_tool_choice(choice)
            .with_parallel_tool_calls(false)
            .with_max_tokens(200);
        let answer = engine.generate(request).complete()?;
        if answer.finish != FinishReason::ToolCalls {
            println!("{}", answer.text.trim());
            return Ok(());
        }
        let mut said = Message::assistant_calls(answer.tool_calls.clone());
        said.content = answer.text;
        messages.push(said);
        for call in &answer.tool_calls {
            let result = run(call);
            println!("{}({}) = {result}", call.name, call.arguments);
            messages.push(Message::tool_result(call, result));
        }
    }
    println!("no answer after {MOST_ROUNDS} rounds of calls");
    Ok(())
}

/// What a function answers; a mistake of the model's is told to the model.
fn run(call: &ToolCall) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let port = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    match call.name.as_str() {
        "distance" => distance(&port("from"), &port("to")).map_or("no such port".into(), |km| format!("{km} km")),
        "ferry" => ferry(&port("port")).unwrap_or("no such port").to_owned(),
        other => format!("there is no function {other}"),
    }
}

fn distance(from: &str, to: &str) -> Option<u32> {
    /// Along the coast, from Bergen.
    const PORTS: [(&str, u32); 3] = [("Bergen", 0), ("Stavanger", 170), ("Oslo", 710)];
    let place = |name| PORTS.iter().find(|(port, _)| *port == name).map(|(_, km)| *km);
    Some(place(from)?.abs_diff(place(to)?))
}

fn ferry(port: &str) -> Option<&'static str> {
    match port {
        "Bergen" => Some("at 9:00"),
        "Stavanger" => Some("at 13:30"),
        "Oslo" => Some("at 16:45"),
        _ => None,
    }
}
