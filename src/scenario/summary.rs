//! What a run of a scenario came to: the verdict, findings with their rates, and the figures. It
//! serialises as the JSON of `kvseam run --format json`.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::{Fault, Scenario};
use crate::finding::{Code, Finding, Kept, Named, Run, Severity, Tally};
use crate::stats::{Interval, Rate};

/// A run beside its scenario.
///
/// ```
/// use std::path::Path;
///
/// use kvseam::scenario::file;
/// use kvseam::scenario::summary::Summary;
/// use kvseam::world;
///
/// let scenario = file::load(Path::new("sims/hazards/h06-padded-up.toml"))?;
/// let run = world::run(&scenario, Path::new("sims/hazards"))?;
/// let json = serde_json::to_value(Summary::new(&scenario, &run))?;
/// assert_eq!(json["verdict"], "defect");
/// assert_eq!(json["findings"][0]["code"], "placed.missing");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Summary<'a> {
    scenario: &'a Scenario,
    run: &'a Run,
    /// The command that repeats the run, where there is one.
    pub reproduce: Option<String>,
}

#[derive(Serialize)]
struct Json<'a> {
    title: &'a str,
    verdict: &'static str,
    digest: String,
    ended: u64,
    findings: Vec<FindingJson<'a>>,
    chances: BTreeMap<&'static str, u64>,
    marks: BTreeMap<&'static str, u64>,
    metrics: BTreeMap<&'static str, u64>,
    /// Paths of faults that found nothing to go wrong.
    faults_never_struck: Vec<String>,
    decode_hit_lengths: &'a BTreeMap<u32, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reproduce: Option<&'a str>,
}

/// The findings of one code.
#[derive(Serialize)]
struct FindingJson<'a> {
    code: Code,
    severity: Severity,
    unit: &'static str,
    count: u64,
    chance: &'static str,
    chances: u64,
    /// `null` without chances, and where one chance had several findings.
    rate: Option<Interval>,
    /// The first findings with their evidence.
    first: &'a [Finding],
    #[serde(skip_serializing_if = "Option::is_none")]
    reproduce: Option<&'a str>,
}

/// Counts by name, in the order of the names.
fn tallied<K: Named>(tally: &Tally<K>) -> BTreeMap<&'static str, u64> {
    tally.iter().map(|(item, count)| (item.name(), count)).collect()
}

impl<'a> Summary<'a> {
    /// Of a run of `scenario`, without a command that repeats it.
    pub fn new(scenario: &'a Scenario, run: &'a Run) -> Summary<'a> {
        Summary { scenario, run, reproduce: None }
    }

    /// The digest as 16 hexadecimal digits.
    pub fn digest(&self) -> String {
        format!("{:016x}", self.run.digest)
    }

    /// How often a code was found, of how often it could have been.
    /// `None` where that is no rate: without chances, and where one chance had several findings.
    pub fn interval(&self, code: Code, kept: &Kept) -> Option<Interval> {
        let rate = Rate { hits: kept.count, chances: self.run.chances.get(code.chance()) };
        rate.interval().filter(|_| rate.hits <= rate.chances)
    }

    /// Faults that found nothing to go wrong, by their path in the scenario.
    pub fn idle_faults(&self) -> impl Iterator<Item = (String, &'a Fault)> {
        self.run.faults_idle.iter().map(|&number| {
            let fault = &self.scenario.faults[number];
            (format!("faults.{number}.{}", fault.kind()), fault)
        })
    }

    fn json(&self) -> Json<'_> {
        let reproduce = self.reproduce.as_deref();
        let findings = self.run.findings.iter().map(|(code, kept)| FindingJson {
            code,
            severity: code.severity(),
            unit: code.unit(),
            count: kept.count,
            chance: code.chance().name(),
            chances: self.run.chances.get(code.chance()),
            rate: self.interval(code, kept),
            first: &kept.first,
            reproduce,
        });
        Json {
            title: &self.scenario.title,
            verdict: self.run.verdict(),
            digest: self.digest(),
            ended: self.run.ended.0,
            findings: findings.collect(),
            chances: tallied(&self.run.chances),
            marks: tallied(&self.run.marks),
            metrics: tallied(&self.run.metrics),
            faults_never_struck: self.idle_faults().map(|(path, _)| path).collect(),
            decode_hit_lengths: &self.run.decode_hit_lengths,
            reproduce,
        }
    }
}

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}
