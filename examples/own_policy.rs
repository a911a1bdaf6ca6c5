//! An eviction policy with state of its own, swept beside a built-in one and reported by its name.
//!
//! S3-FIFO keeps what is new in a small queue and what was used again in a main queue, both first
//! in first out, and remembers the keys of what left the small queue unused: what comes back soon
//! goes to the main queue at once. Run it with `cargo run --example own_policy`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::error::Error;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use kvseam::cache::Anchor;
use kvseam::cache::eviction::{EvictionPolicy, LogicalTime, Node, Usage};
use kvseam::finding::Metric;
use kvseam::prompt::PageKey;
use kvseam::report::page;
use kvseam::stats::Ratio;
use kvseam::sweep::cell::CellId;
use kvseam::sweep::execute::execute;
use kvseam::sweep::ledger::Ledger;
use kvseam::sweep::plan::{Plan, Sources};
use kvseam::sweep::runner::{Runner, Simulator};
use kvseam::units::Pages;
use kvseam::world::Registry;

/// What stands for a node's content, also after it has gone: its last page.
type Content = (Pages, PageKey);

fn content(node: &Node<'_>) -> Content {
    let last = node.keys.last().expect("a node has a page");
    (node.depth + Pages::of(node.keys), *last)
}

#[derive(Default)]
struct S3Fifo {
    ghosts_max: usize,
    /// Nodes that can go, first in first out. Some were withdrawn since.
    small: VecDeque<Anchor>,
    main: VecDeque<Anchor>,
    offered: BTreeSet<Anchor>,
    /// How often each node was used lately, three at most.
    uses: BTreeMap<Anchor, u8>,
    ghosts: VecDeque<Content>,
}

impl EvictionPolicy for S3Fifo {
    fn offer(&mut self, node: &Node<'_>) {
        self.offered.insert(node.anchor);
        let known = self.small.contains(&node.anchor) || self.main.contains(&node.anchor);
        if !known {
            let is_ghost = self.ghosts.contains(&content(node));
            let queue = if is_ghost { &mut self.main } else { &mut self.small };
            queue.push_back(node.anchor);
        }
    }

    fn withdraw(&mut self, node: &Node<'_>) {
        self.offered.remove(&node.anchor);
    }

    fn used(&mut self, _before: &Usage, node: &Node<'_>, _offered: bool) {
        let uses = self.uses.entry(node.anchor).or_default();
        *uses = (*uses + 1).min(3);
    }

    fn victim(&mut self, _now: LogicalTime) -> Option<Anchor> {
        self.small.retain(|anchor| self.offered.contains(anchor));
        self.main.retain(|anchor| self.offered.contains(anchor));
        while let Some(anchor) = self.small.pop_front() {
            if self.uses.remove(&anchor).is_none() {
                self.offered.remove(&anchor);
                return Some(anchor);
            }
            self.main.push_back(anchor);
        }
        while let Some(anchor) = self.main.pop_front() {
            match self.uses.get_mut(&anchor) {
                Some(uses) if *uses > 0 => {
                    *uses -= 1;
                    self.main.push_back(anchor);
                }
                _ => {
                    self.offered.remove(&anchor);
                    return Some(anchor);
                }
            }
        }
        None
    }

    fn evicted(&mut self, node: &Node<'_>) {
        self.uses.remove(&node.anchor);
        self.ghosts.push_back(content(node));
        if self.ghosts.len() > self.ghosts_max {
            self.ghosts.pop_front();
        }
    }

    fn clear(&mut self) {
        *self = S3Fifo { ghosts_max: self.ghosts_max, ..S3Fifo::default() };
    }
}

const BASE: &str = include_str!("shared-prefixes.toml");

const PLAN: &str = r#"
version = 1
title = "An own policy beside a built-in one"
base = "base.toml"
seeds = { first = 1, count = 20 }

[[axes]]
path = "prefill.eviction"
values = ["lru", "s3_fifo"]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    // A policy is made for each server of each run; the closure holds its parameters.
    let mut registry = Registry::default();
    let ghosts_max = 32;
    registry
        .eviction("s3_fifo", move |_server| Box::new(S3Fifo { ghosts_max, ..S3Fifo::default() }));

    let plan = Plan::parse(Sources {
        plan_path: "plan.toml".into(),
        plan: PLAN.to_owned(),
        base_path: "base.toml".into(),
        base: BASE.to_owned(),
    })?;
    let path = std::env::temp_dir().join(format!("own-policy-{}.sqlite", std::process::id()));
    let simulator = Simulator::new(&plan, &registry);
    let mut ledger = Ledger::start(&path, &plan, |cell| simulator.check(cell))?;
    execute(&mut ledger, 0, &AtomicBool::new(false), simulator, |_| {})?;
    drop(ledger);

    report(&path)?;
    std::fs::remove_file(&path)?;
    Ok(())
}

/// A ledger is read without the registry: it has the names as they were swept.
fn report(path: &Path) -> Result<(), Box<dyn Error>> {
    let ledger = Ledger::open(path)?;
    let found = ledger.ratios(&[(Metric::PrefillHitTokens, Metric::PromptTokens)])?;
    for (cell, ratios) in (0..).map(CellId).zip(&found) {
        let Ratio { n, x: prompts, y: hits, .. } = ratios[0];
        println!("{}: {n} runs, {hits} of {prompts} tokens found", ledger.plan.describe(cell));
    }
    let out = path.with_extension("report");
    let options = page::Options { axes: None, against: None };
    let written = page::write(&[ledger], &options, &out)?;
    let shown = std::fs::read_to_string(&written.page)?.contains("s3_fifo");
    println!("a page names the policy: {shown}");
    std::fs::remove_dir_all(out)?;
    Ok(())
}
