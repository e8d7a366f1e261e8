use serde_json::Value;

/// Whether a text is a document of JSON that a schema allows, by a validator that has nothing to do with what constrains texts here.
///
/// # Errors
/// What is wrong with the text, or with the schema.
pub fn keeps_to(schema: &Value, text: &str) -> Result<(), String> {
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let validator = jsonschema::options().should_validate_formats(true).build(schema);
    validator.map_err(|error| error.to_string())?.validate(&document).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_judged_by_its_schema() {
        let schema = serde_json::json!({"type": "array", "items": {"type": "string", "format": "date"}, "maxItems": 1});
        assert_eq!(keeps_to(&schema, r#"["2024-02-29"]"#), Ok(()));
        for text in [r#"["2024-02-30"]"#, r#"["2024-02-29", "2024-02-29"]"#, r#"["2024-02-29""#, "{}"] {
            assert!(keeps_to(&schema, text).is_err(), "{text}");
        }
        assert!(keeps_to(&serde_json::json!({"type": "nothing"}), "{}").is_err());
    }
}
