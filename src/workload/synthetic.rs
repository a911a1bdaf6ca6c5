//! Requests drawn at random: arrivals, lengths, shared prefixes and conversations.
//!
//! Each aspect has a stream of its own, so that a change of one leaves the draws of the others as
//! they were.

use super::{OwnContents, Request};
use crate::limits;
use crate::prompt::ContentRun;
use crate::rng::Stream;
use crate::scenario::{Arrivals, Lengths, Synthetic};
use crate::units::{Tick, Tokens};

/// Draws the requests of a validated `config`.
pub(super) fn draw(config: &Synthetic, seed: u64) -> Vec<Request> {
    let mut own = OwnContents::default();
    let mut prompt = LengthDraws::new(&config.prompt, seed, "prompt lengths");
    let mut output = LengthDraws::new(&config.output, seed, "output lengths");
    let conversations = config.requests.div_ceil(config.turns);
    let mut open = prefixes(config, conversations, seed, &mut own);
    let arrivals = Arrivals::times(config.arrivals, seed);
    (0..config.requests)
        .zip(arrivals)
        .map(|(number, at)| {
            let history = &mut open[(number % conversations) as usize];
            push(history, ContentRun::whole(own.next(), prompt.next()));
            let output = output.next();
            let request = Request {
                at,
                runs: history.clone(),
                output,
                max_new_tokens: output,
                output_content: own.next(),
                namespace: 0,
                priority: 0,
            };
            push(history, ContentRun::whole(request.output_content, request.output));
            request
        })
        .collect()
}

/// What each conversation begins with: one of the shared prefixes, or nothing.
fn prefixes(
    config: &Synthetic,
    conversations: u32,
    seed: u64,
    own: &mut OwnContents,
) -> Vec<Vec<ContentRun>> {
    let groups: Vec<ContentRun> = match &config.prefix {
        Some(lengths) => {
            let mut lengths = LengthDraws::new(lengths, seed, "prefix lengths");
            (0..config.prefix_groups)
                .map(|_| ContentRun::whole(own.next(), lengths.next()))
                .collect()
        }
        None => Vec::new(),
    };
    let mut choice = Stream::new(seed, "prefix groups");
    (0..conversations)
        .map(|_| {
            let mut history = Vec::new();
            if !groups.is_empty() {
                push(&mut history, *pick(&mut choice, &groups));
            }
            history
        })
        .collect()
}

fn push(history: &mut Vec<ContentRun>, run: ContentRun) {
    if run.len > Tokens(0) {
        history.push(run);
    }
}

fn pick<'a, T>(stream: &mut Stream, list: &'a [T]) -> &'a T {
    let index = stream.below(list.len() as u64);
    &list[usize::try_from(index).expect("the index of a list fits into usize")]
}

/// A stream of lengths of one distribution.
struct LengthDraws<'a> {
    lengths: &'a Lengths,
    stream: Stream,
}

impl<'a> LengthDraws<'a> {
    fn new(lengths: &'a Lengths, seed: u64, label: &str) -> Self {
        LengthDraws { lengths, stream: Stream::new(seed, label) }
    }

    fn next(&mut self) -> Tokens {
        Tokens(match self.lengths {
            Lengths::Fixed(length) => *length,
            Lengths::Uniform { min, max } => self.stream.within(*min..=*max),
            Lengths::OneOf(choices) => *pick(&mut self.stream, choices),
        })
    }
}

impl Arrivals {
    /// The arrival times of one request after another, without end.
    fn times(self, seed: u64) -> impl Iterator<Item = Tick> {
        let mut stream = Stream::new(seed, "arrivals");
        let mut slots_used = 0_u64;
        (0_u64..).map(move |number| match self {
            Arrivals::Fixed { gap } => Tick(number * gap),
            Arrivals::Bursts { size, gap } => Tick(number / u64::from(size) * gap),
            Arrivals::Geometric { slot, numerator, denominator } => {
                let (hits, of) = (u64::from(numerator), u64::from(denominator));
                let at = slots_used + stream.geometric(hits, of, limits::ARRIVAL_SLOTS_MAX);
                slots_used = at + 1;
                Tick(at * slot)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::prompt::Chains;

    fn config() -> Synthetic {
        Synthetic {
            requests: 60,
            arrivals: Arrivals::Fixed { gap: 7 },
            prompt: Lengths::Uniform { min: 3, max: 9 },
            output: Lengths::OneOf(vec![2, 5]),
            prefix_groups: 0,
            prefix: None,
            turns: 1,
        }
    }

    fn ticks(arrivals: Arrivals, count: usize) -> Vec<u64> {
        arrivals.times(1).take(count).map(|at| at.0).collect()
    }

    #[test]
    fn arrivals_come_at_fixed_gaps_or_in_bursts() {
        assert_eq!(ticks(Arrivals::Fixed { gap: 7 }, 4), [0, 7, 14, 21]);
        let bursts = Arrivals::Bursts { size: 2, gap: 50 };
        assert_eq!(ticks(bursts, 5), [0, 0, 50, 50, 100]);
    }

    #[test]
    fn geometric_arrivals_use_each_slot_once_and_have_their_mean() {
        let arrivals = Arrivals::Geometric { slot: 10, numerator: 1, denominator: 4 };
        let times = ticks(arrivals, 20_000);
        assert!(times.iter().all(|at| at % 10 == 0));
        assert!(times.is_sorted_by(|a, b| a < b));
        // Mean 4 slots, standard deviation 3.5 a gap: six deviations of the total are about 2,940.
        assert!((times.last().unwrap() / 10).abs_diff(80_000) < 2_940);
        let every = Arrivals::Geometric { slot: 10, numerator: 4, denominator: 4 };
        assert_eq!(ticks(every, 3), [0, 10, 20]);
    }

    #[test]
    fn lengths_stay_in_their_distribution_and_reach_its_ends() {
        let requests = draw(&config(), 1);
        let prompts: BTreeSet<_> = requests.iter().map(|r| r.prompt_len().0).collect();
        assert_eq!(prompts, (3..=9).collect());
        let outputs: BTreeSet<_> = requests.iter().map(|r| r.output.0).collect();
        assert_eq!(outputs, BTreeSet::from([2, 5]));
    }

    #[test]
    fn requests_without_groups_or_turns_share_nothing() {
        let requests = draw(&config(), 1);
        let contents: BTreeSet<_> = requests
            .iter()
            .flat_map(|request| [request.runs[0].content, request.output_content])
            .collect();
        assert_eq!(contents.len(), 2 * requests.len());
    }

    #[test]
    fn prompts_of_a_group_share_exactly_its_prefix() {
        let grouped = Synthetic {
            prefix_groups: 3,
            prefix: Some(Lengths::Uniform { min: 100, max: 999 }),
            ..config()
        };
        let requests = draw(&grouped, 1);
        let mut chains = Chains::default();
        let sequences: Vec<_> =
            requests.iter().map(|request| chains.sequence(0, request.runs.clone())).collect();
        let groups: BTreeSet<_> = requests.iter().map(|r| r.runs[0].content).collect();
        assert_eq!(groups.len(), 3);
        for (a, left) in requests.iter().zip(&sequences) {
            for (b, right) in requests.iter().zip(&sequences) {
                if a.runs[1].content != b.runs[1].content {
                    let same = a.runs[0].content == b.runs[0].content;
                    let shared = if same { a.runs[0].len } else { Tokens(0) };
                    assert_eq!(left.common_prefix(right), shared);
                }
            }
        }
    }

    #[test]
    fn a_later_turn_is_the_turn_before_with_its_output_and_new_tokens() {
        let talks = Synthetic { requests: 7, turns: 3, ..config() };
        let requests = draw(&talks, 1);
        // Seven requests in turns of three make three conversations: 0 3 6, 1 4 and 2 5.
        for number in 3..7 {
            let (turn, before) = (&requests[number], &requests[number - 3]);
            let (new, known) = turn.runs.split_last().unwrap();
            let output = ContentRun::whole(before.output_content, before.output);
            let mut expected = before.runs.clone();
            expected.push(output);
            assert_eq!(known, expected);
            assert!(expected.iter().all(|run| run.content != new.content));
        }
        assert_eq!(requests[2].runs.len(), 1);
        assert_eq!(requests[6].runs.len(), 5);
    }

    #[test]
    fn a_change_of_one_aspect_leaves_the_draws_of_the_others() {
        let other = Synthetic {
            prompt: Lengths::Fixed(4),
            arrivals: Arrivals::Bursts { size: 4, gap: 1 },
            ..config()
        };
        let outputs = |config| draw(config, 9).iter().map(|r| r.output).collect::<Vec<_>>();
        assert_eq!(outputs(&config()), outputs(&other));
        assert_eq!(draw(&config(), 9), draw(&config(), 9));
        assert_ne!(draw(&config(), 9), draw(&config(), 10));
    }
}
