use super::*;
use infer_core::testing::Fault;

fn requests(count: usize) -> Vec<Request> {
    (0..count).map(|i| ask(&format!("{i} is the number of this text"), 12)).collect()
}

/// Asks for all of them at once, and compares each with its solo run on a session that nothing goes wrong with.
fn all_are_as_alone(kit: &mut Kit, requests: &[Request]) {
    kit.plain = ScriptedModel::new(Script::new());
    let asked: Vec<Asked> = requests.iter().map(|request| kit.ask(request)).collect();
    kit.run();
    for (asked, request) in asked.into_iter().zip(requests) {
        assert_eq!(asked.one().tokens, kit.solo(request).tokens);
    }
    kit.assert_all_is_free();
}

#[test]
fn a_session_that_is_lost_is_replaced_and_nothing_else() {
    let lost =
        Script::new().with_hook(|step| (step.session == 0 && step.pass == 5 && step.done == 1).then_some(Fault::Lose));
    let mut kit = Kit::new(lost, 4);
    all_are_as_alone(&mut kit, &requests(6));
    assert_eq!(kit.stats().rebuilt, 1);
}

#[test]
fn too_few_cells_make_the_youngest_wait() {
    let mut kit = Kit::new(Script::new().with_cells(100), 8);
    all_are_as_alone(&mut kit, &requests(8));
}
