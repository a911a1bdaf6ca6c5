//! *Rows*: a table of a page, which becomes a list of cards on narrow screens. Every cell carries the
//! name of its column for that.

use crate::report::html::escape;

/// A table while it is written.
pub(super) struct Rows {
    columns: Vec<Column>,
    html: String,
}

/// A column.
pub(super) struct Column {
    title: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Text,
    Number,
}

impl Column {
    /// What tells the rows apart.
    pub(super) fn name(title: &str) -> Column {
        Column { title: title.to_owned(), kind: Kind::Name }
    }

    /// Anything in words.
    pub(super) fn text(title: &str) -> Column {
        Column { title: title.to_owned(), kind: Kind::Text }
    }

    /// Numbers.
    pub(super) fn number(title: &str) -> Column {
        Column { title: title.to_owned(), kind: Kind::Number }
    }
}

/// A cell: markup, over one or more columns.
pub(super) struct Field {
    html: String,
    columns: usize,
}

impl Field {
    /// A text.
    pub(super) fn text(text: &str) -> Field {
        Field::html(escape(text))
    }

    /// Markup.
    pub(super) fn html(html: String) -> Field {
        Field { html, columns: 1 }
    }

    /// The same over so many columns, which it then does not belong to.
    pub(super) fn over(self, columns: usize) -> Field {
        Field { columns, ..self }
    }
}

impl Rows {
    /// A table without rows.
    pub(super) fn new(columns: Vec<Column>) -> Rows {
        let mut html = String::from("<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>");
        for column in &columns {
            let class = if column.kind == Kind::Number { " class=\"number\"" } else { "" };
            html += &format!("<th scope=\"col\"{class}>{}</th>", escape(&column.title));
        }
        html += "</tr></thead>\n";
        Rows { columns, html }
    }

    /// Adds a row, with a line of markup below that goes through all columns.
    pub(super) fn add(&mut self, fields: Vec<Field>, below: Option<&str>) {
        self.html += "<tbody><tr>";
        let mut column = 0;
        for field in fields {
            let Column { title, kind } = &self.columns[column];
            column += field.columns;
            let Field { html, columns } = field;
            if columns > 1 {
                self.html += &format!("<td colspan=\"{columns}\">{html}</td>");
                continue;
            }
            let title = escape(title);
            let (tag, class) = match kind {
                Kind::Name => ("th scope=\"row\"", ""),
                Kind::Text => ("td", ""),
                Kind::Number => ("td", " class=\"number\""),
            };
            let end = &tag[..2];
            self.html += &format!("<{tag}{class} data-name=\"{title}\">{html}</{end}>");
        }
        if let Some(below) = below {
            let all = self.columns.len();
            self.html += &format!("</tr>\n<tr><td class=\"below\" colspan=\"{all}\">{below}</td>");
        }
        self.html += "</tr></tbody>\n";
    }

    /// The whole table.
    pub(super) fn html(self) -> String {
        self.html + "</table></div>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_names_its_column_but_those_that_are_of_several() {
        let mut rows =
            Rows::new(vec![Column::name("a<"), Column::number("n"), Column::text("why")]);
        rows.add(vec![Field::text("<x>"), Field::text("1"), Field::text("y")], Some("<i>z</i>"));
        rows.add(vec![Field::text("w"), Field::html("<b>0</b>".to_owned()).over(2)], None);
        let html = rows.html();
        for part in [
            "<th scope=\"col\">a&lt;</th><th scope=\"col\" class=\"number\">n</th>",
            "<tr><th scope=\"row\" data-name=\"a&lt;\">&lt;x&gt;</th>",
            "<td class=\"number\" data-name=\"n\">1</td><td data-name=\"why\">y</td></tr>",
            "<td class=\"below\" colspan=\"3\"><i>z</i></td></tr></tbody>",
            "<th scope=\"row\" data-name=\"a&lt;\">w</th><td colspan=\"2\"><b>0</b></td></tr>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
    }
}
