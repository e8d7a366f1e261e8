//! Saved sequences: whatever the bytes are, they are read back as they were written, or refused in words.
#![no_main]

use crc_fast::{CrcAlgorithm, checksum};
use infer_core::{
    ErrorKind, Result, Token,
    state::{Fingerprint, Header, Reader, UsedAdapter, Writer},
};
use infer_fuzz::{input::Bytes, seeds};
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_64;

#[global_allocator]
static ALLOCATOR: test_kit::Counting = test_kit::Counting;

/// What reading may hold at a time: a chunk of the payload, and the header twice.
const MOST: usize = 2 << 20;
/// Tokens that the reader takes.
const CONTEXT: usize = 4096;
/// Of a frame: magic, version, and lengths, without the checksum behind them.
const FIELDS: usize = 28;

fuzz_target!(init: seeds::write_if_asked(first), |input: &[u8]| {
    let Some((&how, rest)) = input.split_first() else { return };
    match how % 3 {
        0 => taken_or_refused(rest),
        1 => taken_or_refused(&sealed(rest)),
        _ => comes_back_and_damage_is_found(&mut Bytes(rest)),
    }
});

/// What is taken comes back when it is written again, though its chunks may end elsewhere.
fn taken_or_refused(state: &[u8]) {
    let mut rest = state;
    let (peak, outcome) = test_kit::peak(|| read(&mut rest));
    assert!(peak < MOST + 4 * state.len(), "{peak} bytes at a time for {}", state.len());
    match outcome {
        Ok((header, payload)) => {
            let again = read(&mut &write(&header, &payload, 1000)[..]).expect("it was written just now");
            assert_eq!(again, (header, payload));
        }
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::ContextFull), "{error}");
            assert!(error.to_string().contains("saved state"), "{error}");
        }
    }
}

/// The input as a frame whose checksums are right: a forger's, or the next version's. What begins the payload is cut off by the
/// lengths that the fields state.
fn sealed(input: &[u8]) -> Vec<u8> {
    let mut bytes = Bytes(input);
    let mut state = bytes.take(FIELDS).to_vec();
    state.resize(FIELDS, 0);
    let length = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| state[at + byte])) as usize;
    let described = length(12).saturating_add(length(16).saturating_mul(4)).min(input.len());
    let begin = XxHash3_64::oneshot(&state);
    let mut body = bytes.take(described).to_vec();
    body.resize(described, 0);
    let sum = XxHash3_64::oneshot_with_seed(begin, &body);
    state.extend(begin.to_le_bytes());
    state.extend(body);
    state.extend(sum.to_le_bytes());
    if !bytes.0.is_empty() {
        let len = (bytes.0.len() as u32).to_le_bytes();
        let summed = [&sum.to_le_bytes(), &0_u64.to_le_bytes()[..], &len, bytes.0].concat();
        let chunk = checksum(CrcAlgorithm::Crc64Nvme, &summed);
        state.extend(len);
        state.extend(bytes.0);
        state.extend(chunk.to_le_bytes());
    }
    state
}

fn comes_back_and_damage_is_found(input: &mut Bytes<'_>) {
    let mut text = |most| String::from_utf8_lossy(input.take(most)).into_owned();
    let (backend, name, adapter) = (text(5), text(9), text(7));
    let mut header = Header::new(backend, Fingerprint::of([input.take(3)]), name);
    let fingerprint = Fingerprint::of([&adapter]);
    header.adapter = (input.byte() % 2 == 1).then(|| UsedAdapter::new(adapter, fingerprint));
    for _ in 0..input.byte() % 4 {
        let value = input.byte();
        header = header.with_shape(String::from_utf8_lossy(input.take(4)), value);
    }
    let count = usize::from(input.byte());
    header.tokens = input.take(count).iter().map(|&byte| Token(u32::from(byte) * 0x0101_0101)).collect();
    let (at, flip, step) = (u16::from_le_bytes([input.byte(), input.byte()]), input.byte().max(1), input.byte().max(1));
    let payload = input.take(usize::MAX);
    header.payload = payload.len() as u64;

    let state = write(&header, payload, step.into());
    let (read_header, read_payload) = read(&mut &state[..]).expect("it was written just now");
    assert_eq!((&read_header, &read_payload[..]), (&header, payload));
    let at = usize::from(at) % state.len();
    let mut damaged = state.clone();
    damaged[at] ^= flip;
    assert!(read(&mut &damaged[..]).is_err(), "byte {at} of {} was changed by {flip}", state.len());
    assert!(read(&mut &state[..at]).is_err(), "{at} bytes are left of {}", state.len());
    damaged[at] ^= flip;
    damaged.push(flip);
    let mut rest = &damaged[..];
    assert!(read(&mut rest).is_ok() && rest == [flip], "what follows is another's");
}

fn write(header: &Header, payload: &[u8], step: usize) -> Vec<u8> {
    let mut state = Vec::new();
    let mut writer = Writer::new(&mut state, header).expect("it is small");
    for piece in payload.chunks(step) {
        writer.write(piece).expect("memory takes it");
    }
    writer.finish().expect("it is whole");
    state
}

/// Reads the payload in as many bytes at a time as there are of it: a forged length is not believed.
fn read(state: &mut &[u8]) -> Result<(Header, Vec<u8>)> {
    let mut reader = Reader::new(state, CONTEXT)?;
    let (header, mut payload) = (reader.header().clone(), Vec::new());
    while (payload.len() as u64) < header.payload {
        let now = payload.len();
        let next = usize::try_from(header.payload).unwrap_or(usize::MAX).min(now + 4096);
        payload.resize(next, 0);
        reader.read_exact(&mut payload[now..])?;
    }
    reader.finish()?;
    Ok((header, payload))
}

/// States with and without adapter, shape and payload, as they are and to be sealed; and what is made into one.
fn first() -> Vec<Vec<u8>> {
    let mut header = Header::new("llama", Fingerprint::of(["weights"]), "tiny").with_shape("keys", "f16");
    header.tokens = (0..9).map(Token).collect();
    let empty = write(&header, &[], 1);
    (header.adapter, header.payload) = (Some(UsedAdapter::new("pirate", Fingerprint::of(["arr"]))), 40);
    let whole = write(&header, &[7; 40], 9);
    let unsealed = |state: &[u8], payload: usize| {
        let body = &state[FIELDS + 8..state.len() - payload - 12 * usize::from(payload > 0) - 8];
        [&[1], &state[..FIELDS], body, &vec![7; payload][..]].concat()
    };
    vec![
        [&[0], &empty[..]].concat(),
        [&[0], &whole[..]].concat(),
        unsealed(&empty, 0),
        unsealed(&whole, 40),
        [&[2], &b"llamatiny-modpirate123\x01\x02keys1cell2\x08abcdefgh\x05\x00\x80\x03"[..], &[9; 99][..]].concat(),
    ]
}
