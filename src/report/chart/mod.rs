//! Charts over plain data, drawn with plotters as SVG and PNG.
//!
//! A chart kind is one file: a struct of plain data that knows its size and draws itself with a
//! [`Pen`]. Text is measured with the font that is compiled in, so that nothing is cut off and no
//! system font is needed; SVG names only the family, whose usual fonts are narrower.
//!
//! The colours of [`THEME`] are used for nothing but text, lines and background, so that a dark
//! page can exchange them by a style sheet.

use std::path::Path;

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::style::RGBColor;
use plotters::style::colors::colormaps::{ColorMap, ViridisRGB};

use super::csv::Csv;
use pen::{SMALL_STRONG, fonts};

pub mod amounts;
pub mod bars;
pub mod distribution;
pub mod heat_map;
pub mod lines;
pub mod multiples;
mod pen;
mod scale;

pub(crate) use pen::{Area, PLAIN, QUIET, STRONG};
pub use pen::{Head, Pen};

/// Text and strong lines.
pub(crate) const INK: RGBColor = RGBColor(0x20, 0x24, 0x2a);
/// Secondary text and hatching.
pub(crate) const FAINT: RGBColor = RGBColor(0x5c, 0x64, 0x70);
/// Grid lines.
pub(crate) const GRID: RGBColor = RGBColor(0xd4, 0xd8, 0xde);
/// The background.
pub(crate) const PAPER: RGBColor = RGBColor(0xfe, 0xfe, 0xfe);
/// The colours that a page may exchange, by the names that its style sheet has for them.
pub const THEME: [(&str, RGBColor); 4] =
    [("INK", INK), ("FAINT", FAINT), ("GRID", GRID), ("PAPER", PAPER)];
/// Text on light colours, whatever the page's theme.
const BLACK: RGBColor = RGBColor(0, 0, 0);
/// Text on dark colours, whatever the page's theme.
const WHITE: RGBColor = RGBColor(0xff, 0xff, 0xff);

/// Height of a line of text, in pixels.
pub(crate) const LINE: i32 = 20;
/// Space around a chart, in pixels.
pub(crate) const MARGIN: i32 = 12;
/// A bitmap's pixels for every pixel of the layout, so that it stays sharp in print.
const BITMAP_SCALE: i32 = 2;

/// Why a chart could not be drawn or written.
#[derive(Debug, thiserror::Error)]
#[error("chart: {0}")]
pub struct ChartError(String);

impl<E: std::error::Error + Send + Sync> From<plotters::drawing::DrawingAreaErrorKind<E>>
    for ChartError
{
    fn from(error: plotters::drawing::DrawingAreaErrorKind<E>) -> ChartError {
        ChartError(error.to_string())
    }
}

/// Something that can be drawn.
pub trait Drawing {
    /// Width and height in pixels.
    fn size(&self) -> (i32, i32);
    /// Draws it, within its size.
    fn draw<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError>;
}

/// A kind of chart.
pub trait Chart: Drawing {
    /// The title and subtitle above it.
    fn head(&self) -> &Head;
    /// The numbers that it shows, unrounded.
    fn csv(&self) -> Csv;
    /// The same chart laid out for a narrow screen; `None` if this layout fits one.
    fn narrow(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// The widest chart, in pixels, that needs no second layout for narrow screens: shrunk to a screen
/// of 400 pixels, its text is still ten pixels high.
const NARROW: i32 = 500;

/// The drawing as the text of an SVG file.
pub fn svg(chart: &impl Drawing) -> Result<String, ChartError> {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, pixels(chart, 1)).into_drawing_area();
    paint(chart, area, 1)?;
    Ok(text)
}

/// Writes the chart as a PNG file of twice its size.
pub fn png(chart: &impl Drawing, path: &Path) -> Result<(), ChartError> {
    let area = BitMapBackend::new(path, pixels(chart, BITMAP_SCALE)).into_drawing_area();
    paint(chart, area, BITMAP_SCALE)
}

fn pixels(chart: &impl Drawing, scale: i32) -> (u32, u32) {
    fonts();
    let (width, height) = chart.size();
    ((width * scale).cast_unsigned(), (height * scale).cast_unsigned())
}

fn paint<DB: DrawingBackend>(
    chart: &impl Drawing,
    area: DrawingArea<DB, Shift>,
    scale: i32,
) -> Result<(), ChartError> {
    area.fill(&PAPER)?;
    let pen = Pen::new(area, scale);
    chart.draw(&pen)?;
    pen.present()
}

/// A distance in pixels as a `usize`, which `step_by` wants.
fn step(pixels: i32) -> usize {
    usize::try_from(pixels).expect("sizes are positive")
}

/// A colour as SVG spells it.
pub fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// The end of a scale that holds `max`: a round share of 0.01 to 1.
pub fn scale_end(max: f64) -> f64 {
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].into_iter().find(|&end| max <= end).unwrap_or(1.0)
}

/// The end of an axis that holds any `max`: 1, 2 or 5 times a power of ten.
pub fn axis_end(max: f64) -> f64 {
    if max <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(max.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|step| step * power)
        .find(|&end| max <= end)
        .unwrap_or(10.0 * power)
}

// Okabe and Ito's colours, which the colour-blind tell apart.
pub(crate) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
pub(crate) const VERMILION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
pub(crate) const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
pub(crate) const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);
pub(crate) const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
pub(crate) const SKY: RGBColor = RGBColor(0x56, 0xb4, 0xe9);

/// The colours of bars and lines: all but the yellow, which does not show on white.
const PALETTE: [RGBColor; 6] = [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY];

/// The colour of a share of the scale: viridis from light to dark, which is told apart without
/// seeing hues.
fn color(share: f64) -> RGBColor {
    ViridisRGB.get_color_normalized(1.0 - share, 0.0, 1.0)
}

/// Black or white, whichever stands out more: the contrasts are equal at a luminance of 0.179.
pub(crate) fn label_color(background: RGBColor) -> RGBColor {
    let linear = |channel: u8| {
        let value = f64::from(channel) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    let RGBColor(red, green, blue) = background;
    let luminance = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    if luminance > 0.179 { BLACK } else { WHITE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_the_next_round_share() {
        for (max, end) in [(0.0, 0.01), (0.01, 0.01), (0.03, 0.05), (0.51, 1.0), (1.0, 1.0)] {
            assert_eq!(scale_end(max), end);
        }
    }

    #[test]
    fn axes_end_at_the_next_round_number() {
        for (max, end) in [(0.0, 1.0), (0.3, 0.5), (1.0, 1.0), (7.0, 10.0), (1_200.0, 2_000.0)] {
            assert!((axis_end(max) - end).abs() < 1e-9, "{max}");
        }
    }

    #[test]
    fn labels_are_dark_on_light_and_light_on_dark() {
        assert_eq!(label_color(color(0.0)), BLACK);
        assert_eq!(label_color(color(1.0)), WHITE);
    }
}
