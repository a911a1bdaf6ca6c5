//! How long a night may take.

use std::time::Duration;

use crate::limits::NIGHT_SECONDS;

/// Reads a time like `90s`, `30m` or `2h`.
pub fn parse(text: &str) -> Result<Duration, String> {
    let form =
        || format!("must be a whole number of s, m or h like 90s, 30m or 2h, got \"{text}\"");
    let unit = match text.chars().next_back() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        _ => return Err(form()),
    };
    let number = &text[..text.len() - 1];
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(form());
    }
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    seconds.filter(|seconds| NIGHT_SECONDS.contains(seconds)).map(Duration::from_secs).ok_or_else(
        || {
            let (least, most) = (NIGHT_SECONDS.start(), NIGHT_SECONDS.end() / 3_600);
            format!("must be in {least}s..={most}h, got {text}")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_minutes_and_hours_are_read() {
        for (text, seconds) in [("90s", 90), ("30m", 1_800), ("2h", 7_200)] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)));
        }
    }

    #[test]
    fn anything_else_is_refused_with_what_it_must_be() {
        for text in ["", "30", "m", "-1m", "1.5h", "1d", "30 m", "é", "+3m"] {
            let message = parse(text).unwrap_err();
            assert!(message.contains("like 90s, 30m or 2h, got"), "{message}");
        }
        for text in ["0s", "0h", "169h", "99999999999999999999h"] {
            let message = parse(text).unwrap_err();
            assert!(message.starts_with("must be in 1s..=168h, got "), "{message}");
        }
    }
}
