//! *Rows*: a table of a page, which becomes a list of cards on narrow screens. Every cell carries
//! the name of its column for that.

use maud::{Markup, html};

/// A table.
pub(super) struct Rows {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

struct Row {
    fields: Vec<Field>,
    /// What stands below the fields, through all columns.
    below: Option<Markup>,
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

    /// A column of words.
    pub(super) fn text(title: &str) -> Column {
        Column { title: title.to_owned(), kind: Kind::Text }
    }

    /// A column of numbers.
    pub(super) fn number(title: &str) -> Column {
        Column { title: title.to_owned(), kind: Kind::Number }
    }
}

/// A cell: markup, over one or more columns.
pub(super) struct Field {
    html: Markup,
    columns: usize,
}

impl Field {
    /// A cell of plain text.
    pub(super) fn text(text: &str) -> Field {
        Field::html(html! { (text) })
    }

    /// A cell of any markup.
    pub(super) fn html(html: Markup) -> Field {
        Field { html, columns: 1 }
    }

    /// The same cell over this many columns; it then carries the name of none.
    pub(super) fn over(self, columns: usize) -> Field {
        Field { columns, ..self }
    }
}

impl Column {
    fn class(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Name | Kind::Text => None,
            Kind::Number => Some("number"),
        }
    }
}

impl Rows {
    /// A table without rows.
    pub(super) fn new(columns: Vec<Column>) -> Rows {
        Rows { columns, rows: Vec::new() }
    }

    /// Adds a row, with a line of markup below that goes through all columns.
    pub(super) fn add(&mut self, fields: Vec<Field>, below: Option<Markup>) {
        self.rows.push(Row { fields, below });
    }

    /// The whole table.
    pub(super) fn html(&self) -> Markup {
        html! {
            div.wide tabindex="0" {
                table {
                    thead {
                        tr {
                            @for column in &self.columns {
                                th scope="col" class=[column.class()] { (column.title) }
                            }
                        }
                    }
                    @for Row { fields, below } in &self.rows {
                        tbody {
                            tr { (self.fields(fields)) }
                            @if let Some(below) = below {
                                tr { td.below colspan=(self.columns.len()) { (below) } }
                            }
                        }
                    }
                }
            }
        }
    }

    fn fields(&self, fields: &[Field]) -> Markup {
        let first = fields.iter().scan(0, |next, field| {
            *next += field.columns;
            Some(*next - field.columns)
        });
        html! {
            @for (column, Field { html, columns }) in first.zip(fields) {
                @let column = &self.columns[column];
                @if *columns > 1 {
                    td colspan=(columns) { (html) }
                } @else if column.kind == Kind::Name {
                    th scope="row" data-name=(column.title) { (html) }
                } @else {
                    td class=[column.class()] data-name=(column.title) { (html) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_names_its_column_but_those_that_are_of_several() {
        let mut rows =
            Rows::new(vec![Column::name("a<"), Column::number("n"), Column::text("why")]);
        rows.add(
            vec![Field::text("<x>"), Field::text("1"), Field::text("y")],
            Some(html! { i { "z" } }),
        );
        rows.add(vec![Field::text("w"), Field::html(html! { b { "0" } }).over(2)], None);
        let html = rows.html().into_string();
        for view in [
            "<th scope=\"col\">a&lt;</th><th scope=\"col\" class=\"number\">n</th>",
            "<tr><th scope=\"row\" data-name=\"a&lt;\">&lt;x&gt;</th>",
            "<td class=\"number\" data-name=\"n\">1</td><td data-name=\"why\">y</td></tr>",
            "<td class=\"below\" colspan=\"3\"><i>z</i></td></tr></tbody>",
            "<th scope=\"row\" data-name=\"a&lt;\">w</th><td colspan=\"2\"><b>0</b></td></tr>",
        ] {
            assert!(html.contains(view), "{view}: {html}");
        }
    }
}
