//! Failures that are expected, each with its reason; one that no longer fails is a failure.

use std::any::Any;

/// A case that a subject is known to fail.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The case, by its name.
    pub case: &'static str,
    /// Why it fails, and what would have to change for it to pass.
    pub why: &'static str,
}

/// What comes of a case: of what happened, and of what was expected.
///
/// # Errors
/// It failed and no exception was declared; or one was, and it passed.
pub fn judge(exception: Option<&Exception>, happened: Result<(), String>) -> Result<(), String> {
    match (exception, happened) {
        (None, happened) => happened,
        (Some(_), Err(_)) => Ok(()),
        (Some(exception), Ok(())) => Err(format!(
            "this passes, and an exception is declared for it: take it out of the list (it said: {})",
            exception.why
        )),
    }
}

/// What a panic said.
#[must_use]
pub fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: Exception = Exception { case: "a_case", why: "the runtime has no such thing" };

    #[test]
    fn an_expected_failure_passes_and_an_expected_failure_that_passes_fails() {
        assert_eq!(judge(None, Ok(())), Ok(()));
        assert_eq!(judge(None, Err("wrong".into())), Err("wrong".into()));
        assert_eq!(judge(Some(&KNOWN), Err("wrong".into())), Ok(()));
        let said = judge(Some(&KNOWN), Ok(())).unwrap_err();
        assert!(said.contains("take it out") && said.contains(KNOWN.why), "{said}");
    }

    #[test]
    fn the_words_of_a_panic_are_kept() {
        let said = |panic: fn()| words(&*std::panic::catch_unwind(panic).unwrap_err());
        assert_eq!(said(|| std::panic::panic_any("plain")), "plain");
        assert_eq!(said(|| std::panic::panic_any(String::from("made"))), "made");
        assert_eq!(said(|| std::panic::panic_any(7)), "a panic without words");
    }
}
