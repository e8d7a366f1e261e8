use super::*;

#[test]
fn is_said_and_ends() {
    let script = Script::new().with_line("<|im_start|>assistant\n", "Hi!<|im_end|>").with_line("2 + 2 = ", "4");
    let model = ScriptedModel::new(script);
    let tokenizer = model.tokenizer();
    for (prompt, expected, end) in
        [("2 + 2 = ", "4", EOS), ("<|im_start|>user\n2 + 2 = <|im_end|>\n<|im_start|>assistant\n", "Hi!", IM_END)]
    {
        let mut session = model.session(&SessionOptions::new()).unwrap();
        let seq = open(&mut *session);
        let mut log = Vec::new();
        tokenizer.encode(prompt, Special::PARSE, &mut log).unwrap();
        let start = log.len();
        session.sample_with(&seq, &Sampling::default().with_temperature(1.0), &log.clone()).unwrap();
        generate(&mut *session, &seq, &mut log, expected.len() + 1);
        let mut said = tokens(expected);
        said.push(end);
        assert_eq!(log[start..], said);
        assert!(tokenizer.vocab().is_end(end));
    }
}

#[test]
fn counts_the_sessions_of_a_model() {
    let lose = |step: &infer_core::testing::Step<'_>| (step.session < 2).then_some(Fault::Lose);
    let model = ScriptedModel::new(Script::new().with_hook(lose));
    let mut outcomes = (0..4).map(|_| {
        let mut session = model.session(&SessionOptions::new()).unwrap();
        let seq = open(&mut *session);
        feed(&mut *session, &seq, &tokens("a"), Want::Nothing).map_err(|error| error.kind())
    });
    assert!(outcomes.by_ref().take(2).all(|outcome| outcome == Err(ErrorKind::SessionLost)));
    assert!(outcomes.all(|outcome| outcome == Ok(())));
}

#[test]
fn control_tokens_are_text_unless_asked_for() {
    let tokenizer = ScriptedModel::default().tokenizer();
    let encode = |special| {
        let mut out = Vec::new();
        tokenizer.encode("a<|im_end|>", special, &mut out).unwrap();
        out
    };
    assert_eq!(encode(Special::PARSE), [Token(97), IM_END]);
    assert_eq!(encode(Special::NONE), tokens("a<|im_end|>"));
    assert_eq!(encode(Special::ADD)[1..], tokens("a<|im_end|>"));
}
