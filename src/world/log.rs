//! What a run leaves while it goes: every event to the oracle and into the digest, marks and
//! metrics.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;

use super::observer::{Call, Note, Observer, Seen};
use crate::event::Event;
use crate::finding::{Chance, FreeRun, FreeSample, Mark, Metric, Run, Tally};
use crate::memory::Memory;
use crate::oracle::{FinalState, Oracle};
use crate::units::Tick;

/// Bytes that are hashed at a time: an event is many small numbers, each of which would cost the
/// hasher as much as eight bytes do.
const DIGEST_BYTES: usize = 1_024;

/// A hasher of fixed width and byte order, so that digests agree between machines.
struct Digest {
    hasher: SipHasher13,
    /// What was written and is not hashed yet, up to `filled`.
    waiting: Box<[u8; DIGEST_BYTES]>,
    filled: usize,
}

impl Digest {
    fn new() -> Digest {
        Digest { hasher: SipHasher13::new(), waiting: Box::new([0; DIGEST_BYTES]), filled: 0 }
    }

    /// Hashes what waits.
    fn flush(&mut self) {
        self.hasher.write(&self.waiting[..self.filled]);
        self.filled = 0;
    }

    fn put<const BYTES: usize>(&mut self, bytes: [u8; BYTES]) {
        if self.filled + BYTES > DIGEST_BYTES {
            self.flush();
        }
        let place = self.waiting[self.filled..].first_chunk_mut();
        *place.expect("what waits leaves room for a number") = bytes;
        self.filled += BYTES;
    }
}

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        if self.filled + bytes.len() > DIGEST_BYTES {
            self.flush();
        }
        match self.waiting[self.filled..].get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.filled += bytes.len();
            }
            None => self.hasher.write(bytes),
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.put([number]);
    }

    fn write_u32(&mut self, number: u32) {
        self.put(number.to_le_bytes());
    }

    fn write_u64(&mut self, number: u64) {
        self.put(number.to_le_bytes());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64((number as i64).cast_unsigned());
    }

    fn finish(&self) -> u64 {
        let mut hasher = self.hasher;
        hasher.write(&self.waiting[..self.filled]);
        hasher.finish()
    }
}

/// The record of a run.
pub(super) struct Log<'a> {
    pub(super) now: Tick,
    oracle: Oracle,
    digest: Digest,
    marks: Tally<Mark>,
    metrics: Tally<Metric>,
    decode_hit_lengths: BTreeMap<u32, u64>,
    free_runs: BTreeMap<FreeSample, Tally<FreeRun>>,
    observer: Option<&'a mut dyn Observer>,
}

impl<'a> Log<'a> {
    pub(super) fn new(oracle: Oracle) -> Log<'a> {
        Log {
            now: Tick(0),
            oracle,
            digest: Digest::new(),
            marks: Tally::default(),
            metrics: Tally::default(),
            decode_hit_lengths: BTreeMap::new(),
            free_runs: BTreeMap::new(),
            observer: None,
        }
    }

    /// Shows all that follows to `observer`.
    pub(super) fn watch(&mut self, observer: &'a mut dyn Observer) {
        self.observer = Some(observer);
    }

    /// Whether somebody looks on.
    pub(super) fn is_watched(&self) -> bool {
        self.observer.is_some()
    }

    /// States an event; see [`Oracle::observe`] for `memory`.
    pub(super) fn tell(&mut self, event: &Event<'_>, memory: &[Memory]) {
        (self.now, event).hash(&mut self.digest);
        self.oracle.observe(self.now, event, memory);
        if let Some(observer) = &mut self.observer {
            observer.told(&Seen { tick: self.now, event, memory, oracle: &self.oracle });
        }
    }

    /// States a planner call to whoever looks on; for the oracle its copies and refusals count.
    pub(super) fn planned(&mut self, call: &Call<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.planned(self.now, call);
        }
    }

    /// Tells whoever looks on what is no event.
    pub(super) fn note(&mut self, note: &Note) {
        if let Some(observer) = &mut self.observer {
            observer.noted(self.now, note);
        }
    }

    pub(super) fn chance(&mut self, chance: Chance) {
        self.oracle.chance(chance);
    }

    pub(super) fn mark(&mut self, mark: Mark) {
        self.marks.add(mark, 1);
    }

    pub(super) fn count(&mut self, metric: Metric, more: u64) {
        self.metrics.add(metric, more);
    }

    /// Counts a reported decode hit of `tokens`.
    pub(super) fn decode_hit(&mut self, tokens: u32) {
        *self.decode_hit_lengths.entry(tokens).or_default() += 1;
    }

    /// Counts the pages of one pool's free runs, by the length of each.
    pub(super) fn free_runs(&mut self, sample: FreeSample, lengths: impl Iterator<Item = usize>) {
        let tally = self.free_runs.entry(sample).or_default();
        for length in lengths {
            tally.add(FreeRun::of(length), length as u64);
        }
    }

    /// The end of the run, with what each server then has.
    pub(super) fn close(mut self, final_states: &[FinalState], cut_short: bool) -> Run {
        let judgement = self.oracle.close(self.now, final_states, cut_short);
        self.metrics.add(Metric::RowsJudged, judgement.rows_judged);
        for (code, kept) in judgement.findings.iter() {
            (code, kept.count).hash(&mut self.digest);
        }
        for (metric, count) in self.metrics.iter() {
            (metric, count).hash(&mut self.digest);
        }
        Run {
            findings: judgement.findings,
            chances: judgement.chances,
            marks: self.marks,
            metrics: self.metrics,
            decode_hit_lengths: self.decode_hit_lengths,
            free_runs: self.free_runs,
            faults_idle: Vec::new(),
            ended: self.now,
            digest: self.digest.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_all_bytes_in_their_order() {
        let (mut digest, mut plain) = (Digest::new(), SipHasher13::new());
        for number in 0..2_000_u32 {
            digest.write_u32(number);
            plain.write(&number.to_le_bytes());
            assert_eq!(digest.finish(), plain.finish(), "{number}");
        }
        let long = [7; 3 * DIGEST_BYTES];
        digest.write(&long);
        plain.write(&long);
        assert_eq!(digest.finish(), plain.finish());
    }
}
