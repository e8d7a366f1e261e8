//! Decoders: graphs that extend keys and values in place, and graphs that give new ones, behind one session.

mod copied;
mod kit;
mod merged;
mod options;
mod random;
mod rows;
