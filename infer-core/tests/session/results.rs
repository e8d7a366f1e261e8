use super::*;

#[test]
fn do_not_depend_on_how_tokens_were_cut_into_batches_or_on_company() {
    let text = tokens("the quick brown fox");
    let expected = recomputed(&text);
    for chunk in 1..=text.len() {
        let mut session = session(Script::new(), 2);
        let (seq, company) = (open(&mut session), open(&mut session));
        let mut batch = Batch::new();
        for part in text.chunks(chunk) {
            batch.clear();
            batch.push(&company, &tokens("noise"), Want::Logits);
            batch.push(&seq, part, Want::Logits);
            session.decode(&batch).unwrap();
        }
        assert_eq!(session.outputs().logits(1).unwrap(), expected, "chunks of {chunk}");
    }
}

#[test]
fn are_those_of_a_recomputed_sequence_after_fork_truncate_and_restore() {
    for layout in [KvLayout::Unified, KvLayout::Split] {
        let mut session = session(Script::new().with_layout(layout), 3);
        let parent = open(&mut session);
        feed(&mut session, &parent, &tokens("once upon"), Want::Nothing).unwrap();
        let child = session.fork(&parent, 4).unwrap();
        assert_eq!(child.len(), 4);
        assert_eq!(logits(&mut session, &child, &tokens(" more")), recomputed(&tokens("once more")));
        session.truncate(&parent, 5).unwrap();
        assert_eq!(logits(&mut session, &parent, &tokens("again")), recomputed(&tokens("once again")));
        let mut file = Vec::new();
        session.save(&parent, &mut file).unwrap();
        drop(parent);
        let restored = session.restore(&mut &file[..]).unwrap();
        assert_eq!(restored.len(), 10);
        assert_eq!(logits(&mut session, &restored, &tokens("!")), recomputed(&tokens("once again!")));
        assert_eq!(logits(&mut session, &child, &tokens("?")), recomputed(&tokens("once more?")));
    }
}

/// Drawn tokens are a function of sampling, prompt and tokens fed: not of what befell the sequence in between.
#[test]
fn are_the_same_draws_after_fork_truncate_restore_and_rebuild() {
    let sampling = Sampling::default()
        .with_temperature(0.9)
        .with_seed(42)
        .with_repetition_penalty(1.2)
        .with_presence_penalty(0.3)
        .with_top_k(40);
    let prompt = tokens("a story:");
    let mut session = session(Script::new(), 4);
    let whole = {
        let (seq, mut log) = (open(&mut session), prompt.clone());
        session.sample_with(&seq, &sampling, &prompt).unwrap();
        generate(&mut session, &seq, &mut log, 40);
        log
    };
    let (first, mut log) = (open(&mut session), prompt.clone());
    session.sample_with(&first, &sampling, &prompt).unwrap();
    generate(&mut session, &first, &mut log, 20);
    assert_eq!(log, whole[..log.len()]);
    let held = first.len();

    let mut file = Vec::new();
    session.save(&first, &mut file).unwrap();
    let restored = session.restore(&mut &file[..]).unwrap();
    let forked = session.fork(&first, held - 7).unwrap();
    session.truncate(&first, held - 5).unwrap();
    for (what, seq) in [("restored", &restored), ("forked", &forked)] {
        session.sample_with(seq, &sampling, &prompt).unwrap();
        let mut log = whole[..seq.len() + 1].to_vec();
        generate(&mut session, seq, &mut log, 5);
        assert_eq!(log, whole[..log.len()], "{what}");
    }
    let mut log = whole[..first.len() + 1].to_vec(); // its sampling has stayed
    generate(&mut session, &first, &mut log, 5);
    assert_eq!(log, whole[..log.len()], "truncated");

    let mut another = super::session(Script::new(), 1);
    let rebuilt = open(&mut another);
    another.sample_with(&rebuilt, &sampling, &prompt).unwrap();
    let mut log = whole[..30].to_vec();
    generate(&mut another, &rebuilt, &mut log, 10);
    assert_eq!(log, whole[..log.len()], "rebuilt");
}

/// A pass that failed has not touched the sampler either.
#[test]
fn are_the_same_draws_after_a_failed_pass() {
    let sampling = Sampling::default().with_temperature(1.0).with_frequency_penalty(0.5);
    let run = |script: Script| {
        let mut session = session(script, 1);
        let seq = open(&mut session);
        let mut log = tokens("go");
        session.sample_with(&seq, &sampling, &log.clone()).unwrap();
        let mut batch = Batch::new();
        while log.len() < 20 {
            batch.clear();
            batch.push(&seq, &log[seq.len()..], Want::Token);
            match session.decode(&batch) {
                Ok(()) => log.push(session.outputs().token(0).unwrap()),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Runtime),
            }
        }
        log
    };
    let shaky = Script::new().with_hook(|step| {
        (step.pass % 3 == 1 && step.done == step.entries).then_some(Fault::Error(ErrorKind::Runtime))
    });
    assert_eq!(run(shaky), run(Script::new()));
}
