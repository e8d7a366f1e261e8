//! A text that is read by a program: it keeps to a JSON schema, whatever the model would rather say.
//!
//! `cargo run -p infer-examples --bin structured -- MODEL [TEXT]`

use infer::{Constraint, Engine, Request, Sampling, chat::Message};
use serde::Deserialize;

/// What is wanted of the text.
#[derive(Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
enum Mood {
    Glad,
    Angry,
    Neutral,
}

#[derive(Deserialize, Debug)]
struct Ticket {
    subject: String,
    mood: Mood,
    urgent: bool,
    /// 1 to 5.
    stars: u8,
}

/// The same, for the engine. Properties come in this order, so that what needs a thought comes after what it is about.
const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "subject": {"type": "string", "maxLength": 60},
        "mood": {"enum": ["glad", "angry", "neutral"]},
        "urgent": {"type": "boolean"},
        "stars": {"type": "integer", "minimum": 1, "maximum": 5}
    },
    "required": ["subject", "mood", "urgent", "stars"],
    "additionalProperties": false
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which model? `cargo xtask model smollm2` prints the path of one")?;
    let text =
        arguments.next().unwrap_or_else(|| "My parcel is three weeks late, and nobody answers the phone!".to_owned());
    let engine = Engine::builder(path).with_sequences(1).with_context(1024).build()?;

    let most = 120;
    // The schema is compiled before anything is computed: one that cannot be kept is an error then. The budget has the document
    // closed within the tokens there are; without it a text that is cut off at `max_tokens` would be half a document.
    let constraint = Constraint::json_schema(SCHEMA).with_budget(most - 1);
    let request = Request::chat([
        Message::system("You sort customers' messages. Answer in JSON: subject, mood, urgent, stars (1 to 5)."),
        Message::user(text),
    ])
    .with_sampling(Sampling::default().with_constraint(constraint))
    .with_max_tokens(most);
    let answer = engine.generate(request).complete()?;

    println!("{}", answer.text);
    let Ticket { subject, mood, urgent, stars } = serde_json::from_str(&answer.text)?;
    println!("subject: {subject}\nmood: {mood:?}, urgent: {urgent}, stars: {stars}");
    Ok(())
}
