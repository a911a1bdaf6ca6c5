//! A prompt as runs of shared content, and the identity of a token's KV.
//!
//! A [`ContentRun`] names a piece of some content; two prompts share a token where they name the
//! same place of the same content. But the KV of a token depends on every token before it, so what
//! a row of a pool holds is not a token but a token *with its history*. [`Chains`] gives each
//! history a small number: a [`Sequence`] is a prompt (and output) as segments of constant
//! [`ChainId`], such that two sequences have equal KV at a position exactly if they have the same
//! chain there. A page's key is the chain at its last position, so keys, matches and comparisons
//! cost runs and pages, never tokens.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::units::{PageSize, RequestId, Tokens};

/// A piece of text that requests may share. Ids below [`ContentId::OWN`] are free for scenarios and
/// traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentId(pub u64);

impl ContentId {
    /// Ids from here on are made by workloads for content that only one request has.
    pub const OWN: u64 = 1 << 48;

    /// Whether a workload made it, so that no file names it.
    pub fn is_own(self) -> bool {
        self.0 >= ContentId::OWN
    }
}

/// `len` consecutive tokens of one content, from its token `offset` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRun {
    /// The content that the tokens are from.
    pub content: ContentId,
    /// The first token's place in the content.
    pub offset: Tokens,
    /// How many tokens.
    pub len: Tokens,
}

impl ContentRun {
    /// A run from the start of a content.
    pub fn whole(content: ContentId, len: Tokens) -> ContentRun {
        ContentRun { content, offset: Tokens(0), len }
    }
}

/// What `runs` name behind their first `skipped` tokens.
pub fn runs_behind(
    runs: impl IntoIterator<Item = ContentRun>,
    skipped: Tokens,
) -> impl Iterator<Item = ContentRun> {
    let mut left = skipped;
    runs.into_iter().map(move |run| {
        let cut = left.min(run.len);
        left -= cut;
        ContentRun { content: run.content, offset: run.offset + cut, len: run.len - cut }
    })
}

/// The identity of a token history: a number for all tokens before a run together with the run's
/// own content. Equal chains at equal positions mean equal tokens from the sequence's start to
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId(pub u32);

/// What a cache compares: one full page with all that precedes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageKey(pub u32);

/// Everything that decides a run's chain: what precedes it and which tokens it names.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Link {
    namespace: u32,
    parent: Option<ChainId>,
    start: Tokens,
    content: ContentId,
    offset: Tokens,
}

/// The table of all histories that one simulation knows.
#[derive(Default)]
pub struct Chains {
    /// Only ever looked up, so that its order means nothing.
    known: FxHashMap<Link, ChainId>,
}

/// One stretch of a [`Sequence`] with a constant chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The position after the stretch.
    pub end: Tokens,
    /// Its chain.
    pub chain: ChainId,
    /// The content that its tokens are from.
    pub content: ContentId,
    /// The place in the content that its last token is before.
    pub content_end: Tokens,
}

/// A token sequence by its histories: segments in order, without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    segments: Vec<Segment>,
}

impl Chains {
    /// The sequence of `runs` in `namespace` (an adapter or a salt; different namespaces never
    /// share KV). Empty runs count for nothing, and runs that continue each other are one.
    pub fn sequence(
        &mut self,
        namespace: u32,
        runs: impl IntoIterator<Item = ContentRun>,
    ) -> Sequence {
        let mut segments: Vec<Segment> = Vec::new();
        let mut start = Tokens(0);
        let mut continues: Option<(ContentId, Tokens)> = None;
        for run in runs.into_iter().filter(|run| run.len > Tokens(0)) {
            let end = start + run.len;
            match segments.last_mut() {
                Some(last) if continues == Some((run.content, run.offset)) => {
                    (last.end, last.content_end) = (end, run.offset + run.len);
                }
                last => {
                    let parent = last.map(|segment| segment.chain);
                    let (content, offset) = (run.content, run.offset);
                    let chain = self.chain(Link { namespace, parent, start, content, offset });
                    let content_end = offset + run.len;
                    segments.push(Segment { end, chain, content, content_end });
                }
            }
            continues = Some((run.content, run.offset + run.len));
            start = end;
        }
        Sequence { segments }
    }

    fn chain(&mut self, link: Link) -> ChainId {
        let next = u32::try_from(self.known.len()).expect("limits keep runs within u32");
        *self.known.entry(link).or_insert(ChainId(next))
    }
}

/// The texts of requests, prompt and output, by request.
#[derive(Default)]
pub struct Texts {
    by_request: Vec<Option<Rc<Sequence>>>,
}

impl Texts {
    /// Takes up the text of a request.
    pub fn insert(&mut self, request: RequestId, text: Rc<Sequence>) {
        if self.by_request.len() <= request.index() {
            self.by_request.resize(request.index() + 1, None);
        }
        self.by_request[request.index()] = Some(text);
    }

    /// The text of a request, if it is known.
    pub fn get(&self, request: RequestId) -> Option<&Rc<Sequence>> {
        self.by_request.get(request.index())?.as_ref()
    }

    /// The chain at `position` of a request's text; `None` past its end or where it is not known.
    pub fn chain_at(&self, request: RequestId, position: Tokens) -> Option<ChainId> {
        self.get(request)?.chain_at(position)
    }
}

impl Sequence {
    /// Length in tokens.
    pub fn len(&self) -> Tokens {
        self.segments.last().map_or(Tokens(0), |last| last.end)
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The chain at `position`, or `None` past the end.
    pub fn chain_at(&self, position: Tokens) -> Option<ChainId> {
        let index = self.segments.partition_point(|segment| segment.end <= position);
        self.segments.get(index).map(|segment| segment.chain)
    }

    /// The content that the token at `position` is from, and its place there; `None` past the end.
    pub fn token_at(&self, position: Tokens) -> Option<(ContentId, Tokens)> {
        let segment = self.segments_from(position).first()?;
        Some((segment.content, segment.content_end - (segment.end - position)))
    }

    /// The segments that reach past `position`, the first of them perhaps begun before it.
    pub fn segments_from(&self, position: Tokens) -> &[Segment] {
        &self.segments[self.segments.partition_point(|segment| segment.end <= position)..]
    }

    /// Tokens that both sequences begin with.
    pub fn common_prefix(&self, other: &Sequence) -> Tokens {
        let mut common = Tokens(0);
        for (ours, theirs) in self.segments.iter().zip(&other.segments) {
            if ours.chain != theirs.chain {
                break;
            }
            common = ours.end.min(theirs.end);
            if ours.end != theirs.end {
                break;
            }
        }
        common
    }

    /// The keys of the full pages among the first `length` tokens.
    pub fn page_keys(&self, page: PageSize, length: Tokens) -> Vec<PageKey> {
        self.part_keys(page, page, length)
    }

    /// The same, each page named by its first `part` tokens, which are at most a page.
    pub fn part_keys(&self, page: PageSize, part: PageSize, length: Tokens) -> Vec<PageKey> {
        let pages = length.min(self.len()).pages_floor(page).0;
        let mut segments = self.segments.iter();
        let mut segment = segments.next();
        (0..pages)
            .map(|ordinal| {
                let last = Tokens(ordinal * page.get() + part.get() - 1);
                while segment.is_some_and(|current| current.end <= last) {
                    segment = segments.next();
                }
                PageKey(segment.expect("a full page ends inside the sequence").chain.0)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(content: u64, offset: u32, len: u32) -> ContentRun {
        ContentRun { content: ContentId(content), offset: Tokens(offset), len: Tokens(len) }
    }

    /// The token list that runs stand for.
    fn tokens(runs: &[ContentRun]) -> Vec<(u64, u32)> {
        runs.iter()
            .flat_map(|run| (0..run.len.0).map(|i| (run.content.0, run.offset.0 + i)))
            .collect()
    }

    fn runs() -> impl Strategy<Value = Vec<ContentRun>> {
        let run = (0u64..2, 0u32..3, 0u32..5).prop_map(|(c, offset, len)| run(c, offset, len));
        proptest::collection::vec(run, 0..6)
    }

    proptest! {
        #[test]
        fn chains_agree_exactly_where_the_whole_history_does(a in runs(), b in runs()) {
            let mut chains = Chains::default();
            let (left, right) = (chains.sequence(0, a.clone()), chains.sequence(0, b.clone()));
            let (a, b) = (tokens(&a), tokens(&b));
            prop_assert_eq!(left.len().0 as usize, a.len());
            for (at, &(content, place)) in (0..).map(Tokens).zip(&a) {
                prop_assert_eq!(left.token_at(at), Some((ContentId(content), Tokens(place))));
            }
            prop_assert_eq!(left.token_at(left.len()), None);
            let common = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(left.common_prefix(&right).0 as usize, common);
            for position in 0..a.len().min(b.len()) {
                let at = Tokens(u32::try_from(position).unwrap());
                prop_assert_eq!(left.chain_at(at) == right.chain_at(at), position < common);
            }
        }

        #[test]
        fn page_keys_agree_exactly_where_the_pages_and_their_history_do(
            a in runs(), b in runs(), rows in 1u32..4,
        ) {
            let page = PageSize::new(rows).unwrap();
            let mut chains = Chains::default();
            let (left, right) = (chains.sequence(0, a.clone()), chains.sequence(0, b.clone()));
            let common = left.common_prefix(&right).pages_floor(page).index();
            let left = left.page_keys(page, left.len());
            let right = right.page_keys(page, right.len());
            prop_assert_eq!(left.len(), tokens(&a).len() / rows as usize);
            for (index, (x, y)) in left.iter().zip(&right).enumerate() {
                prop_assert_eq!(x == y, index < common);
            }
        }
    }

    proptest! {
        #[test]
        fn runs_behind_a_place_name_the_tokens_behind_it(runs in runs(), skipped in 0u32..24) {
            let rest: Vec<ContentRun> = runs_behind(runs.clone(), Tokens(skipped)).collect();
            let kept: Vec<_> = tokens(&runs).into_iter().skip(skipped as usize).collect();
            prop_assert_eq!(tokens(&rest), kept);
        }
    }

    #[test]
    fn a_part_s_key_is_that_of_the_page_it_would_be_alone() {
        let mut chains = Chains::default();
        let page = |rows| PageSize::new(rows).unwrap();
        // Pages of 4 begin at 0, 4 and 8; their first halves end at 2, 6 and 10.
        let text = chains.sequence(0, [run(1, 0, 6), run(2, 0, 7)]);
        let fine = text.page_keys(page(2), text.len());
        let parts = text.part_keys(page(4), page(2), text.len());
        assert_eq!(parts, [fine[0], fine[2], fine[4]]);
    }

    #[test]
    fn namespaces_share_nothing() {
        let mut chains = Chains::default();
        let left = chains.sequence(0, [run(1, 0, 8)]);
        let right = chains.sequence(1, [run(1, 0, 8)]);
        assert_eq!(left.common_prefix(&right), Tokens(0));
    }
}
