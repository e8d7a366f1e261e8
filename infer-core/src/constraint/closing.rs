//! Ends for texts: tokens after which a text is complete, few enough for what is left of a budget.
//!
//! A text with a budget always has one at hand, its *closing*. A token is drawn only if the text has a closing that fits after it as
//! well; where none is found for what was drawn, the next token of the closing at hand is taken. So a text ends in time,
//! whatever is drawn. Closings are looked for by what usually ends a text; it need not be the shortest one that is found, and
//! what is not found is not drawn.

use super::{
    compile::Tokens,
    guide::{Guide, failed, is_complete, take_back},
};
use crate::{Result, Token};
use llguidance::Matcher;
use std::{collections::HashMap, sync::Arc};
use toktrie::TokTrie;

/// Round after round of a search: how often it comes to places that look alike, and how many steps it takes. Once is enough for texts that
/// go straight to their end; where one has a least length, it is as often as a letter has to be repeated.
const ROUNDS: [(usize, usize); 2] = [(1, 48), (8, 48)];
/// … of the first search, which there is time for.
const FIRST_ROUNDS: [(usize, usize); 4] = [(1, 400), (8, 400), (64, 400), (4096, 4096)];
/// Of the tokens that can follow, how many are tried where nothing else helps.
const MOST_OTHERS: usize = 8;

/// Tokens that complete a text.
#[derive(Clone, Debug)]
pub(super) struct Closing {
    tokens: Arc<[Token]>,
    /// How many of them are in the text.
    done: usize,
}

impl Closing {
    pub(super) fn tokens(&self) -> &[Token] {
        &self.tokens[self.done..]
    }

    /// What is left of it when the text has gone on with `token`.
    fn after(&self, token: Token) -> Option<Self> {
        (self.tokens().first() == Some(&token)).then(|| Self { tokens: self.tokens.clone(), done: self.done + 1 })
    }
}

impl Guide {
    /// The closing of a text that has gone on with `token`, which the matcher has taken: a function of the one it had before, and of
    /// the text.
    pub(super) fn closing_after(
        &mut self,
        before: Option<&Closing>,
        token: Token,
        room: usize,
    ) -> Result<Option<Closing>> {
        if let Some(next) = before.and_then(|before| before.after(token)) {
            return Ok(Some(next));
        }
        if let Some(before) = before.filter(|before| before.tokens().len() <= room)
            && self.completes(before.tokens())?
        {
            return Ok(Some(before.clone()));
        }
        // Where there was no time for anything else, another closing as short is not looked for.
        match before {
            Some(before) if before.tokens().len() > room => Ok(None),
            _ => self.find_closing(room, &ROUNDS),
        }
    }

    /// The closing of the empty text.
    pub(super) fn first_closing(&mut self, room: usize) -> Result<Option<Closing>> {
        self.find_closing(room, &FIRST_ROUNDS)
    }

    /// Looks for a closing of at most `room` tokens for what the matcher has taken.
    fn find_closing(&mut self, room: usize, rounds: &[(usize, usize)]) -> Result<Option<Closing>> {
        let (compiled, lexis) = (self.compiled(), Lexis::of(&self.bytes()));
        self.with(|matcher| {
            let mut search = Search {
                tokens: compiled.tokens(),
                matcher,
                path: Vec::new(),
                forced: 0,
                steps: 0,
                room,
                lexis: lexis.clone(),
                seen: HashMap::new(),
            };
            for &(visits, steps) in rounds {
                search.lexis.clone_from(&lexis);
                search.steps = steps;
                let found = search.run(visits)?;
                search.go_back(0)?;
                if let Some(tokens) = found {
                    return Ok(Some(Closing { tokens: tokens.into(), done: 0 }));
                }
            }
            Ok(None)
        })
    }

    /// Whether these tokens complete what the matcher has taken.
    fn completes(&mut self, tokens: &[Token]) -> Result<bool> {
        let end = self.compiled().tokens().ends()[0];
        let all: Vec<u32> = tokens.iter().chain([&end]).map(|token| token.0).collect();
        self.with(|matcher| {
            if is_complete(matcher) {
                return Ok(tokens.is_empty());
            }
            Ok(matcher.validate_tokens(&all).map_err(failed)? == all.len())
        })
    }
}

/// Where in a JSON document a text ends, as far as its characters tell. Of other texts it is a guess that costs nothing.
#[derive(Clone, Default)]
struct Lexis {
    open: Vec<u8>,
    in_string: bool,
    in_escape: bool,
}

impl Lexis {
    fn of(text: &[u8]) -> Self {
        let mut lexis = Self::default();
        lexis.read(text);
        lexis
    }

    fn read(&mut self, text: &[u8]) {
        for &byte in text {
            match (self.in_string, byte) {
                (true, _) if self.in_escape => self.in_escape = false,
                (true, b'\\') => self.in_escape = true,
                (_, b'"') => self.in_string = !self.in_string,
                (false, b'[') => self.open.push(b']'),
                (false, b'{') => self.open.push(b'}'),
                (false, b'(') => self.open.push(b')'),
                (false, b']' | b'}' | b')') => drop(self.open.pop()),
                _ => {}
            }
        }
    }

    /// What may bring the text nearer to its end, the most promising first.
    fn candidates(&self) -> impl Iterator<Item = Vec<u8>> + use<> {
        const IN_STRING: [&str; 5] = ["\"", "n", "0", "a", "A"];
        const OUTSIDE: [&str; 12] = [",", ":", "null", "\"\"", "[]", "{}", "0", "1", "true", "\"", "[", "{"];
        let closer = self.open.last().filter(|_| !self.in_string).map(|&closer| vec![closer]);
        let usual: &[&str] = if self.in_string { &IN_STRING } else { &OUTSIDE };
        let usual = usual.iter().map(|text| text.as_bytes().to_vec());
        let printable = (b' '..=b'~').chain([b'\n']).map(|byte| vec![byte]);
        closer.into_iter().chain(usual).chain(printable)
    }
}

struct Search<'s> {
    tokens: &'s Tokens,
    matcher: &'s mut Matcher,
    /// What the matcher has taken for it.
    path: Vec<Token>,
    /// How many bytes of that were forced.
    forced: usize,
    /// Steps that are left of the round.
    steps: usize,
    room: usize,
    lexis: Lexis,
    /// Places by what makes them look alike, and how often they were come to.
    seen: HashMap<(usize, Vec<bool>), usize>,
}

/// A place with a choice.
struct Fork {
    /// How long the path is there, and how much of it was forced.
    len: usize,
    forced: usize,
    lexis: Lexis,
    /// What is still to be tried.
    rest: std::vec::IntoIter<Vec<Token>>,
    /// Whether that is the last there is.
    is_last: bool,
}

impl Search<'_> {
    /// The first path that completes the text. The matcher is then at its end, or somewhere.
    fn run(&mut self, visits: usize) -> Result<Option<Vec<Token>>> {
        self.forced = 0;
        self.seen.clear();
        let mut forks: Vec<Fork> = Vec::new();
        loop {
            if is_complete(self.matcher) || self.matcher.is_accepting().map_err(failed)? {
                return Ok(Some(self.path.clone()));
            }
            let forced = self.matcher.compute_ff_bytes();
            let mut is_on = false;
            if forced.is_empty() || !self.tokens.is_dense(&forced) {
                forks.extend(self.fork(visits)?);
            } else {
                is_on = self.go(&cut(self.tokens.trie(), &forced))?;
                self.forced += forced.len();
            }
            while !is_on {
                let Some(fork) = forks.last_mut() else { return Ok(None) };
                self.lexis.clone_from(&fork.lexis);
                self.forced = fork.forced;
                self.go_back(fork.len)?;
                match fork.rest.next() {
                    Some(_) if self.steps == 0 => return Ok(None),
                    Some(choice) => is_on = self.go(&choice)?,
                    None if fork.is_last => drop(forks.pop()),
                    None => (fork.rest, fork.is_last) = (self.others()?.into_iter(), true),
                }
            }
        }
    }

    /// The choice there is here; none where too many alike were seen, with as much forced text before them.
    fn fork(&mut self, visits: usize) -> Result<Option<Fork>> {
        let (mut looks, mut rest) = (Vec::new(), Vec::new());
        for text in self.lexis.candidates().filter(|text| self.tokens.is_dense(text)) {
            let tokens = cut(self.tokens.trie(), &text);
            let ids: Vec<u32> = tokens.iter().map(|token| token.0).collect();
            looks.push(self.matcher.validate_tokens(&ids).map_err(failed)? == ids.len());
            if looks[looks.len() - 1] {
                rest.push(tokens);
            }
        }
        let seen = self.seen.entry((self.forced, looks)).or_default();
        *seen += 1;
        let fork = Fork {
            len: self.path.len(),
            forced: self.forced,
            lexis: self.lexis.clone(),
            rest: rest.into_iter(),
            is_last: false,
        };
        Ok((*seen <= visits).then_some(fork))
    }

    fn go_back(&mut self, len: usize) -> Result<()> {
        take_back(self.matcher, self.path.len() - len)?;
        self.path.truncate(len);
        Ok(())
    }

    /// Goes on with these tokens, if they may follow and there is room for them.
    fn go(&mut self, tokens: &[Token]) -> Result<bool> {
        let ids: Vec<u32> = tokens.iter().map(|token| token.0).collect();
        if self.path.len() + ids.len() > self.room || self.matcher.validate_tokens(&ids).map_err(failed)? < ids.len() {
            return Ok(false);
        }
        self.steps = self.steps.saturating_sub(1);
        self.matcher.consume_tokens(&ids).map_err(failed)?;
        self.path.extend_from_slice(tokens);
        tokens.iter().for_each(|token| self.lexis.read(self.tokens.trie().token(token.0)));
        Ok(true)
    }

    /// The first of all tokens that can follow.
    fn others(&mut self) -> Result<Vec<Vec<Token>>> {
        let set = self.matcher.compute_mask().map_err(failed)?;
        let others = set.iter().map(Token).filter(|token| !self.tokens.ends().contains(token));
        Ok(others.take(MOST_OTHERS).map(|token| vec![token]).collect())
    }
}

fn cut(trie: &TokTrie, text: &[u8]) -> Vec<Token> {
    trie.greedy_tokenize(text).into_iter().map(Token).collect()
}
