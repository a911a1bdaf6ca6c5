//! The pen: texts, lines and areas in pixels of the layout, whatever the picture's scale.

use std::sync::Once;

use plotters::backend::DrawingBackend;
use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::element::{PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, FontTransform, RGBColor, ShapeStyle, TextStyle,
    register_font,
};

use super::{ChartError, FAINT, INK, LINE, MARGIN};

/// Height of ordinary text; as SVG's `font-size` it is 13 to 14 pixels.
const TEXT: i32 = 17;
/// Height of secondary text.
const SMALL: i32 = 15;
/// Height of a chart's title.
const TITLE: i32 = 19;

/// Registers the compiled-in font, once.
pub(crate) fn fonts() {
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
/// What compact cells show.
pub(crate) const SMALL_STRONG: Style = Style { size: SMALL, bold: true, color: INK };
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

    pub(crate) fn width_max(self, texts: &[String]) -> i32 {
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
    origin: (i32, i32),
}

impl<DB: DrawingBackend> Pen<DB> {
    /// A pen for an area that has `scale` pixels for each pixel of the layout.
    pub(crate) fn new(area: DrawingArea<DB, Shift>, scale: i32) -> Pen<DB> {
        Pen { area, scale, origin: (0, 0) }
    }

    /// The same pen with its origin moved to `origin`.
    pub(crate) fn at(&self, (x, y): (i32, i32)) -> Pen<DB> {
        let (left, top) = self.origin;
        Pen { area: self.area.clone(), scale: self.scale, origin: (left + x, top + y) }
    }

    /// Ends the picture.
    pub(crate) fn present(&self) -> Result<(), ChartError> {
        Ok(self.area.present()?)
    }

    fn scaled(&self, (x, y): (i32, i32)) -> (i32, i32) {
        let (left, top) = self.origin;
        ((left + x) * self.scale, (top + y) * self.scale)
    }

    /// A text. `at` is the point at half its height, at its left end, centre or right end.
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

    /// A text that is read upwards: it begins at `at`, which lies on the middle of its line.
    pub(crate) fn text_upwards(
        &self,
        text: &str,
        at: (i32, i32),
        style: Style,
    ) -> Result<(), ChartError> {
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

    /// A line through several points, thick enough to be followed.
    pub(crate) fn path(&self, points: &[(i32, i32)], color: RGBColor) -> Result<(), ChartError> {
        let style = color.stroke_width(2 * self.scale.cast_unsigned());
        let points: Vec<_> = points.iter().map(|&at| self.scaled(at)).collect();
        self.area.draw(&PathElement::new(points, style))?;
        Ok(())
    }

    /// A filled shape with these corners.
    pub(crate) fn polygon(&self, points: &[(i32, i32)], color: RGBColor) -> Result<(), ChartError> {
        let points: Vec<_> = points.iter().map(|&at| self.scaled(at)).collect();
        self.area.draw(&Polygon::new(points, color.filled()))?;
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

    /// Hatching: rising lines for what was not reached, also falling ones for what is impossible.
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

    /// Draws the title and the lines below it, from the top. Returns how far down they reach.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_keep_every_word_and_the_width() {
        let text = "a title that is far too long for one line of a hundred and fifty pixels";
        let lines = PLAIN.wrap(text, 150);
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| PLAIN.width(line) <= 150));
        assert_eq!(lines.join(" "), text);
    }
}
