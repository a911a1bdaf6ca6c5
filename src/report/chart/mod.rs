//! Charts over plain data, drawn with plotters as SVG and PNG.
//!
//! A chart kind is one file: a struct of plain data that knows its size and draws itself with a
//! [`Pen`]. Text is measured with the font that is compiled in, so that nothing is cut off and no
//! system font is needed; SVG names only the family, whose usual fonts are narrower.
//!
//! The colours of [`THEME`] are used for nothing but text, lines and background, so that a dark page
//! can exchange them by a style sheet.

use std::path::Path;
use std::sync::Once;

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::colors::colormaps::{ColorMap, ViridisRGB};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle,
    register_font,
};

use crate::stats::Rate;

pub mod bars;
pub mod heat_map;

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

/// Height of ordinary text; as SVG's `font-size` it is 13 to 14 pixels.
const TEXT: i32 = 17;
/// Height of secondary text.
const SMALL: i32 = 15;
/// Height of a chart's title.
const TITLE: i32 = 19;
/// Distance of lines of text.
pub(crate) const LINE: i32 = 20;
/// Space around a chart.
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

/// What a place of a chart shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Hits out of chances; without chances it was not reached.
    Share(Rate),
    /// It cannot be run.
    Impossible,
    /// None of its runs is done yet.
    NotRun,
}

/// A kind of chart.
pub trait Chart {
    /// Width and height in pixels.
    fn size(&self) -> (i32, i32);
    /// Draws it, within its size.
    fn draw<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError>;
}

/// The chart as the text of an SVG file.
pub fn svg(chart: &impl Chart) -> Result<String, ChartError> {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, pixels(chart, 1)).into_drawing_area();
    paint(chart, area, 1)?;
    Ok(text)
}

/// Writes the chart as a PNG file of twice its size.
pub fn png(chart: &impl Chart, path: &Path) -> Result<(), ChartError> {
    let area = BitMapBackend::new(path, pixels(chart, BITMAP_SCALE)).into_drawing_area();
    paint(chart, area, BITMAP_SCALE)
}

fn pixels(chart: &impl Chart, scale: i32) -> (u32, u32) {
    fonts();
    let (width, height) = chart.size();
    ((width * scale).cast_unsigned(), (height * scale).cast_unsigned())
}

fn paint<DB: DrawingBackend>(
    chart: &impl Chart,
    area: DrawingArea<DB, Shift>,
    scale: i32,
) -> Result<(), ChartError> {
    area.fill(&PAPER)?;
    let pen = Pen { area, scale };
    chart.draw(&pen)?;
    pen.area.present()?;
    Ok(())
}

/// Registers the compiled-in font, once.
fn fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let fonts =
            [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())];
        for (style, bytes) in fonts {
            let registered = register_font(FontFamily::SansSerif.as_str(), style, bytes);
            assert!(registered.is_ok(), "the compiled-in font is a font");
        }
    });
}

/// How a text looks.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    size: i32,
    bold: bool,
    color: RGBColor,
}

pub(crate) const PLAIN: Style = Style { size: TEXT, bold: false, color: INK };
pub(crate) const QUIET: Style = Style { size: SMALL, bold: false, color: FAINT };
pub(crate) const STRONG: Style = Style { size: TEXT, bold: true, color: INK };
const HEAD: Style = Style { size: TITLE, bold: true, color: INK };

impl Style {
    fn font(self, scale: i32) -> FontDesc<'static> {
        let style = if self.bold { FontStyle::Bold } else { FontStyle::Normal };
        FontDesc::new(FontFamily::SansSerif, f64::from(self.size * scale), style)
    }

    pub(crate) fn of(self, color: RGBColor) -> Style {
        Style { color, ..self }
    }

    /// How wide a text is.
    pub(crate) fn width(self, text: &str) -> i32 {
        fonts();
        let size = self.font(1).box_size(text);
        let (width, _) = size.expect("the compiled-in font has been registered");
        width.cast_signed()
    }

    fn width_max(self, texts: &[String]) -> i32 {
        texts.iter().map(|text| self.width(text)).max().unwrap_or(0)
    }

    /// Lines of at most `width`, broken between words.
    pub(crate) fn wrap(self, text: &str, width: i32) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match lines.last_mut() {
                Some(line) if self.width(&format!("{line} {word}")) <= width => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines
    }
}

/// A rectangle of the layout.
#[derive(Clone, Copy)]
pub(crate) struct Area {
    pub(crate) x: i32,
    pub(crate) y: i32,
    pub(crate) width: i32,
    pub(crate) height: i32,
}

impl Area {
    pub(crate) fn centre(self) -> (i32, i32) {
        (self.x + self.width / 2, self.y + self.height / 2)
    }
}

/// Draws in pixels of the layout.
pub struct Pen<DB: DrawingBackend> {
    area: DrawingArea<DB, Shift>,
    scale: i32,
}

impl<DB: DrawingBackend> Pen<DB> {
    fn scaled(&self, (x, y): (i32, i32)) -> (i32, i32) {
        (x * self.scale, y * self.scale)
    }

    /// A text whose point `at` lies at its left, centre or right, and at half its height.
    pub(crate) fn text(
        &self,
        text: &str,
        at: (i32, i32),
        h: HPos,
        style: Style,
    ) -> Result<(), ChartError> {
        let look = TextStyle::from(style.font(self.scale))
            .color(&style.color)
            .pos(Pos::new(h, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), self.scaled(at), look))?;
        Ok(())
    }

    /// A text that is read upwards, centred on `at` and beginning there.
    fn text_upwards(&self, text: &str, at: (i32, i32), style: Style) -> Result<(), ChartError> {
        let font = style.font(self.scale).transform(FontTransform::Rotate270);
        let look =
            TextStyle::from(font).color(&style.color).pos(Pos::new(HPos::Left, VPos::Center));
        self.area.draw(&Text::new(text.to_owned(), self.scaled(at), look))?;
        Ok(())
    }

    pub(crate) fn fill(&self, area: Area, color: RGBColor) -> Result<(), ChartError> {
        self.rectangle(area, color.filled())
    }

    pub(crate) fn outline(&self, area: Area, color: RGBColor) -> Result<(), ChartError> {
        self.rectangle(area, color.stroke_width(self.scale.cast_unsigned()))
    }

    fn rectangle(&self, area: Area, style: ShapeStyle) -> Result<(), ChartError> {
        let corners = [
            self.scaled((area.x, area.y)),
            self.scaled((area.x + area.width, area.y + area.height)),
        ];
        self.area.draw(&Rectangle::new(corners, style))?;
        Ok(())
    }

    pub(crate) fn line(
        &self,
        from: (i32, i32),
        to: (i32, i32),
        color: RGBColor,
    ) -> Result<(), ChartError> {
        let style = color.stroke_width(self.scale.cast_unsigned());
        let points = vec![self.scaled(from), self.scaled(to)];
        self.area.draw(&PathElement::new(points, style))?;
        Ok(())
    }

    /// A dotted border, for what has not been run yet.
    pub(crate) fn dotted(&self, area: Area) -> Result<(), ChartError> {
        const DOT: i32 = 2;
        const STEP: usize = 6;
        let (right, foot) = (area.x + area.width - DOT, area.y + area.height - DOT);
        let dot = |x, y| self.fill(Area { x, y, width: DOT, height: DOT }, FAINT);
        for x in (area.x..=right).step_by(STEP) {
            dot(x, area.y)?;
            dot(x, foot)?;
        }
        for y in (area.y..=foot).step_by(STEP) {
            dot(area.x, y)?;
            dot(right, y)?;
        }
        Ok(())
    }

    /// Rising lines, for what was not reached; falling ones, too, for what is impossible.
    pub(crate) fn hatch(&self, area: Area, crossed: bool) -> Result<(), ChartError> {
        const STEP: i32 = 8;
        let Area { x, y, width, height } = area;
        for d in (STEP..width + height).step_by(STEP as usize) {
            let (left, right) = ((d - height).max(0), d.min(width));
            let (low, high) = (d.min(height), (d - width).max(0));
            self.line((x + left, y + low), (x + right, y + high), FAINT)?;
            if crossed {
                let (from, to) = ((x + left, y + height - low), (x + right, y + height - high));
                self.line(from, to, FAINT)?;
            }
        }
        self.outline(area, FAINT)
    }

    /// The title and the lines below it, from the top; answers where they end.
    pub(crate) fn head(&self, head: &Head, width: i32) -> Result<i32, ChartError> {
        let mut y = MARGIN + LINE / 2;
        for (line, style) in head.lines(width) {
            self.text(&line, (MARGIN, y), HPos::Left, style)?;
            y += LINE;
        }
        Ok(head.height(width))
    }
}

/// What stands above a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// What is shown.
    pub title: String,
    /// Of what, and in which unit.
    pub subtitle: String,
}

impl Head {
    pub(crate) fn lines(&self, width: i32) -> Vec<(String, Style)> {
        let room = width - 2 * MARGIN;
        let title = HEAD.wrap(&self.title, room).into_iter();
        let subtitle = QUIET.wrap(&self.subtitle, room).into_iter();
        let title = title.map(|line| (line, HEAD));
        title.chain(subtitle.map(|line| (line, QUIET))).collect()
    }

    pub(crate) fn height(&self, width: i32) -> i32 {
        let lines = i32::try_from(self.lines(width).len()).expect("titles are short");
        MARGIN + LINE * lines + 8
    }
}

/// A colour as SVG spells it.
pub fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

/// The end of a scale that holds `max`: a round share of 0.01 to 1.
pub fn scale_end(max: f64) -> f64 {
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].into_iter().find(|&end| max <= end).unwrap_or(1.0)
}

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
    fn labels_are_dark_on_light_and_light_on_dark() {
        assert_eq!(label_color(color(0.0)), BLACK);
        assert_eq!(label_color(color(1.0)), WHITE);
    }

    #[test]
    fn wrapped_lines_keep_every_word_and_the_width() {
        let text = "a title that is far too long for one line of a hundred and fifty pixels";
        let lines = PLAIN.wrap(text, 150);
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| PLAIN.width(line) <= 150));
        assert_eq!(lines.join(" "), text);
    }
}
