//! Texts that end within a budget.

use crate::kit::{draw, session, text, warm};
use infer_core::{Constraint, ErrorKind, Token, testing::byte_vocab};
use proptest::prelude::*;
use serde_json::Value;
use std::sync::Arc;

const TREE: &str = r##"{
    "$ref": "#/$defs/node",
    "$defs": {"node": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "weight": {"type": "integer", "minimum": 0, "maximum": 999},
            "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}
        },
        "required": ["name", "weight", "children"],
        "additionalProperties": false
    }}
}"##;

fn check_node(value: &Value) {
    let node = value.as_object().unwrap();
    assert!(node.len() == 3 && node["name"].is_string() && node["weight"].is_u64());
    node["children"].as_array().unwrap().iter().for_each(check_node);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn a_document_without_bounds_is_whole(seed in any::<u64>(), budget in 42usize..200) {
        let sampling = warm(Constraint::json_schema(TREE).with_budget(budget), seed);
        let drawn = draw(&mut session(), &sampling, 1_000, false).unwrap();
        prop_assert!(drawn.len() <= budget + 1, "{} tokens of {budget}", drawn.len());
        check_node(&serde_json::from_str(&text(&drawn)).unwrap());
    }

    #[test]
    fn any_json_value_is_whole(seed in any::<u64>(), budget in 1usize..80) {
        let sampling = warm(Constraint::any_json().with_budget(budget), seed);
        let drawn = draw(&mut session(), &sampling, 1_000, false).unwrap();
        prop_assert!(drawn.len() <= budget + 1, "{} tokens of {budget}", drawn.len());
        let read = serde_json::from_str::<Value>(&text(&drawn));
        // JSON has numbers that are larger than any `f64`.
        prop_assert!(read.as_ref().map_or_else(|error| error.to_string().contains("number out of range"), |_| true), "{read:?}");
    }
}

#[test]
fn other_formats_end_in_time_too() {
    for (constraint, budget) in [
        (Constraint::regex("[a-z]+ says: \"[^\"]*\" \\([0-9]{3,}\\)\\."), 60),
        (Constraint::regex("(ab|cd)*ef"), 9),
        (Constraint::lark("start: \"<\" start* \">\" | /[a-z]+/"), 30),
        (Constraint::gbnf("root ::= \"(\" (root | [0-9]+) (\",\" root)* \")\""), 30),
        (Constraint::regex("[äöü]{3,}ß"), 15),
    ] {
        for seed in 0..10 {
            let drawn =
                draw(&mut session(), &warm(constraint.clone().with_budget(budget), seed), 1_000, false).unwrap();
            assert!(drawn.len() <= budget + 1, "{}: {} tokens of {budget}", constraint.text(), drawn.len());
            text(&drawn);
        }
    }
}

#[test]
fn it_is_the_same_text_fed_one_by_one_and_cut() {
    for seed in 0..10 {
        let sampling = warm(Constraint::json_schema(TREE).with_budget(90), seed);
        let together = draw(&mut session(), &sampling, 1_000, false).unwrap();
        assert_eq!(draw(&mut session(), &sampling, 1_000, true).unwrap(), together);
    }
}

#[test]
fn a_budget_that_no_text_fits_in_is_an_error_that_says_what_does() {
    let vocab = Arc::new(byte_vocab());
    let shortest = r#"{"name": "", "weight": 0, "children": []}"#.len();
    Constraint::json_schema(TREE).with_budget(shortest).compile(&vocab).unwrap();
    let error = Constraint::json_schema(TREE).with_budget(shortest - 1).compile(&vocab).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConstraint);
    assert_eq!(
        error.to_string(),
        format!(
            "no text of at most {} tokens meets the constraint: the shortest one found has {shortest}, beside the token that ends it",
            shortest - 1
        )
    );
    let error = Constraint::json_schema(r#"{"type": "array", "minItems": 1000000000}"#).with_budget(99).compile(&vocab);
    assert!(error.unwrap_err().to_string().contains("none was found of any length"));
}

#[test]
fn exactly_the_shortest_text_is_drawn_where_nothing_else_fits() {
    let shortest = r#"{"name": "", "weight": 0, "children": []}"#;
    let sampling = warm(Constraint::json_schema(TREE).with_budget(shortest.len()), 7);
    let drawn = text(&draw(&mut session(), &sampling, 99, false).unwrap());
    check_node(&serde_json::from_str(&drawn).unwrap());
    assert_eq!(drawn.len(), shortest.len());
    assert_eq!(drawn[..12], shortest[..12]);
    let empty = draw(&mut session(), &warm(Constraint::regex("a*").with_budget(0), 7), 99, false).unwrap();
    assert!(empty.len() == 1 && byte_vocab().is_end(empty[0]), "{empty:?}");
    assert_ne!(empty[0], Token(0));
}

#[test]
fn a_budget_with_time_to_spare_changes_nothing() {
    let constraint = Constraint::json_schema(
        r#"{"type": "array", "items": {"enum": ["one", "two"]}, "minItems": 2, "maxItems": 5}"#,
    );
    for seed in 0..10 {
        let free = draw(&mut session(), &warm(constraint.clone(), seed), 1_000, false).unwrap();
        assert_eq!(draw(&mut session(), &warm(constraint.clone().with_budget(500), seed), 1_000, false).unwrap(), free);
    }
}
