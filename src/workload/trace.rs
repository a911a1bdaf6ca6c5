//! A trace file, line by line: what its formats have in common.
//!
//! A file may start with a byte order mark, end its lines in LF or CR LF and have blank lines at
//! its end. Everything else that its format does not say is refused with the line. Requests must
//! come in order of arrival; reading stops at the cap on requests.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::line::TIME_PER_TICK;
use super::{OwnContents, Request, WorkloadError, azure, mooncake};
use crate::limits;
use crate::scenario::{TraceConfig, TraceFormat};
use crate::units::{Tick, Tokens};

/// Reads the trace of a validated `config`.
pub(super) fn read(config: &TraceConfig, base_dir: &Path) -> Result<Vec<Request>, WorkloadError> {
    let path = base_dir.join(&config.path);
    match File::open(&path) {
        Ok(file) => of_text(config, path, BufReader::new(file)),
        Err(reason) => Err(WorkloadError::Read { path, reason }),
    }
}

/// Reads the trace of a validated `config` from `text`, which errors call `path`.
pub(super) fn of_text(
    config: &TraceConfig,
    path: PathBuf,
    text: impl BufRead,
) -> Result<Vec<Request>, WorkloadError> {
    Trace::new(config, path, text).requests()
}

struct Trace<'a, R> {
    config: &'a TraceConfig,
    lines: Lines<R>,
    own: OwnContents,
    /// On the file's clock: the time that is tick 0 of the run, and then the arrival of the line
    /// before.
    origin: Option<u64>,
    previous: u64,
}

impl<'a, R: BufRead> Trace<'a, R> {
    fn new(config: &'a TraceConfig, path: PathBuf, reader: R) -> Self {
        // Mooncake's clock starts with the trace, Azure's with the calendar.
        let origin = match config.format {
            TraceFormat::Mooncake => Some(0),
            TraceFormat::Azure => None,
        };
        Trace {
            config,
            lines: Lines::new(path, reader),
            own: OwnContents::default(),
            origin,
            previous: 0,
        }
    }

    fn requests(mut self) -> Result<Vec<Request>, WorkloadError> {
        let cap = self.config.requests_max.map_or(usize::MAX, |cap| cap as usize);
        if self.config.format == TraceFormat::Azure {
            let header = self.lines.next()?.unwrap_or_default();
            azure::check_header(&header).map_err(|reason| self.lines.refuse(reason))?;
        }
        let mut requests = Vec::new();
        while requests.len() < cap
            && let Some(line) = self.lines.next()?
        {
            if requests.len() == limits::REQUESTS_MAX {
                let path = self.lines.path;
                return Err(WorkloadError::TooMany { path });
            }
            let request = self.request(&line);
            requests.push(request.map_err(|reason| self.lines.refuse(reason))?);
        }
        if requests.is_empty() {
            let path = self.lines.path;
            return Err(WorkloadError::Empty { path });
        }
        Ok(requests)
    }

    fn request(&mut self, line: &str) -> Result<Request, String> {
        let request = match self.config.format {
            TraceFormat::Mooncake => mooncake::parse(line)?,
            TraceFormat::Azure => azure::parse(line, self.own.next())?,
        };
        if request.time < self.previous {
            return Err("timestamp: must not be before the line above, got an earlier one".into());
        }
        self.previous = request.time;
        let origin = *self.origin.get_or_insert(request.time);
        Ok(Request {
            at: self.tick(request.time - origin)?,
            runs: request.runs,
            output: Tokens(request.output),
            max_new_tokens: Tokens(request.output),
            output_content: self.own.next(),
            namespace: 0,
            priority: 0,
        })
    }

    fn tick(&self, time: u64) -> Result<Tick, String> {
        let numerator = u128::from(self.config.time_numerator);
        let denominator = u128::from(self.config.time_denominator) * TIME_PER_TICK;
        let ticks = u128::from(time) * numerator / denominator;
        match u64::try_from(ticks) {
            Ok(ticks) if ticks <= limits::TICKS_MAX => Ok(Tick(ticks)),
            _ => Err(format!(
                "timestamp: must be at most {} scaled microseconds after the start, got {ticks}",
                limits::TICKS_MAX
            )),
        }
    }
}

/// The lines of a file that hold something.
struct Lines<R> {
    path: PathBuf,
    reader: R,
    /// Number of the last line that was read, from 1.
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(path: PathBuf, reader: R) -> Self {
        Lines { path, reader, number: 0 }
    }

    /// The next line without its end, or `None` when only blank lines or nothing is left.
    fn next(&mut self) -> Result<Option<String>, WorkloadError> {
        let mut blank = None;
        while let Some(line) = self.read_line()? {
            if !line.is_empty() {
                if let Some(number) = blank {
                    self.number = number;
                    return Err(self.refuse("must not be blank before the file's end".into()));
                }
                return Ok(Some(line));
            }
            blank = blank.or(Some(self.number));
        }
        Ok(None)
    }

    fn read_line(&mut self) -> Result<Option<String>, WorkloadError> {
        let mut bytes = Vec::new();
        let mut bounded = (&mut self.reader).take(limits::TRACE_LINE_BYTES_MAX + 1);
        if let Err(reason) = bounded.read_until(b'\n', &mut bytes) {
            let path = self.path.clone();
            return Err(WorkloadError::Read { path, reason });
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if bytes.len() as u64 > limits::TRACE_LINE_BYTES_MAX {
            let most = limits::TRACE_LINE_BYTES_MAX;
            return Err(self.refuse(format!("must be at most {most} bytes long, got more")));
        }
        let Ok(text) = String::from_utf8(bytes) else {
            return Err(self.refuse("must be UTF-8, got other bytes".into()));
        };
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        let text = match self.number {
            1 => text.strip_prefix('\u{feff}').unwrap_or(text),
            _ => text,
        };
        Ok(Some(text.to_owned()))
    }

    fn refuse(&self, reason: String) -> WorkloadError {
        WorkloadError::Line { path: self.path.clone(), line: self.number, reason }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn config(format: TraceFormat) -> TraceConfig {
        TraceConfig {
            format,
            path: String::new(),
            requests_max: None,
            time_numerator: 1,
            time_denominator: 1,
        }
    }

    /// The requests of a file of this text, or the error as users see it.
    pub(crate) fn read_text(config: &TraceConfig, text: &[u8]) -> Result<Vec<Request>, String> {
        Trace::new(config, PathBuf::from("trace"), text)
            .requests()
            .map_err(|error| error.to_string())
    }

    fn line(timestamp: u64) -> String {
        format!(r#"{{"timestamp":{timestamp},"input_length":3,"output_length":1,"hash_ids":[7]}}"#)
    }

    fn mooncake(text: &str) -> Result<Vec<Request>, String> {
        read_text(&config(TraceFormat::Mooncake), text.as_bytes())
    }

    #[test]
    fn line_ends_a_byte_order_mark_and_blank_lines_at_the_end_change_nothing() {
        let plain = mooncake(&format!("{}\n{}\n", line(0), line(1))).unwrap();
        assert_eq!(plain.len(), 2);
        for text in [
            format!("{}\n{}", line(0), line(1)),
            format!("{}\r\n{}\r\n", line(0), line(1)),
            format!("\u{feff}{}\n{}\n\n\r\n\n", line(0), line(1)),
        ] {
            assert_eq!(mooncake(&text).unwrap(), plain, "{text:?}");
        }
    }

    #[test]
    fn a_blank_line_inside_the_file_is_refused_where_it_stands() {
        let text = format!("{}\n\n\n{}\n", line(0), line(1));
        let expected = "trace:2: must not be blank before the file's end";
        assert_eq!(mooncake(&text).unwrap_err(), expected);
    }

    #[test]
    fn a_timestamp_before_the_line_above_is_refused() {
        let text = format!("{}\n{}\n{}\n", line(5), line(5), line(4));
        let error = mooncake(&text).unwrap_err();
        assert!(error.starts_with("trace:3: timestamp: must not be before"), "{error}");
    }

    #[test]
    fn an_empty_file_other_bytes_and_endless_lines_are_refused() {
        assert_eq!(mooncake("\n").unwrap_err(), "trace: must hold at least one request, got none");
        let bytes = read_text(&config(TraceFormat::Mooncake), b"\xff\n").unwrap_err();
        assert_eq!(bytes, "trace:1: must be UTF-8, got other bytes");
        let endless = " ".repeat(1 << 21);
        assert_eq!(
            mooncake(&endless).unwrap_err(),
            "trace:1: must be at most 1048576 bytes long, got more"
        );
    }

    #[test]
    fn the_cap_stops_before_the_rest_is_read() {
        let capped = TraceConfig { requests_max: Some(2), ..config(TraceFormat::Mooncake) };
        let text = format!("{}\n{}\nnot a request\n", line(0), line(1));
        assert_eq!(read_text(&capped, text.as_bytes()).unwrap().len(), 2);
        assert!(mooncake(&text).is_err());
    }

    #[test]
    fn times_are_scaled_and_rounded_down() {
        let scaled =
            TraceConfig { time_numerator: 2, time_denominator: 3, ..config(TraceFormat::Mooncake) };
        let text = format!("{}\n{}\n", line(1), line(300));
        let requests = read_text(&scaled, text.as_bytes()).unwrap();
        let ticks: Vec<_> = requests.iter().map(|request| request.at.0).collect();
        assert_eq!(ticks, [666, 200_000]);
        let late = line(limits::TICKS_MAX / 1_000 + 1);
        let error = mooncake(&late).unwrap_err();
        assert!(error.starts_with("trace:1: timestamp: must be at most"), "{error}");
        assert!(mooncake(&line(u64::MAX)).is_err());
    }

    #[test]
    fn a_missing_file_is_named() {
        let missing =
            TraceConfig { path: "no-such-trace.jsonl".into(), ..config(TraceFormat::Mooncake) };
        let error = read(&missing, Path::new("folder")).unwrap_err().to_string();
        assert!(error.starts_with("folder/no-such-trace.jsonl: "), "{error}");
    }
}
