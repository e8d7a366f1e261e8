//! The frame of saved sequences: nothing comes out of it that did not go in.

use infer_core::{
    Error, ErrorKind, ModelInfo, Token,
    state::{Fingerprint, Header, Reader, UsedAdapter, Writer},
};
use std::io;

/// More than two chunks.
const PAYLOAD: usize = 150_000;

fn header() -> Header {
    let mut header = Header::new("llama", Fingerprint::of(["weights"]), "tiny")
        .with_shape("keys", "f16")
        .with_shape("cells", "unified");
    header.adapter = Some(UsedAdapter::new("pirate", Fingerprint::of(["arr"])));
    header.tokens = (0..100).map(Token).collect();
    header.payload = PAYLOAD as u64;
    header
}

fn payload() -> Vec<u8> {
    (0..PAYLOAD).map(|i| (i * i / 7) as u8).collect()
}

/// A state whose payload was written in pieces of `step` bytes.
fn saved(step: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &header()).unwrap();
    for piece in payload().chunks(step) {
        writer.write(piece).unwrap();
    }
    writer.finish().unwrap();
    out
}

fn restored(mut state: &[u8], step: usize) -> Result<(Header, Vec<u8>), Error> {
    read(&mut state, step, |reader, piece| reader.read_exact(piece))
}

fn read_ahead(from: &mut dyn io::Read, step: usize) -> Result<(Header, Vec<u8>), Error> {
    read(from, step, |reader, piece| reader.read_ahead(piece))
}

/// Reads a state, `step` bytes of its payload at a time.
fn read(
    from: &mut dyn io::Read,
    step: usize,
    mut next: impl FnMut(&mut Reader<'_>, &mut [u8]) -> Result<(), Error>,
) -> Result<(Header, Vec<u8>), Error> {
    let mut reader = Reader::new(from, 1000)?;
    let header = reader.header().clone();
    let mut payload = vec![0; PAYLOAD];
    for piece in payload.chunks_mut(step) {
        next(&mut reader, piece)?;
    }
    reader.finish()?;
    Ok((header, payload))
}

#[track_caller]
fn assert_refused(state: &[u8], why: &str) {
    let error = restored(state, 10_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert!(error.to_string().contains(why), "{error}, which does not say {why:?}");
}

/// Bytes of a chunk that is full: its length, 64 KiB, and a checksum.
const CHUNK: usize = 4 + 65_536 + 8;

/// Where the payload begins.
fn start(state: &[u8]) -> usize {
    state.len() - PAYLOAD - 3 * 12
}

#[test]
fn what_goes_in_comes_out_however_it_is_cut() {
    for written in [1, 1000, 4095, 4096, 5001, PAYLOAD] {
        let state = saved(written);
        for step in [1, 8, 4096, 5000, 100_000, PAYLOAD] {
            let case = format!("written in steps of {written}, read in steps of {step}");
            assert_eq!(restored(&state, step).unwrap(), (header(), payload()), "{case}");
            let ahead = read_ahead(&mut &state[..], step);
            assert_eq!(ahead.unwrap(), (header(), payload()), "{case}, ahead");
            let mut turn = 0;
            let mixed = read(&mut &state[..], step, |reader, piece| {
                turn += 1;
                if turn % 3 == 0 { reader.read_exact(piece) } else { reader.read_ahead(piece) }
            });
            assert_eq!(mixed.unwrap(), (header(), payload()), "{case}, in turns");
        }
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let state = saved(PAYLOAD);
    let first = start(&state);
    let around_chunks =
        [first, first + CHUNK, first + 2 * CHUNK, state.len()].map(|at| at - 8..state.len().min(at + 4));
    let all = (0..first).chain((first..state.len()).step_by(4999)).chain(around_chunks.into_iter().flatten());
    for at in all {
        let mut damaged = state.clone();
        damaged[at] ^= 1 << (at % 8);
        let error = restored(&damaged, PAYLOAD).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "byte {at}");
        let error = read_ahead(&mut &damaged[..], 10_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "byte {at}, ahead");
    }
}

#[test]
fn what_is_read_ahead_is_verified_before_what_is_not() {
    let mut state = saved(PAYLOAD);
    let last_of_first = start(&state) + CHUNK - 9;
    state[last_of_first] ^= 1;
    let reader = |state| Reader::new(state, 1000).unwrap();
    let wrong = "the checksum of chunk 1 is wrong";
    let mut bytes = &state[..];
    assert!(reader(&mut bytes).read_exact(&mut [0; 4]).unwrap_err().to_string().contains(wrong));

    let mut bytes = &state[..];
    let mut ahead = reader(&mut bytes);
    ahead.read_ahead(&mut [0; 65_535]).unwrap();
    assert!(ahead.read_exact(&mut [0; 1]).unwrap_err().to_string().contains(wrong));

    // Whoever does not stop there is not given it later either.
    let mut bytes = &state[..];
    let mut again = reader(&mut bytes);
    let mut rest = vec![0; PAYLOAD - 65_536];
    assert!(again.read_exact(&mut rest[..1]).is_err());
    again.read_exact(&mut rest).unwrap();
    assert_eq!(rest, payload()[65_536..]);

    let mut bytes = &state[..];
    let mut ahead = reader(&mut bytes);
    assert!(ahead.read_ahead(&mut [0; 65_536]).unwrap_err().to_string().contains(wrong), "it is the last of its chunk");
}

#[test]
fn what_is_cut_short_or_goes_on_is_refused() {
    let state = saved(PAYLOAD);
    let first = start(&state);
    for len in
        [0, 7, 35, 36, 50, first - 1, first, first + 1, first + 4, first + CHUNK - 8, first + CHUNK, state.len() - 1]
    {
        assert_refused(&state[..len], "it ends early");
    }
    let mut reader = &state[..];
    let reader = Reader::new(&mut reader, 1000).unwrap();
    assert!(reader.finish().unwrap_err().to_string().contains("longer than what it describes"));
    let mut bytes = &state[..];
    let mut reader = Reader::new(&mut bytes, 1000).unwrap();
    let error = reader.read_exact(&mut vec![0; PAYLOAD + 1]).unwrap_err();
    assert!(error.to_string().contains("shorter than what it describes"), "{error}");
}

#[test]
fn what_follows_a_state_is_anothers() {
    let state = saved(PAYLOAD);
    let two = [&state[..], &state[..], b"more"].concat();
    let mut bytes = &two[..];
    for _ in 0..2 {
        let mut reader = Reader::new(&mut bytes, 1000).unwrap();
        reader.read_exact(&mut vec![0; PAYLOAD]).unwrap();
        reader.finish().unwrap();
    }
    assert_eq!(bytes, b"more");
}

#[test]
fn chunks_have_their_place() {
    let state = saved(PAYLOAD);
    let (first, chunk) = (start(&state), CHUNK);
    let mut swapped = state.clone();
    swapped[first..first + chunk].copy_from_slice(&state[first + chunk..first + 2 * chunk]);
    swapped[first + chunk..first + 2 * chunk].copy_from_slice(&state[first..first + chunk]);
    assert_refused(&swapped, "the checksum of chunk 1 is wrong");

    let mut other = Vec::new();
    let mut longer = header();
    longer.tokens[0] = Token(5);
    let mut writer = Writer::new(&mut other, &longer).unwrap();
    writer.write(&payload()).unwrap();
    writer.finish().unwrap();
    let mixed = [&state[..first], &other[first..]].concat();
    assert_refused(&mixed, "the checksum of chunk 1 is wrong");
}

#[test]
fn what_is_no_state_or_of_another_version_is_named() {
    assert_refused(&[b'x'; 100], "this is not a saved state");
    let mut state = saved(PAYLOAD);
    state[8] = 9;
    // As a later version would: the checksum is right.
    let sum = twox_hash::XxHash3_64::oneshot(&state[..28]);
    state[28..36].copy_from_slice(&sum.to_le_bytes());
    assert_refused(&state, "version 9");
    let mut bytes = &saved(PAYLOAD)[..];
    assert_eq!(Reader::new(&mut bytes, 99).unwrap_err().kind(), ErrorKind::ContextFull);
}

/// With checksums that are right: what a fuzzer finds as soon as it may seal what it changed.
#[test]
fn a_description_has_one_form_only() {
    let mut state = saved(PAYLOAD);
    let described = u32::from_le_bytes(state[12..16].try_into().unwrap()) as usize;
    let flag = 36 + described - 16 - "pirate".len() - 2 - 1;
    assert_eq!(state[flag], 1);
    let end = start(&state) - 8;
    let begin = u64::from_le_bytes(state[28..36].try_into().unwrap());
    for (value, refused) in [(0, true), (1, false), (2, true)] {
        state[flag] = value;
        let sum = twox_hash::XxHash3_64::oneshot_with_seed(begin, &state[36..end]);
        state[end..end + 8].copy_from_slice(&sum.to_le_bytes());
        let mut bytes = &state[..];
        let outcome = Reader::new(&mut bytes, 1000).map(|reader| reader.header().adapter.clone());
        assert_eq!(outcome.is_err(), refused, "{value}: {outcome:?}");
    }
}

#[test]
fn a_header_says_what_does_not_fit() {
    let here = header();
    header().check(&here).unwrap();
    let mut other = header();
    (other.tokens, other.adapter, other.payload) = (Vec::new(), None, 0);
    other.check(&here).unwrap();
    let refused = |saved: Header| saved.check(&here).unwrap_err().to_string();
    let mut onnx = header();
    onnx.backend = "onnx".into();
    assert!(refused(onnx).contains("of the backend \"onnx\""));
    assert!(refused(Header::new("llama", Fingerprint::of(["others"]), "tiny")).contains("another model"));
    let keys = Header::new("llama", here.model, "tiny").with_shape("keys", "q8_0").with_shape("cells", "unified");
    assert!(refused(keys.clone()).contains("its keys is q8_0, here it is f16"));
    assert!(refused(Header::new("llama", here.model, "tiny")).contains("its keys is none"));
    assert!(refused(header().with_shape("values", "f16")).contains("its values is f16, here there is no such thing"));
}

#[test]
fn a_header_says_what_a_session_cannot_have() {
    let saved = header();
    saved.check_tokens(100).unwrap();
    saved.check_payload(PAYLOAD as u64).unwrap();
    Header::new("llama", saved.model, "tiny").check_no_adapter().unwrap();
    for (refused, why) in [
        (saved.check_tokens(99), "a token outside the vocabulary"),
        (saved.check_payload(7), "150000 bytes for 100 positions, which take 7 here"),
        (saved.check_no_adapter(), "the adapter \"pirate\""),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(why), "{error}");
    }
}

/// It may say anything.
#[test]
fn of_a_models_name_a_header_has_what_people_read() {
    let model = Fingerprint::of(["weights"]);
    let mut info = ModelInfo::default();
    info.description = "a llama".into();
    assert_eq!(Header::of_model("llama", model, &info), Header::new("llama", model, "a llama"));
    info.name = Some("ä".repeat(200));
    assert_eq!(Header::of_model("llama", model, &info).model_name, "ä".repeat(128));
}

#[test]
fn an_adapter_is_more_than_its_name() {
    let saved = header().adapter.unwrap();
    saved.check(Fingerprint::of(["arr"])).unwrap();
    let error = saved.check(Fingerprint::of(["ahoy"])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("another adapter \"pirate\""), "{error}");
}

#[test]
fn a_fingerprint_knows_where_its_pieces_are_cut() {
    assert_eq!(Fingerprint::of(["ab", "c"]), Fingerprint::of([b"ab".as_slice(), b"c"]));
    assert_ne!(Fingerprint::of(["ab", "c"]), Fingerprint::of(["a", "bc"]));
    assert_ne!(Fingerprint::of(["ab"]), Fingerprint::of(["ab", ""]));
    assert_eq!(Fingerprint::of(["ab"]).to_string().len(), 32);
}

#[test]
fn a_description_is_written_whole_or_not_at_all() {
    let long = |bytes: usize| {
        let mut header = header();
        header.adapter = Some(UsedAdapter::new("a".repeat(bytes), header.model));
        header.payload = 0;
        header
    };
    for bytes in [1, 1025, 60_000] {
        let (mut state, header) = (Vec::new(), long(bytes));
        Writer::new(&mut state, &header).unwrap().finish().unwrap();
        assert_eq!(Reader::new(&mut &state[..], 1000).unwrap().header(), &header);
    }
    let mut many = header();
    many.shape = vec![(String::new(), String::new()); 0x1_0001];
    for header in [long(0x1_0000), long(0x2_0001), many] {
        let mut state = Vec::new();
        assert_eq!(Writer::new(&mut state, &header).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert!(state.is_empty());
    }
}

#[test]
fn a_writer_wants_what_was_announced() {
    let mut out = Vec::new();
    let writer = Writer::new(&mut out, &header()).unwrap();
    assert!(writer.finish().unwrap_err().to_string().contains("150000 bytes shorter"));
    let mut writer = Writer::new(&mut out, &header()).unwrap();
    assert_eq!(writer.write(&vec![0; PAYLOAD + 1]).unwrap_err().kind(), ErrorKind::Runtime);
}

/// Takes and gives `most` bytes at once, in several slices or only in the first, and is interrupted each third time.
struct Slow<T> {
    inner: T,
    most: usize,
    vectored: bool,
    calls: usize,
}

impl<T> Slow<T> {
    fn call(&mut self) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) { Err(io::ErrorKind::Interrupted.into()) } else { Ok(self.most) }
    }
}

impl<T: io::Write> io::Write for Slow<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = self.call()?.min(bytes.len());
        self.inner.write(&bytes[..most])
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let bytes =
            if self.vectored { slices.iter().flat_map(|slice| slice.to_vec()).collect() } else { slices[0].to_vec() };
        self.write(&bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: io::Read> io::Read for Slow<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = self.call()?.min(bytes.len());
        self.inner.read(&mut bytes[..most])
    }

    fn read_vectored(&mut self, slices: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
        if !self.vectored {
            return self.read(&mut slices[0]);
        }
        let most = self.call()?;
        let mut read = 0;
        for slice in slices {
            let now = slice.len().min(most - read);
            read += self.inner.read(&mut slice[..now])?;
        }
        Ok(read)
    }
}

#[test]
fn others_may_take_and_give_little_at_once() {
    let state = saved(PAYLOAD);
    for (most, vectored) in
        [(1, false), (256, false), (5000, false), (256, true), (257, true), (3000, true), (9999, true)]
    {
        let case = format!("{most} bytes at once, vectored: {vectored}");
        let mut to = Slow { inner: Vec::new(), most, vectored, calls: 0 };
        let mut writer = Writer::new(&mut to, &header()).unwrap();
        writer.write(&payload()).unwrap();
        writer.finish().unwrap();
        assert!(to.inner == state, "{case}");
        let mut from = Slow { inner: &state[..], most, vectored, calls: 0 };
        let ahead = read_ahead(&mut from, 70_000).unwrap();
        assert_eq!(ahead, (header(), payload()), "{case}");
    }
}

/// Fails after so many bytes.
struct Failing<T>(T, usize);

impl<T: io::Write> io::Write for Failing<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1 = self.1.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("the disk is full"))?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<T: io::Read> io::Read for Failing<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(bytes)?;
        self.1 = self.1.checked_sub(read).ok_or_else(|| io::Error::other("the disk is gone"))?;
        Ok(read)
    }
}

#[test]
fn the_reason_of_a_failed_write_or_read_is_kept() {
    let state = saved(PAYLOAD);
    for at in [10, 100, start(&state) + 10, state.len() - 1] {
        let mut to = Failing(io::sink(), at);
        let write = |to| {
            let mut writer = Writer::new(to, &header())?;
            writer.write(&payload())?;
            writer.finish()
        };
        let failed = write(&mut to).unwrap_err();
        let mut from = Failing(&state[..], at);
        let read = |from| {
            let mut reader = Reader::new(from, 1000)?;
            reader.read_exact(&mut vec![0; PAYLOAD])?;
            reader.finish()
        };
        for (error, reason) in [(failed, "the disk is full"), (read(&mut from).unwrap_err(), "the disk is gone")] {
            assert_eq!(error.kind(), ErrorKind::Io);
            assert_eq!(std::error::Error::source(&error).unwrap().to_string(), reason);
        }
    }
}
