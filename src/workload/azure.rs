//! The Azure LLM inference trace 2023 as CSV: a timestamp in UTC with a fraction in units of
//! 100 ns, prompt tokens and output tokens. It has no content, so nothing is shared.

use super::line::{TraceRequest, check_length};
use crate::limits;
use crate::prompt::{ContentId, ContentRun};
use crate::units::Tokens;

const HEADER: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";
/// Units of 100 ns in a second.
const TIME_PER_SECOND: u64 = 10_000_000;

/// Refuses a first line that is not the format's.
pub(super) fn check_header(line: &str) -> Result<(), String> {
    if line == HEADER { Ok(()) } else { Err(format!("header: must be \"{HEADER}\", got {line:?}")) }
}

/// Reads one line, or says what is wrong with it. `content` is its prompt's.
pub(super) fn parse(line: &str, content: ContentId) -> Result<TraceRequest, String> {
    let fields: Vec<&str> = line.split(',').collect();
    let &[timestamp, context, generated] = fields.as_slice() else {
        return Err(format!("must be 3 fields, got {}", fields.len()));
    };
    let time = time(timestamp).ok_or_else(|| {
        format!("TIMESTAMP: must be a time like 2023-11-16 18:15:46.6805900, got {timestamp:?}")
    })?;
    let context = length("ContextTokens", context, &limits::PROMPT_TOKENS)?;
    let output = length("GeneratedTokens", generated, &limits::OUTPUT_TOKENS)?;
    Ok(TraceRequest { time, runs: vec![ContentRun::whole(content, Tokens(context))], output })
}

fn length(field: &str, text: &str, allowed: &std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let Some(length) = digits(text) else {
        return Err(format!("{field}: must be a whole number, got {text:?}"));
    };
    check_length(field, length, allowed)
}

/// A number in digits only: no sign and no space.
fn digits(text: &str) -> Option<u64> {
    let all = text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// Units of 100 ns from year 1 to a time spelled `2023-11-16 18:15:46.6805900`.
fn time(text: &str) -> Option<u64> {
    let (date, clock) = text.split_once(' ')?;
    let (clock, fraction) = clock.split_once('.')?;
    let [hour, minute, second] = parts(clock, ':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 59 || fraction.len() != 7 {
        return None;
    }
    let [year, month, day] = parts(date, '-', [4, 2, 2])?;
    let seconds = ((days(year, month, day)? * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * TIME_PER_SECOND + digits(fraction)?)
}

/// Three numbers of these widths.
fn parts(text: &str, separator: char, widths: [usize; 3]) -> Option<[u64; 3]> {
    let mut numbers = [0; 3];
    let mut fields = text.split(separator);
    for (number, width) in numbers.iter_mut().zip(widths) {
        *number = digits(fields.next().filter(|field| field.len() == width)?)?;
    }
    fields.next().is_none().then_some(numbers)
}

/// Days from the first day of year 1 to a date of the Gregorian calendar.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let february = if leap { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month.checked_sub(1)?).ok()?;
    if year == 0 || day == 0 || day > *months.get(before)? {
        return None;
    }
    let past = year - 1;
    let years = past * 365 + past / 4 - past / 100 + past / 400;
    Some(years + months[..before].iter().sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::trace::read;
    use super::super::trace::tests::{config, read_text};
    use super::*;
    use crate::scenario::{TraceConfig, TraceFormat};

    #[test]
    fn times_count_from_the_first_line_and_contents_are_unique() {
        let text = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
                    2024-02-28 23:59:59.0000010,70,3\r\n\
                    2024-02-29 00:00:00.0000005,5,1\r\n\
                    2024-03-01 00:00:00.0000010,6,2";
        let requests = read_text(&config(TraceFormat::Azure), text.as_bytes()).unwrap();
        let ticks: Vec<_> = requests.iter().map(|request| request.at.0).collect();
        // One second less 500 ns, rounded down; then one day and one second.
        assert_eq!(ticks, [0, 999_999, 86_401_000_000]);
        let lengths: Vec<_> = requests.iter().map(|r| (r.prompt_len().0, r.output.0)).collect();
        assert_eq!(lengths, [(70, 3), (5, 1), (6, 2)]);
        let mut contents: Vec<_> = requests
            .iter()
            .flat_map(|request| [request.runs[0].content, request.output_content])
            .collect();
        contents.sort_unstable();
        contents.dedup();
        assert_eq!(contents.len(), 6);
    }

    #[test]
    fn days_follow_the_calendar() {
        // Known weekdays and spans: 1970-01-01 is day 719,162 after 0001-01-01.
        assert_eq!(days(1, 1, 1), Some(0));
        assert_eq!(days(1970, 1, 1), Some(719_162));
        assert_eq!(days(2000, 3, 1).unwrap() - days(2000, 2, 28).unwrap(), 2);
        assert_eq!(days(1900, 3, 1).unwrap() - days(1900, 2, 28).unwrap(), 1);
        for (year, month, day) in [(2023, 2, 29), (1900, 2, 29), (2023, 0, 1), (2023, 13, 1)] {
            assert_eq!(days(year, month, day), None, "{year}-{month}-{day}");
        }
        assert_eq!(days(2023, 4, 31), None);
        assert_eq!(days(2023, 4, 0), None);
        assert_eq!(days(0, 4, 1), None);
    }

    #[test]
    fn malformed_lines_are_refused_with_their_reason() {
        let base = "2023-11-16 18:15:46.6805900,374,44";
        let content = ContentId(1);
        assert!(parse(base, content).is_ok());
        for (from, to, reason) in [
            (",44", "", "must be 3 fields, got 2"),
            (",44", ",44,1", "must be 3 fields, got 4"),
            ("374", "0", "ContextTokens: must be 1 to 8388608, got 0"),
            ("374", "8388609", "ContextTokens: must be 1 to 8388608, got 8388609"),
            ("374", "-3", "ContextTokens: must be a whole number, got \"-3\""),
            ("374", "+3", "ContextTokens: must be a whole number, got \"+3\""),
            ("374", " 374", "ContextTokens: must be a whole number, got \" 374\""),
            ("374", "", "ContextTokens: must be a whole number, got \"\""),
            ("374", "3.5", "ContextTokens: must be a whole number, got \"3.5\""),
            (",44", ",0", "GeneratedTokens: must be 1 to 1048576, got 0"),
            ("-16 ", "-31 ", "TIMESTAMP: must be a time like"),
            ("2023-11-16", "2023-1-16", "TIMESTAMP: must be a time like"),
            ("18:15", "24:15", "TIMESTAMP: must be a time like"),
            ("46.", "60.", "TIMESTAMP: must be a time like"),
            (".6805900", "", "TIMESTAMP: must be a time like"),
            (".6805900", ".680590", "TIMESTAMP: must be a time like"),
            (".6805900", ".68059001", "TIMESTAMP: must be a time like"),
            (".6805900", ".680590Z", "TIMESTAMP: must be a time like"),
            (" 18", "T18", "TIMESTAMP: must be a time like"),
        ] {
            let text = base.replacen(from, to, 1);
            assert_ne!(text, base, "{from}");
            let error = parse(&text, content).err().unwrap_or_default();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }

    #[test]
    fn another_header_is_refused() {
        for text in ["", "TIMESTAMP,ContextTokens\n", "2023-11-16 18:15:46.6805900,374,44\n"] {
            let error = read_text(&config(TraceFormat::Azure), text.as_bytes()).unwrap_err();
            assert!(error.contains("header: must be \"TIMESTAMP,Context"), "{error}");
        }
        let header = format!("{HEADER}\n");
        assert_eq!(
            read_text(&config(TraceFormat::Azure), header.as_bytes()).unwrap_err(),
            "trace: must hold at least one request, got none"
        );
    }

    #[test]
    fn the_sample_is_read_whole() {
        let sample = TraceConfig { path: "azure-tiny.csv".into(), ..config(TraceFormat::Azure) };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/traces");
        assert_eq!(read(&sample, &folder).unwrap().len(), 12);
    }
}
