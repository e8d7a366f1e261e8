//! Headers and numbers that were changed at random.

use super::*;

/// Headers changed at random: an error or a model, never the end of the process.
#[test]
fn two_hundred_mutations() {
    let folder = Folder::new();
    let good = tiny::llama();
    let (bytes, header) = (good.bytes(), good.header().len() as u64);
    let mut random = Random(99);
    let mut models = 0;
    for number in 0..200 {
        let mut file = bytes.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(header) as usize;
            file[at] = match random.below(4) {
                0 => 0,
                1 => 0xff,
                2 => file[at] ^ (1 << random.below(8)),
                _ => random.next() as u8,
            };
        }
        let path = folder.file("mutated.gguf", &file);
        let said = open(&path).unwrap_or_else(|end| panic!("mutation {number}: {end}"));
        models += u32::from(said == "a model");
        assert!(
            said == "a model" || said.contains("mutated.gguf") || !said.starts_with("Io"),
            "mutation {number}: {said}"
        );
    }
    assert!(models > 0, "some changes hurt nobody");
}

/// Numbers of the network changed at random, one at a time, with everything else right: what random bytes rarely hit.
#[test]
fn two_hundred_odd_numbers() {
    let folder = Folder::new();
    let mut random = Random(4711);
    let good = tiny::llama();
    let numbers: Vec<usize> =
        (0..good.fields.len()).filter(|&index| matches!(good.fields[index].1, Field::U32(_) | Field::F32(_))).collect();
    for number in 0..200 {
        let mut gguf = good.clone();
        let index = random.pick(&numbers);
        let odd = [0, 1, 2, 3, 5, 7, 15, 64, 255, 1024, 1 << 16, i32::MAX as u32, 1 << 31, u32::MAX];
        let odd_floats = [0.0, -0.0, -1.0, 1e-40, 1e38, f32::MAX, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
        let (key, value) = &mut gguf.fields[index];
        *value = match value {
            Field::U32(_) => Field::U32(random.pick(&odd)),
            _ => Field::F32(random.pick(&odd_floats)),
        };
        let key = String::from_utf8_lossy(key).into_owned();
        let path = folder.file("odd.gguf", &gguf.bytes());
        if let Err(end) = open(&path) {
            panic!("case {number}, {key}: {end}");
        }
    }
}
