//! Judges texts for the benches, by a validator that has nothing to do with what constrains texts there.
//!
//! Each line of the input is `[schema, "text"]` in JSON, and is answered by a line: `null` where the text is a document that the
//! schema allows, or else what is wrong with it, or with the schema.

use serde_json::Value;
use std::{error::Error, io};

fn main() -> Result<(), Box<dyn Error>> {
    for line in io::stdin().lines() {
        let (schema, text): (Value, String) = serde_json::from_str(&line?)?;
        println!("{}", Value::from(keeps_to(&schema, &text).err()));
    }
    Ok(())
}

fn keeps_to(schema: &Value, text: &str) -> Result<(), String> {
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let validator = jsonschema::options().should_validate_formats(true).build(schema);
    validator.map_err(|error| error.to_string())?.validate(&document).map_err(|error| error.to_string())
}
