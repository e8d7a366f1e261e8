//! What is promised, a function each.

mod capabilities;
mod company;
mod constraints;
mod cuts;
mod encoders;
mod engine;
mod interrupts;
mod limits;
mod mistakes;
mod passes;
mod random;
mod sampling;
mod saved;
mod shifts;
mod usage;

use crate::{setting::Setting, subject::Kind};

/// One promise.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Panics where the promise is not kept.
    pub(crate) run: fn(&Setting<'_>),
}

/// Cases by the names of their functions, which stay in one place so.
macro_rules! cases {
    ($($kind:ident $module:ident: $($name:ident),+;)+) => {
        &[$($(Case { name: stringify!($name), kind: Kind::$kind, run: $module::$name }),+),+]
    };
}

/// All of them.
pub(crate) fn all() -> &'static [Case] {
    cases! {
        Session passes: a_sequence_is_empty_and_grows_by_what_is_fed, chunked_prefill_equals_whole,
            a_batch_equals_each_alone, results_end_with_the_next_call, scores_are_log_softmax_step_by_step,
            hidden_states_do_not_depend_on_the_batch;
        Session cuts: fork_equals_recompute, truncate_equals_recompute, cuts_far_back_equal_recompute,
            forks_and_parents_leave_each_other_alone, cuts_that_cannot_be_are_errors;
        Session sampling: a_draw_is_a_function_of_logits_sampling_and_tokens, a_token_is_the_same_where_logits_are_not_looked_at,
            the_most_probable_tokens_are_those_of_the_logits, draws_go_on_after_a_rebuild,
            draws_go_on_after_a_fork, draws_go_on_after_a_cut, sampling_that_cannot_be_is_an_error;
        Session constraints: constrained_draws_keep_to_the_constraint, constrained_draws_go_on_whatever_was_done,
            a_bad_constraint_is_an_error_of_sample_with, a_text_against_its_constraint_fails_alone;
        Session saved: restored_goes_on_as_if_nothing_had_happened, states_lie_one_after_the_other_in_a_stream,
            saving_and_restoring_can_be_interrupted_and_can_fail,
            damaged_states_are_refused, restoring_into_a_full_session_is_an_error;
        Session interrupts: an_interrupt_is_a_level, an_interrupt_at_any_moment_leaves_the_documented_state;
        Session mistakes: bad_batches_are_errors_and_harm_nothing, bad_handles_are_errors_and_harm_nothing;
        Session limits: the_context_is_what_it_says, a_batch_is_what_it_says, sequences_are_as_many_as_it_says,
            the_vocabulary_is_what_it_says, options_that_cannot_be_are_errors;
        Session usage: usage_adds_up, dropped_handles_free_cells_on_any_thread, a_pool_without_room_says_so;
        Session capabilities: capabilities_tell_the_truth, adapters_are_the_sessions, adapters_change_what_is_computed;
        Session shifts: a_shift_takes_positions_out;
        Session random: any_sequence_of_operations_equals_recompute;
        Session engine: texts_of_an_engine_are_as_alone, texts_of_an_engine_that_give_way_come_to_the_same,
            requests_of_an_engine_that_cannot_be_are_errors_of_their_own, an_engine_that_ends_leaves_nobody_waiting;
        Session company: an_engines_texts_are_as_alone, what_an_engine_reuses_is_as_computed,
            texts_that_were_preempted_are_as_alone, completions_of_one_prompt_are_as_alone,
            who_leaves_frees_its_cells_and_harms_nobody, texts_of_lost_sessions_are_as_alone;
        Encoder encoders: a_vector_depends_on_its_text_alone, vectors_are_what_the_encoder_says, poolings_are_what_they_say,
            texts_that_cannot_be_are_errors_by_their_index, an_encoders_interrupt_is_a_level,
            pairs_are_compared_or_unsupported;
    }
}
