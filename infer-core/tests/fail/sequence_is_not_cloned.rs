use infer_core::Sequence;

fn two_handles_on_one_slot(seq: &Sequence) -> Sequence {
    seq.clone()
}

fn main() {}
