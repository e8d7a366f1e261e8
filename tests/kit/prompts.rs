//! What is decoded: prompts in several languages, code, numbers, one character, and long ones.

use std::borrow::Cow;

/// How many prompts [`all`] gives.
pub const COUNT: usize = 20;

/// How many of them, from the first on, make a short run that still has every kind.
pub const FEW: usize = 6;

const SHORT: [&str; 18] = [
    "The lighthouse keeper had not spoken to anyone for eleven days when",
    "fn largest(numbers: &[i32]) -> Option<i32> {\n",
    "Le marché ouvre à six heures, et les premiers pêcheurs",
    "月が山の上に昇ると、",
    "List three reasons why bridges need expansion joints.\n\n1.",
    "17, 34, 51, 68,",
    "Die Straßenbahn fährt um halb sieben ab, deshalb",
    "Поезд отходит от станции ровно в полночь, и",
    "def read_rows(path):\n    \"\"\"Yield each row of a CSV file as a dict.\"\"\"\n",
    "🌧️ Rain all week. Here is what to pack:",
    "SELECT name, COUNT(*) FROM orders WHERE",
    "Q: If a baker sells 12 loaves an hour for 7 hours, how many loaves is that?\nA:",
    "a",
    "Dear Ms. Okafor,\n\nThank you for your letter of the 3rd of May about the broken fence.",
    "{\"city\": \"Lagos\", \"population\": 15388000, \"districts\": [",
    "الطقس اليوم",
    "<|im_start|>user\nName a river that crosses a desert.<|im_end|>\n<|im_start|>assistant\n",
    "   indented by three spaces,\n\tthen by a tab,\n\n\nthen after two empty lines:",
];

/// The prompts, the same ones at every call.
pub fn all() -> Vec<Cow<'static, str>> {
    let mut prompts: Vec<Cow<'static, str>> = SHORT.iter().map(|text| Cow::Borrowed(*text)).collect();
    // One that fills many small batches and one that fills most of a big one.
    prompts.insert(3, Cow::Owned(logbook(12)));
    prompts.push(Cow::Owned(logbook(40)));
    prompts
}

/// A text of `days` short paragraphs, no two alike.
pub fn logbook(days: usize) -> String {
    const WEATHER: [&str; 5] = ["clear", "a thin fog", "steady rain", "wind from the west", "snow above the pass"];
    const WORK: [&str; 7] = [
        "oiled the lamp",
        "painted the north railing",
        "mended two nets",
        "counted the stores",
        "wrote to the harbour office",
        "cleared the drain",
        "did nothing at all",
    ];
    let day = |n: usize| {
        let (weather, work) = (WEATHER[n * 3 % WEATHER.len()], WORK[n * 4 % WORK.len()]);
        format!("Day {}. {weather}, {} ships before noon; {work}.\n", n + 1, n * n % 17)
    };
    (0..days).map(day).collect::<String>() + "Looking back over these days, the keeper wrote:"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_twenty_and_all_different() {
        let mut prompts = all();
        assert_eq!(prompts.len(), COUNT);
        prompts.sort();
        prompts.dedup();
        assert_eq!(prompts.len(), COUNT);
        assert!(prompts.iter().all(|prompt| !prompt.is_empty() && !prompt.contains('\0')));
    }
}
