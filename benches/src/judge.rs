use serde_json::Value;
use std::{
    fmt::Display,
    io::Write,
    process::{Command, Stdio},
    thread,
};

/// Whether each text is a document of JSON that its schema allows: `None`, or what is wrong with the text or the schema. The program
/// `benches/judge` says so, which is built where it is not there.
///
/// # Errors
/// It could not be built or run, and cargo has said why; or it gave not as many answers as it was asked for.
pub fn judge(texts: &[(&Value, &str)]) -> Result<Vec<Option<String>>, String> {
    let lines: String = texts.iter().map(|asked| serde_json::json!(asked).to_string() + "\n").collect();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["run", "--quiet", "--locked", "--manifest-path"]);
    cargo.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/judge/Cargo.toml"));
    // Where the benches themselves are built, so that what both need is there.
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../target");
    cargo.arg("--target-dir").arg(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| beside.into()));
    let mut child = cargo.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| said(&error))?;
    let mut stdin = child.stdin.take().expect("piped");
    // Beside the reading: a pipe holds less than all answers.
    let writer = thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().map_err(|error| said(&error))?;
    if !output.status.success() {
        return Err(said(&output.status));
    }
    writer.join().expect("it does not panic").map_err(|error| said(&error))?;
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter().collect::<Result<Vec<_>, _>>();
    let answers = answers.map_err(|error| said(&error))?;
    if answers.len() == texts.len() { Ok(answers) } else { Err(said(&format_args!("{} answers", answers.len()))) }
}

fn said(what: &dyn Display) -> String {
    format!("benches/judge, which judges documents: {what}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_judged_by_its_schema() {
        let (dates, none) = (
            json!({"type": "array", "items": {"type": "string", "format": "date"}, "maxItems": 1}),
            json!({"type": "nothing"}),
        );
        let asked = [
            (&dates, r#"["2024-02-29"]"#),
            (&dates, r#"["2024-02-30"]"#),
            (&dates, r#"["2024-02-29", "2024-02-29"]"#),
            (&dates, r#"["2024-02-29""#),
            (&dates, "{}"),
            (&none, "{}"),
        ];
        let wrong: Vec<bool> = judge(&asked).unwrap().iter().map(Option::is_some).collect();
        assert_eq!(wrong, [false, true, true, true, true, true]);
    }
}
