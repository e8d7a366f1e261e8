use super::*;

#[test]
fn that_are_damaged_or_foreign_are_refused_and_leave_no_sequence_behind() {
    let mut session = session(Script::new().with_context(16), 2);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens("state"), Want::Nothing).unwrap();
    let mut file = Vec::new();
    session.save(&seq, &mut file).unwrap();
    for len in 0..file.len() {
        assert_eq!(kind(session.restore(&mut &file[..len])), ErrorKind::InvalidInput, "cut to {len}");
    }
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        assert_eq!(kind(session.restore(&mut &damaged[..])), ErrorKind::InvalidInput, "byte {at}");
    }
    let mut other = super::session(Script::new().with_seed(1), 1);
    assert_eq!(kind(other.restore(&mut &file[..])), ErrorKind::InvalidInput);
    let mut short = super::session(Script::new().with_context(4), 1);
    assert_eq!(kind(short.restore(&mut &file[..])), ErrorKind::ContextFull);
    assert_eq!((session.usage().sequences, other.usage().sequences), (1, 0));
    assert_eq!(session.restore(&mut &file[..]).unwrap().len(), 5);
}

#[test]
fn need_room_like_any_other_sequence() {
    let mut session = session(Script::new().with_cells(8), 2);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens("state"), Want::Nothing).unwrap();
    let mut file = Vec::new();
    session.save(&seq, &mut file).unwrap();
    assert_eq!(kind(session.restore(&mut &file[..])), ErrorKind::OutOfCells);
    assert_eq!((session.usage().sequences, session.usage().cells), (1, 5));
}

#[test]
fn are_neither_written_nor_read_while_the_interrupt_is_raised() {
    let mut session = session(Script::new(), 2);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens("state"), Want::Nothing).unwrap();
    let (mut file, interrupt) = (Vec::new(), session.interrupt());
    interrupt.raise();
    assert_eq!(kind(session.save(&seq, &mut file)), ErrorKind::Cancelled);
    assert!(file.is_empty());
    interrupt.lower();
    session.save(&seq, &mut file).unwrap();
    interrupt.raise();
    assert_eq!(kind(session.restore(&mut &file[..])), ErrorKind::Cancelled);
    interrupt.lower();
    assert_eq!(session.restore(&mut &file[..]).unwrap().len(), 5);
}

struct Broken;

impl std::io::Write for Broken {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the disk is full"))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl std::io::Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the disk is gone"))
    }
}

#[test]
fn carry_the_reason_of_a_failed_write_or_read() {
    let mut session = session(Script::new(), 2);
    let seq = open(&mut session);
    let errors: [Error; 2] = [session.save(&seq, &mut Broken).unwrap_err(), session.restore(&mut Broken).unwrap_err()];
    for (error, reason) in errors.iter().zip(["the disk is full", "the disk is gone"]) {
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(std::error::Error::source(error).unwrap().to_string(), reason);
    }
}

/// After a shift, what was computed is not what computing the tokens would give, and that is what goes on.
#[test]
fn are_what_was_computed_also_after_a_shift() {
    let mut session = session(Script::new(), 3);
    let seq = open(&mut session);
    feed(&mut session, &seq, &tokens("a long state"), Want::Nothing).unwrap();
    session.shift(&seq, 1..6).unwrap();
    let mut file = Vec::new();
    session.save(&seq, &mut file).unwrap();
    let restored = session.restore(&mut &file[..]).unwrap();
    let end = tokens("!");
    assert_eq!(logits(&mut session, &restored, &end), logits(&mut session, &seq, &end));
}
