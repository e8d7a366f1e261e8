//! A world's course, and what must hold after every turn of it.

use super::{
    super::{
        super::{ATTEMPTS, text::Text},
        Scheduler, SessionFactory, Settings, Shared,
    },
    Ask, Fate, What, World,
    check::{self, Listener, Outcome},
    watched::{Watch, Watched},
};
use crate::{
    Turn,
    engine::{
        channel::channel,
        job::{Job, ScoreJob, ScoreReply},
    },
};
use infer_core::{
    AdapterSource, Error, ErrorKind, KvLayout, Result, Session as _, SessionOptions,
    testing::{Hooked, ScriptedModel},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// What a making of a session that fails ends with, unlike anything else in a world.
pub(super) const BROKEN: ErrorKind = ErrorKind::Library;

pub(super) struct Run<'a> {
    pub(super) world: &'a World,
    scheduler: Scheduler,
    shared: Arc<Shared>,
    pub(super) watch: Watch,
    /// How often no session could be made so often that everybody was told.
    pub(super) gave_up: Arc<Mutex<GaveUp>>,
    readers: Vec<Reader>,
    turns: usize,
    hunger: Hunger,
}

/// Makings that failed, in a row and in all.
#[derive(Default)]
pub(super) struct GaveUp {
    row: usize,
    pub(super) times: usize,
}

/// Who asked for something.
struct Reader {
    asked_at: usize,
    state: State,
}

enum State {
    Stream(Listener),
    Score(Arc<Mutex<Option<Result<Vec<f32>>>>>, Arc<AtomicBool>),
    Gone,
}

/// How long each running text has not come further.
#[derive(Default)]
struct Hunger {
    /// Serial → how far it was, and turns since.
    texts: HashMap<u64, ((usize, usize), usize)>,
    /// The most that there was to be computed at once, and of how many texts.
    work: usize,
    running: usize,
}

pub(super) fn run(world: &World) {
    let mut run = Run::new(world);
    for ask in &world.asks {
        (0..ask.after).for_each(|_| _ = run.turn());
        run.ask(ask);
    }
    let most = run.most_turns();
    while run.turn() {
        assert!(run.turns < most, "no end after {most} turns: {:?}", run.shared.stats());
    }
    run.end();
}

impl<'a> Run<'a> {
    fn new(world: &'a World) -> Self {
        let watch = Watch::new(world);
        let script = match world.cells {
            Some(cells) => world.script().with_cells(cells),
            None => world.script(),
        };
        let model = ScriptedModel::new(script.with_hook(watch.hook()));
        let (options, watched) = (options(world), watch.clone());
        let gave_up = Arc::<Mutex<GaveUp>>::default();
        let (counted, mut broken, mut made) = (gave_up.clone(), world.broken.clone().into_iter(), false);
        let make: SessionFactory = Box::new(move |model| {
            let mut counted = counted.lock().unwrap();
            if made && broken.next() == Some(true) {
                counted.row += 1;
                if counted.row == ATTEMPTS as usize {
                    *counted = GaveUp { row: 0, times: counted.times + 1 };
                }
                return Err(Error::new(BROKEN, "no session can be made"));
            }
            (made, counted.row) = (true, 0);
            let session = model.session(&options)?;
            let hooks = Watched::new(session.limits().sequences, watched.clone());
            Ok(Box::new(Hooked::new(session, hooks)))
        });
        let shared = Arc::new(Shared::new());
        let scheduler = Scheduler::new(Box::new(model), make, world.settings, shared.clone()).unwrap();
        let (readers, hunger) = (Vec::new(), Hunger::default());
        Self { world, scheduler, shared, watch, gave_up, readers, turns: 0, hunger }
    }

    fn ask(&mut self, ask: &Ask) {
        let id = self.readers.len() as u64;
        let (made, place) = (Instant::now(), self.shared.enter(usize::MAX).unwrap());
        let deadline = match ask.fate {
            Fate::Deadline(micros) => Some(made + Duration::from_micros(micros)),
            _ => None,
        };
        let prompt = ask.prompt.clone();
        let state = match ask.what {
            What::Score => {
                let (scores, is_cancelled) = (Arc::<Mutex<_>>::default(), Arc::<AtomicBool>::default());
                let to = scores.clone();
                let out = ScoreReply::new(move |scores| *to.lock().unwrap() = Some(scores), is_cancelled.clone());
                let adapter = ask.adapter.map(str::to_owned);
                self.scheduler.push_score(ScoreJob { id, tokens: prompt, adapter, deadline, made, out, place });
                State::Score(scores, is_cancelled)
            }
            What::Generate { .. } => {
                let (out, stream) = channel(ask.n());
                let mut request = ask.request(None);
                request.deadline = deadline;
                self.scheduler.push(Job { id, request, prompt, made, span: tracing::Span::none(), out, place });
                State::Stream(Listener::new(stream, ask.n()))
            }
        };
        self.readers.push(Reader { asked_at: self.turns, state });
    }

    /// One turn. Says whether there is more to do.
    fn turn(&mut self) -> bool {
        for (ask, reader) in self.world.asks.iter().zip(&mut self.readers) {
            reader.meet(ask.fate, self.turns);
        }
        let new = |text: &&Text| text.admitted.is_none();
        let waiting: Vec<u64> = self.scheduler.waiting.iter().filter(new).map(|text| text.serial).collect();
        let failures = self.watch.seen().failures.len();
        let turn = self.scheduler.turn();
        self.turns += 1;
        self.adds_up();
        self.in_order(&waiting);
        let has_failed = self.watch.seen().failures.len() > failures || self.scheduler.session.is_none();
        self.nobody_starves(has_failed);
        match turn {
            Turn::Again => true,
            Turn::Until(time) => {
                std::thread::sleep(time.saturating_duration_since(Instant::now()));
                true
            }
            Turn::Wait => {
                assert!(self.scheduler.is_idle(), "it waits, and there is something to do");
                // Fates that have not come yet find nothing any more.
                false
            }
        }
    }

    /// Sequences and cells are those of running texts and of the cache.
    fn adds_up(&self) {
        let Scheduler { running, cache, session, shared, waiting, .. } = &self.scheduler;
        let world = self.world;
        assert!(running.len() <= world.settings.sequences.unwrap_or(usize::MAX));
        assert!(cache.held() <= world.settings.cache);
        assert!(waiting.iter().all(|text| text.seq.is_none()));
        assert!(shared.waiting() <= waiting.len(), "{} places for {} texts", shared.waiting(), waiting.len());
        let Some(session) = session else {
            assert_eq!((running.len(), cache.len()), (0, 0), "sequences of a session that is lost");
            return;
        };
        let usage = session.usage();
        assert_eq!(usage.sequences, running.len() + cache.len(), "sequences that nobody has");
        let held: usize = running.iter().map(|text| text.held()).sum();
        let held = held + cache.held();
        match world.layout {
            KvLayout::Split => assert_eq!(usage.cells, held),
            _ => assert!(usage.cells <= held, "{} cells are in use, {held} positions are held", usage.cells),
        }
    }

    /// No text is begun before one that came earlier, unless that one waits for what others compute.
    fn in_order(&self, waiting: &[u64]) {
        let Scheduler { running, waiting: left, .. } = &self.scheduler;
        let begun = |text: &&Text| text.admitted.is_some() && waiting.contains(&text.serial);
        let Some(last) = running.iter().chain(left).filter(begun).map(|text| text.serial).max() else { return };
        let passed = left.iter().find(|text| text.serial < last && text.admitted.is_none() && text.behind.is_none());
        assert!(passed.is_none(), "text {:?} was passed by {last}", passed.map(|text| text.serial));
    }

    /// What runs comes further within so many turns as there are texts and tokens before it.
    fn nobody_starves(&mut self, has_failed: bool) {
        let running = &self.scheduler.running;
        let Hunger { texts, work, running: most, .. } = &mut self.hunger;
        texts.retain(|serial, _| running.iter().any(|text| text.serial == *serial));
        *work = (*work).max(running.iter().map(|text| text.lacks()).sum());
        *most = (*most).max(running.len());
        for text in running {
            let reached = (text.stats.generated_tokens, text.held());
            let (before, turns) = texts.entry(text.serial).or_insert((reached, 0));
            if *before != reached || has_failed {
                (*before, *turns) = (reached, 0);
            } else {
                *turns += 1;
                let bound = 8 + *most * (*work + 2 * *most);
                assert!(*turns < bound, "text {} has not been fed for {turns} turns", text.serial);
            }
        }
    }

    /// More than it takes to compute everything alone, token by token, again for each text beside and each thing that goes wrong.
    fn most_turns(&self) -> usize {
        let World { asks, accidents, context, broken, .. } = self.world;
        let tokens = |ask: &Ask| {
            let drawn = match ask.what {
                What::Generate { max_tokens, .. } => max_tokens.unwrap_or(*context),
                What::Score => 0,
            };
            ask.n() * (ask.prompt.len() + drawn + 1)
        };
        let work: usize = asks.iter().map(tokens).sum();
        let poisoned = asks.iter().filter(|ask| ask.poison.is_some()).count();
        let texts: usize = asks.iter().map(Ask::n).sum();
        self.turns + 100 + 2 * work * (1 + texts + accidents.len() + 4 * poisoned) + 10 * broken.len()
    }

    fn end(mut self) {
        assert_eq!(self.shared.waiting(), 0, "places in the queue");
        self.scheduler.cache.clear();
        if let Some(session) = &self.scheduler.session {
            let usage = session.usage();
            assert_eq!((usage.sequences, usage.cells), (0, 0), "something is left");
        }
        let stats = self.shared.stats();
        let outcomes: Vec<Outcome> = std::mem::take(&mut self.readers).into_iter().map(Reader::outcome).collect();
        check::outcomes(&self, &outcomes, &stats);
    }
}

impl Reader {
    /// What its fate has for it at this turn.
    fn meet(&mut self, fate: Fate, turn: usize) {
        let is_due = |after| turn >= self.asked_at + after;
        match (&mut self.state, fate) {
            (State::Stream(listener), Fate::Cancel(after)) if is_due(after) => listener.stream.cancel(),
            (State::Score(_, is_cancelled), Fate::Cancel(after)) if is_due(after) => {
                is_cancelled.store(true, Ordering::Release);
            }
            (State::Score(_, is_cancelled), Fate::Drop(after)) if is_due(after) => {
                is_cancelled.store(true, Ordering::Release);
                self.state = State::Gone;
            }
            (State::Stream(_), Fate::Drop(after)) if is_due(after) => self.state = State::Gone,
            // Some read as it comes, and some when it is over.
            (State::Stream(listener), _) if self.asked_at.is_multiple_of(2) => listener.read(),
            _ => {}
        }
    }

    fn outcome(self) -> Outcome {
        match self.state {
            State::Gone => Outcome::Unknown,
            State::Score(scores, _) => Outcome::Scores(scores.lock().unwrap().take().expect("a score is answered")),
            State::Stream(mut listener) => {
                listener.read();
                Outcome::Text(listener.heard, listener.error)
            }
        }
    }
}

pub(super) fn options(world: &World) -> SessionOptions {
    let adapter = |name| AdapterSource::new(name, name);
    SessionOptions::new().with_sequences(world.sequences).with_adapter(adapter("a")).with_adapter(adapter("b"))
}

/// The same model with all the cells there can be, and nothing going wrong.
pub(super) fn plain(world: &World) -> ScriptedModel {
    ScriptedModel::new(world.script())
}

/// What a scheduler makes of one completion, alone on it.
pub(super) fn alone(world: &World, ask: &Ask, index: usize) -> Listener {
    let shared = Arc::new(Shared::new());
    let options = options(world);
    let make: SessionFactory = Box::new(move |model| model.session(&options));
    let mut scheduler = Scheduler::new(Box::new(plain(world)), make, Settings::default(), shared.clone()).unwrap();
    let (out, stream) = channel(1);
    let (request, prompt, place) = (ask.request(Some(index)), ask.prompt.clone(), shared.enter(1).unwrap());
    let (made, span) = (Instant::now(), tracing::Span::none());
    scheduler.push(Job { id: 0, request, prompt, made, span, out, place });
    while scheduler.turn() != Turn::Wait {}
    let mut listener = Listener::new(stream, 1);
    listener.read();
    listener
}
