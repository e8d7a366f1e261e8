//! Hidden states of tokens.

use crate::{
    DECODERS,
    linked::{alone, assert_near, feed, model, open, options, session, text},
    wanting,
};
use infer_core::{Session as _, Want};

#[test]
fn a_hidden_state_is_the_same_however_the_tokens_come() {
    let tokens = text(1, 60);
    for name in DECODERS {
        let model = model(name);
        let mut session = session(&model, &options());
        let (whole, pieces) = (open(&mut session), open(&mut session));
        wanting(&mut session, &whole, &tokens, Want::Embedding).unwrap();
        let first = session.outputs().embedding(0).unwrap().to_vec();
        assert_eq!(first.len(), model.info().width, "{name}");
        assert!(first.iter().any(|&number| number != 0.0));
        feed(&mut session, &pieces, &tokens[..59]);
        assert_eq!(session.outputs().embedding(0), None);
        wanting(&mut session, &pieces, &tokens[59..], Want::Embedding).unwrap();
        assert_near(session.outputs().embedding(0).unwrap(), &first, name);
        assert!(session.outputs().logits(0).is_none());
        // And it is off again.
        let more = text(2, 3);
        let next = feed(&mut session, &whole, &more);
        assert_near(&next, &alone(&model, &options(), &[&tokens[..], &more].concat()), name);
    }
}
