//! A *shard*: the part of a sweep that one machine does. Shard K of N has the runs whose numbers
//! leave K - 1 when divided by N, so that each has its part of every cell's seeds.

use std::fmt;
use std::str::FromStr;

use super::cell::RunId;
use crate::limits;

/// One of the equal parts of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    /// Which, from 1.
    pub number: u64,
    /// Of how many.
    pub of: u64,
}

/// The variable that says how many shards an array or an indexed job has, as neither Kubernetes nor
/// the second try of some indices of a Slurm array says so.
pub const SHARDS_VARIABLE: &str = "KVSEAM_SHARDS";

impl Shard {
    /// The whole sweep.
    pub const WHOLE: Shard = Shard { number: 1, of: 1 };

    /// Shard `number` of `of`. The error says what they must be.
    pub fn new(number: u64, of: u64) -> Result<Shard, String> {
        if !limits::SHARDS.contains(&of) {
            let (min, max) = (limits::SHARDS.start(), limits::SHARDS.end());
            return Err(format!("the number of shards must be in {min}..={max}, got {of}"));
        }
        if !(1..=of).contains(&number) {
            return Err(format!("a shard of {of} must be in 1..={of}, got {number}"));
        }
        Ok(Shard { number, of })
    }

    /// Whether it is the whole sweep.
    pub fn is_whole(self) -> bool {
        self.of == 1
    }

    /// Whether a run is one of its own.
    pub fn has(self, run: RunId) -> bool {
        run.0 % self.of == self.number - 1
    }

    /// How many of the runs `first..end` are its own.
    pub fn count(self, first: u64, end: u64) -> u64 {
        // Runs below `end` that leave `number - 1`.
        let below = |end: u64| (end + self.of - self.number) / self.of;
        below(end) - below(first)
    }

    /// The shard that a Slurm job array or a Kubernetes indexed job gives this process, with the
    /// variable that says so. `variable` is the environment.
    pub fn of_job(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<(Shard, &'static str)>, String> {
        let read = |name: &str| -> Result<Option<u64>, String> {
            let Some(text) = variable(name) else { return Ok(None) };
            let number = text.trim().parse();
            number.map(Some).map_err(|_| format!("{name}: must be a whole number, got \"{text}\""))
        };
        let given = read(SHARDS_VARIABLE)?;
        let index = |name: &'static str| Ok::<_, String>(read(name)?.map(|index| (name, index)));
        let job = match index("SLURM_ARRAY_TASK_ID")? {
            None => index("JOB_COMPLETION_INDEX")?,
            slurm => slurm,
        };
        let Some((name, index)) = job else {
            // Every machine that was meant to do a part would do the whole.
            return given.map_or(Ok(None), |of| {
                Err(format!(
                    "{SHARDS_VARIABLE}: must go with SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX or \
                     --shard, got {of} and none of them"
                ))
            });
        };
        let (number, of) = match given {
            Some(of) if index < of => (index + 1, of),
            // What is wrong with none or too many is said below.
            Some(of) if !limits::SHARDS.contains(&of) => (1, of),
            Some(of) => {
                return Err(format!(
                    "{name}: must be in 0..={} where {SHARDS_VARIABLE} is {of}, got {index}",
                    of - 1
                ));
            }
            None if name == "JOB_COMPLETION_INDEX" => {
                return Err(format!(
                    "{SHARDS_VARIABLE}: must be given beside {name}, or --shard, got nothing"
                ));
            }
            None => {
                let bound =
                    |name| read(name)?.ok_or_else(|| format!("{name}: must be given, got nothing"));
                let (min, max) = (bound("SLURM_ARRAY_TASK_MIN")?, bound("SLURM_ARRAY_TASK_MAX")?);
                whole_array(index, min, max, read("SLURM_ARRAY_TASK_COUNT")?)?
            }
        };
        let of_which = if given.is_some() { SHARDS_VARIABLE } else { name };
        let shard = Shard::new(number, of).map_err(|reason| format!("{of_which}: {reason}"))?;
        Ok(Some((shard, name)))
    }
}

/// Number and count of a task of an array that is whole. A part of one, as of the second try of
/// some tasks, does not say of how many shards they are.
fn whole_array(index: u64, min: u64, max: u64, count: Option<u64>) -> Result<(u64, u64), String> {
    let span = max.checked_sub(min).map_or(0, |span| span.saturating_add(1));
    let is_whole = min <= 1 && span > 1 && count.is_none_or(|count| count == span);
    if !is_whole || !(min..=max).contains(&index) {
        return Err(format!(
            "SLURM_ARRAY_TASK_ID: must be of a whole array of several tasks from 0 or 1, got task \
             {index} of {min} to {max}; for a part of one set {SHARDS_VARIABLE} to the number of \
             shards and number the tasks from 0, or give --shard"
        ));
    }
    Ok((index - min + 1, span))
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text
            .split_once('/')
            .and_then(|(number, of)| Some((number.trim().parse().ok()?, of.trim().parse().ok()?)));
        let (number, of) =
            numbers.ok_or_else(|| format!("must be two numbers like 2/4, got \"{text}\""))?;
        Shard::new(number, of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_in_one_shard() {
        for of in 1..=7 {
            let shards: Vec<Shard> = (1..=of).map(|k| Shard::new(k, of).unwrap()).collect();
            for run in 0..50 {
                let having = shards.iter().filter(|shard| shard.has(RunId(run))).count();
                assert_eq!(having, 1, "run {run} of {of} shards");
            }
            for shard in shards {
                for (first, end) in [(0, 0), (0, 50), (3, 17), (11, 12)] {
                    let counted = (first..end).filter(|&run| shard.has(RunId(run))).count() as u64;
                    assert_eq!(shard.count(first, end), counted, "{shard}: {first}..{end}");
                }
            }
        }
    }

    #[test]
    fn spelled_as_number_and_count() {
        assert_eq!("2/4".parse(), Ok(Shard { number: 2, of: 4 }));
        assert_eq!(Shard { number: 2, of: 4 }.to_string(), "2/4");
        for (text, reason) in [
            ("2", "like 2/4, got \"2\""),
            ("a/4", "like 2/4"),
            ("0/4", "must be in 1..=4, got 0"),
            ("5/4", "must be in 1..=4, got 5"),
            ("1/0", "must be in 1..=512, got 0"),
            ("1/513", "must be in 1..=512, got 513"),
        ] {
            let error = text.parse::<Shard>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    fn of_job(variables: &[(&str, &str)]) -> Result<Option<(u64, u64)>, String> {
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Ok(Shard::of_job(find)?.map(|(shard, _)| (shard.number, shard.of)))
    }

    fn array(
        id: &str,
        min: &str,
        max: &str,
        more: &[(&str, &str)],
    ) -> Result<Option<(u64, u64)>, String> {
        let own = [
            ("SLURM_ARRAY_TASK_ID", id),
            ("SLURM_ARRAY_TASK_MIN", min),
            ("SLURM_ARRAY_TASK_MAX", max),
        ];
        of_job(&[&own[..], more].concat())
    }

    #[test]
    fn a_whole_slurm_array_says_all() {
        assert_eq!(of_job(&[]), Ok(None));
        assert_eq!(array("0", "0", "3", &[("SLURM_ARRAY_TASK_COUNT", "4")]), Ok(Some((1, 4))));
        assert_eq!(array("3", "0", "3", &[]), Ok(Some((4, 4))));
        assert_eq!(array("1", "1", "4", &[]), Ok(Some((1, 4))));
    }

    /// Task 2 alone is an array of one task, which would make it the whole sweep.
    #[test]
    fn a_part_of_an_array_needs_the_number_of_shards() {
        for (id, min, max) in [("2", "2", "2"), ("0", "0", "0"), ("2", "2", "3")] {
            assert!(array(id, min, max, &[]).unwrap_err().contains("KVSEAM_SHARDS"));
            let id_of_4 = id.parse::<u64>().unwrap() + 1;
            assert_eq!(array(id, min, max, &[("KVSEAM_SHARDS", "4")]), Ok(Some((id_of_4, 4))));
        }
        // 0, 2: every second one.
        assert!(array("0", "0", "2", &[("SLURM_ARRAY_TASK_COUNT", "2")]).is_err());
        let beyond = array("4", "1", "4", &[("KVSEAM_SHARDS", "4")]).unwrap_err();
        let range = "SLURM_ARRAY_TASK_ID: must be in 0..=3 where KVSEAM_SHARDS is 4, got 4";
        assert_eq!(beyond, range);
        assert!(array("x", "0", "3", &[]).unwrap_err().contains("must be a whole number"));
    }

    #[test]
    fn an_indexed_job_needs_the_number_of_shards() {
        let index = ("JOB_COMPLETION_INDEX", "2");
        assert_eq!(of_job(&[index, ("KVSEAM_SHARDS", "4")]), Ok(Some((3, 4))));
        assert!(of_job(&[index]).unwrap_err().starts_with("KVSEAM_SHARDS: must be given"));
        assert!(of_job(&[index, ("KVSEAM_SHARDS", "2")]).unwrap_err().contains("in 0..=1"));
        let none = of_job(&[index, ("KVSEAM_SHARDS", "0")]).unwrap_err();
        assert_eq!(none, "KVSEAM_SHARDS: the number of shards must be in 1..=512, got 0");
        let lonely = of_job(&[("KVSEAM_SHARDS", "4")]).unwrap_err();
        assert!(lonely.starts_with("KVSEAM_SHARDS: must go with SLURM_ARRAY_TASK_ID"), "{lonely}");
    }
}
