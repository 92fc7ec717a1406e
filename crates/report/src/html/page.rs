//! The parts of pages: head, notes, sections, tables.

use std::fmt::Write;

use super::markup::{STYLE, escape};
use super::zoom::with_zoom;

/// The script that sorts the tables of [`Page::sortable`]. A page has it once.
const SORT: &str = include_str!("sort.js");

/// A page under construction: opens without a network, in light and dark. All text is escaped
/// here, except blocks, which are HTML already.
#[derive(Debug)]
pub struct Page {
    html: String,
    /// Whether a table needs the script that sorts.
    sorts: bool,
}

impl Page {
    /// A page with its title and a line of facts below it.
    pub fn new(title: &str, partial: bool, facts: &[String]) -> Page {
        let title = escape(title);
        let facts = facts.iter().map(|fact| escape(fact)).collect::<Vec<_>>().join(" · ");
        let partial = match partial {
            true => " <span class=\"badge\">partial: it was cut short</span>",
            false => "",
        };
        let html = begin(&title, &format!("{title}{partial}"), &facts);
        Page { sorts: false, html }
    }

    /// A remark that a reader must not miss; `bad` stands out.
    pub fn note(&mut self, text: &str, bad: bool) {
        let class = if bad { "note bad" } else { "note" };
        let _ = writeln!(self.html, "<p class=\"{class}\">{}</p>", escape(text));
    }

    /// A section with its blocks, which are HTML as [`table`] and [`Plot`](super::Plot) give it.
    pub fn section(&mut self, title: &str, blocks: &[String]) {
        let (id, title) = (anchor(title), escape(title));
        let _ = writeln!(self.html, "<section id=\"{id}\"><h2>{title}</h2>");
        blocks.iter().for_each(|block| self.html.push_str(block));
        self.html.push_str("</section>\n");
    }

    /// A section with a table of many rows, which a reader can sort by each column and filter by words.
    pub fn sortable(&mut self, title: &str, header: &[&str], rows: &[Vec<String>]) {
        let table = table(header, rows);
        self.sorts |= !table.is_empty();
        self.section(title, &[format!("<div class=\"sortable\">{table}</div>\n")]);
    }

    /// The finished page.
    pub fn finish(mut self) -> String {
        if self.sorts {
            let _ = write!(self.html, "<script>\n{SORT}</script>\n");
        }
        finished(self.html)
    }
}

/// The begin of a page. All arguments are HTML.
pub(super) fn begin(title: &str, heading: &str, facts: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{heading}</h1><p>{facts}</p></header>\n"
    )
}

/// The page with its end, with charts that can be enlarged, and with links to its sections.
pub(super) fn finished(html: String) -> String {
    with_contents(with_zoom(&(html + "</body>\n</html>\n")))
}

/// The anchor of the section `title`: `p99 over time` is `p99-over-time`.
fn anchor(title: &str) -> String {
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_lowercase()
}

/// The page with links to its sections before the first one. A page is long: on a phone some thirty screens, and a
/// screen reader would have to read up to what its user looks for.
fn with_contents(page: String) -> String {
    const SECTION: &str = "<section id=\"";
    let Some(first) = page.find(SECTION) else { return page };
    let links: Vec<String> = page[first..]
        .split(SECTION)
        .filter_map(|section| {
            let (id, rest) = section.split_once("\"><h2>")?;
            let (title, _) = rest.split_once("</h2>")?;
            Some(format!("<a href=\"#{id}\">{title}</a>"))
        })
        .collect();
    // Fewer are seen at one glance.
    if links.len() < 4 {
        return page;
    }
    let contents = format!("<nav aria-label=\"Contents\">{}</nav>\n", links.join("\n"));
    format!("{}{contents}{}", &page[..first], &page[first..])
}

/// The [`table`] of `rows`, the first of which is the header.
pub(super) fn table_of(rows: &[Vec<String>]) -> String {
    let Some((header, rows)) = rows.split_first() else { return String::new() };
    table(&header.iter().map(String::as_str).collect::<Vec<_>>(), rows)
}

/// A table whose cells are plain text (escaped here); the first column is text, the rest numbers.
/// Empty without rows.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
    for cell in header {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(cell));
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            // The first column says what a row is about: a screen reader repeats it with each of its numbers.
            let _ = match column {
                0 => write!(html, "<th scope=\"row\">{cell}</th>"),
                _ => write!(html, "<td>{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_section_has_a_link() {
        let mut page = Page::new("a", false, &[]);
        for title in ["Latency & rate", "p99 over time", "Flash", "Notes"] {
            page.section(title, &["<p>x</p>".to_owned()]);
        }
        let html = page.finish();
        let nav = &html[html.find("<nav").unwrap()..html.find("</nav>").unwrap()];
        assert_eq!(nav.matches("<a href").count(), 4);
        for id in ["latency-rate", "p99-over-time", "flash", "notes"] {
            assert!(nav.contains(&format!("href=\"#{id}\"")), "{nav}");
            assert_eq!(html.matches(&format!("<section id=\"{id}\">")).count(), 1);
        }
        assert!(html.find("</nav>").unwrap() < html.find("<section").unwrap());
        // A short page has none.
        let mut short = Page::new("a", false, &[]);
        short.section("Notes", &[]);
        assert!(!short.finish().contains("<nav"));
    }

    #[test]
    fn cells_of_a_table_have_their_headings() {
        let html = table(&["figure", "value"], &[vec!["IOPS".to_owned(), "1 < 2".to_owned()]]);
        assert!(html.contains("<th scope=\"col\">value</th>"));
        assert!(html.contains("<th scope=\"row\">IOPS</th><td>1 &lt; 2</td>"));
    }
}
