//! What pages are made of: head, notes, sections, tables.

use std::fmt::Write;

use super::markup::{STYLE, escape};

/// A page under construction: opens without a network, in light and dark. All text is escaped
/// here, except blocks, which are HTML already.
#[derive(Debug)]
pub struct Page {
    html: String,
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
        Page {
            html: format!(
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
                 <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
                 <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
                 <header><h1>{title}{partial}</h1><p>{facts}</p></header>\n"
            ),
        }
    }

    /// A remark that a reader must not miss; `bad` stands out.
    pub fn note(&mut self, text: &str, bad: bool) {
        let class = if bad { "note bad" } else { "note" };
        let _ = writeln!(self.html, "<p class=\"{class}\">{}</p>", escape(text));
    }

    /// A section with its blocks, which are HTML as [`table`] and [`Plot`](super::Plot) give it.
    pub fn section(&mut self, title: &str, blocks: &[String]) {
        let _ = writeln!(self.html, "<section><h2>{}</h2>", escape(title));
        blocks.iter().for_each(|block| self.html.push_str(block));
        self.html.push_str("</section>\n");
    }

    /// The finished page.
    pub fn finish(mut self) -> String {
        self.html.push_str("</body>\n</html>\n");
        self.html
    }
}

/// A table whose cells are plain text (escaped here); the first column is text, the rest numbers.
/// Empty without rows.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut html = String::from("<div class=\"scroll\"><table><thead><tr>");
    for cell in header {
        let _ = write!(html, "<th>{}</th>", escape(cell));
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for cell in row {
            let _ = write!(html, "<td>{}</td>", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}
