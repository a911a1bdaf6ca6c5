//! Numbers as people read them.

/// `12345` as `12,345`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share of 0 to 1 as per cent: whole from 10 up, one decimal below, two digits below 0.1; never
/// rounded to 0 or 100 unless it is.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if share <= 0.0 {
        "0 %".to_owned()
    } else if percent < 0.0001 {
        "<0.0001 %".to_owned()
    } else if percent < 0.095 {
        let decimals = if percent < 0.00095 {
            5
        } else if percent < 0.0095 {
            4
        } else {
            3
        };
        let text = format!("{percent:.decimals$}");
        format!("{} %", text.trim_end_matches('0'))
    } else if share >= 1.0 {
        "100 %".to_owned()
    } else if percent > 99.9 {
        ">99.9 %".to_owned()
    } else if (9.95..=99.0).contains(&percent) {
        format!("{percent:.0} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// An amount with three significant digits, or all of its whole ones.
pub(crate) fn amount(number: f64) -> String {
    let magnitude = number.abs();
    let decimals = match magnitude {
        _ if magnitude < 0.0005 => 0,
        _ if magnitude < 0.9995 => 3,
        _ if magnitude < 9.995 => 2,
        _ if magnitude < 99.95 => 1,
        _ => 0,
    };
    let text = format!("{number:.decimals$}");
    let (whole, decimals) = match text.split_once('.') {
        Some((whole, decimals)) => (whole, decimals.trim_end_matches('0')),
        None => (text.as_str(), ""),
    };
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    if decimals.is_empty() { whole } else { format!("{whole}.{decimals}") }
}

/// A place on an axis from 0 to 1, as per cent without idle zeros.
pub(crate) fn tick(share: f64) -> String {
    let percent = 100.0 * share;
    let text = format!("{percent:.2}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn only_nothing_is_0_and_only_all_is_100_per_cent() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.000_4, "0.04 %"),
            (0.000_249, "0.025 %"),
            (0.000_012_3, "0.0012 %"),
            (0.000_000_5, "<0.0001 %"),
            (0.034_2, "3.4 %"),
            (0.42, "42 %"),
            (0.996, "99.6 %"),
            (0.999_9, ">99.9 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn amounts_have_three_digits_and_no_idle_zeros() {
        for (number, text) in [
            (0.0, "0"),
            (0.123_4, "0.123"),
            (0.5, "0.5"),
            (2.345, "2.35"),
            (34.56, "34.6"),
            (999.6, "1,000"),
            (12_345.6, "12,346"),
        ] {
            assert_eq!(amount(number), text);
        }
    }

    #[test]
    fn ticks_have_no_idle_zeros() {
        for (share, text) in [(0.0, "0 %"), (0.025, "2.5 %"), (0.1, "10 %"), (1.0, "100 %")] {
            assert_eq!(tick(share), text);
        }
    }
}
