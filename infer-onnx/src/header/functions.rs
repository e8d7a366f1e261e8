//! Functions of a model: operators that are made of others.
//!
//! ONNX Runtime puts the nodes of a function in the place of each call, again and again until no call is left. A file of a few kilobytes
//! can so become a graph of any size, and functions that call each other one without end.

use std::{collections::HashMap, mem};

/// Nodes that a model with functions may have when all calls are written out. Graphs in use have some ten thousand.
const MOST_NODES: u64 = 1 << 20;
/// How deep functions may call each other.
const MOST_DEEP: usize = 100;

/// What a node says that it is. Its operator is a function where the model has one of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) domain: String,
    pub(super) operator: String,
    pub(super) overload: String,
}

/// How often each operator is in some nodes and in the graphs inside them.
type Calls = HashMap<Name, u64>;

/// The calls of a model.
#[derive(Default)]
pub(super) struct Functions {
    /// Those of what is being read: the graph, if it is no function.
    calls: Calls,
    functions: HashMap<Name, Calls>,
}

/// What a call is when it is written out.
#[derive(Clone, Copy)]
struct Size {
    nodes: u64,
    /// How deep the calls in it are.
    depth: usize,
}

impl Functions {
    /// There is a node.
    pub(super) fn note(&mut self, mut called: Name) {
        // Two names of one domain.
        if called.domain == "ai.onnx" {
            called.domain.clear();
        }
        *self.calls.entry(called).or_default() += 1;
    }

    /// What is noted from now on is in a function. What was noted before, for [`leave`](Self::leave).
    pub(super) fn enter(&mut self) -> Calls {
        mem::take(&mut self.calls)
    }

    /// The function ends, and has this name.
    pub(super) fn leave(&mut self, outer: Calls, mut function: Name) -> Result<(), String> {
        if function.domain == "ai.onnx" {
            function.domain.clear();
        }
        let calls = mem::replace(&mut self.calls, outer);
        let text = function.operator.clone();
        match self.functions.insert(function, calls) {
            Some(_) => Err(format!("it has two functions of the name {text:?}")),
            None => Ok(()),
        }
    }

    /// Whether the graph can be written out.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.functions.is_empty() {
            return Ok(());
        }
        let mut known = HashMap::new();
        // Those that nobody calls are looked at by the runtime all the same.
        for calls in self.functions.values().chain([&self.calls]) {
            if self.size(calls, &mut known, 0)?.nodes > MOST_NODES {
                return Err(format!(
                    "its functions call each other so often that its graph has more than {MOST_NODES} nodes when they are written out"
                ));
            }
        }
        Ok(())
    }

    /// `depth` is how deep these calls are themselves.
    fn size<'f>(&'f self, calls: &'f Calls, known: &mut HashMap<&'f Name, Size>, depth: usize) -> Result<Size, String> {
        let mut size = Size { nodes: 0, depth: 0 };
        for (called, &times) in calls {
            let one = match (self.functions.get(called), known.get(called)) {
                (None, _) => Size { nodes: 1, depth: 0 },
                (_, Some(&known)) => known,
                (Some(inside), None) if depth < MOST_DEEP => {
                    let size = self.size(inside, known, depth + 1)?;
                    known.insert(called, size);
                    size
                }
                // A circle is as deep as one likes.
                _ => return Err(too_deep(called)),
            };
            if depth + one.depth >= MOST_DEEP {
                return Err(too_deep(called));
            }
            size.nodes = size.nodes.saturating_add(one.nodes.saturating_mul(times));
            size.depth = size.depth.max(one.depth + usize::from(self.functions.contains_key(called)));
        }
        Ok(size)
    }
}

fn too_deep(function: &Name) -> String {
    format!("its functions call each other more than {MOST_DEEP} deep, or in a circle: {:?}", function.operator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(operator: &str) -> Name {
        Name { domain: "local".into(), operator: operator.into(), overload: String::new() }
    }

    /// A model of these functions, each with what it calls, and a graph that calls the last.
    fn model(functions: &[(&str, &[&str])]) -> Result<(), String> {
        let mut model = Functions::default();
        let (last, _) = functions.last().expect("there is one");
        model.note(name(last));
        for (function, calls) in functions {
            let outer = model.enter();
            calls.iter().for_each(|called| model.note(name(called)));
            model.leave(outer, name(function))?;
        }
        model.check()
    }

    /// As many functions, each of which calls the one before so often.
    fn chain(count: usize, times: usize) -> Result<(), String> {
        let names: Vec<String> = (0..=count).map(|number| format!("f{number}")).collect();
        let calls: Vec<Vec<&str>> = names.iter().map(|name| vec![name.as_str(); times]).collect();
        let functions = names[1..].iter().zip(&calls).map(|(name, calls)| (name.as_str(), &calls[..]));
        model(&functions.collect::<Vec<_>>())
    }

    #[test]
    fn functions_may_call_each_other() {
        assert_eq!(model(&[("a", &["Relu", "Add"]), ("b", &["a", "a", "Relu"]), ("c", &["b", "a"])]), Ok(()));
        assert_eq!(chain(20, 2), Ok(()), "2^20 nodes");
        assert_eq!(chain(99, 1), Ok(()));
        assert_eq!(Functions::default().check(), Ok(()));
    }

    #[test]
    fn without_end_they_may_not() {
        for times in [2, 3, 10] {
            assert!(chain(21, times).unwrap_err().contains("nodes when they are written out"));
            assert!(chain(90, times).unwrap_err().contains("nodes when they are written out"));
        }
        for circle in
            [&[("a", &["a"][..])][..], &[("a", &["b", "a"]), ("b", &["a", "a"])], &[("a", &["a"]), ("b", &[])]]
        {
            assert!(model(circle).unwrap_err().contains("in a circle"));
        }
        assert!(chain(101, 1).unwrap_err().contains("more than 100 deep"));
        assert!(chain(10_000, 1).unwrap_err().contains("more than 100 deep"));
        assert!(model(&[("a", &[]), ("a", &[])]).unwrap_err().contains("two functions"));
    }
}
