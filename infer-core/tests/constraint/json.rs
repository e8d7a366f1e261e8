//! JSON schemas.

use crate::kit::{draw, generate, session, text, warm};
use infer_core::{Constraint, Whitespace};
use serde_json::Value;

const PERSON: &str = r#"{
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 3}
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": false
}"#;

#[test]
fn documents_are_those_of_the_schema() {
    for seed in 0..20 {
        for whitespace in [Whitespace::Spaced, Whitespace::Compact, Whitespace::Flexible] {
            let text = generate(&warm(Constraint::json_schema(PERSON).with_whitespace(whitespace), seed), 300);
            let value: Value = serde_json::from_str(&text).unwrap();
            let person = value.as_object().unwrap();
            assert_eq!(person.keys().collect::<Vec<_>>(), ["name", "age", "tags"], "{text}");
            assert!(person["name"].as_str().unwrap().chars().count() <= 12, "{text}");
            assert!(person["age"].as_u64().unwrap() <= 120, "{text}");
            let tags = person["tags"].as_array().unwrap();
            assert!(
                tags.len() <= 3 && tags.iter().all(|tag| ["a", "b", "c"].contains(&tag.as_str().unwrap())),
                "{text}"
            );
        }
    }
}

#[test]
fn forced_tokens_are_those_that_drawing_gives() {
    for seed in 0..20 {
        let sampling = warm(Constraint::json_schema(PERSON), seed);
        let together = draw(&mut session(), &sampling, 300, false).unwrap();
        let one_by_one = draw(&mut session(), &sampling, 300, true).unwrap();
        assert_eq!(text(&together), text(&one_by_one));
        let unforced = warm(Constraint::json_schema(PERSON).with_forced_tokens(false), seed);
        assert_eq!(
            draw(&mut session(), &unforced, 300, false).unwrap(),
            together,
            "each text has one way into tokens here"
        );
    }
}
