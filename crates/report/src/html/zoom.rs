//! Charts that can be enlarged over the page.

use std::fmt::Write;

const PICTURE: &str = "<svg ";
const PICTURE_END: &str = "</svg>";
const CAPTION_END: &str = "</figcaption>";

/// The page with a button in the caption of each chart, which shows it over the whole page; Esc, a click elsewhere or the button
/// closes it.
///
/// Browsers do all of it (`popover`), so that the page needs no script: where it is served, scripts of its own are
/// forbidden. The enlarged picture refers to the same picture instead of a copy, which would double the size of the
/// page.
pub(super) fn with_zoom(page: &str) -> String {
    let mut figures = page.split("<figure");
    let mut html = figures.next().unwrap_or_default().to_owned();
    for (number, figure) in figures.enumerate() {
        html.push_str("<figure");
        if enlarged(&mut html, number, figure).is_none() {
            html.push_str(figure);
        }
    }
    html
}

/// One chart and what follows it; `None` where it has no caption or no picture.
fn enlarged(html: &mut String, number: usize, figure: &str) -> Option<()> {
    let (caption, rest) = figure.split_once(CAPTION_END)?;
    let (_, words) = caption.split_once("<figcaption>")?;
    let (between, rest) = rest.split_once(PICTURE)?;
    let (attributes, rest) = rest.split_once('>')?;
    let (picture, rest) = rest.split_once(PICTURE_END)?;
    let _ = write!(
        html,
        "{caption} <button type=\"button\" class=\"enlarge\" popovertarget=\"zoom-{number}\" aria-label=\"Enlarge this chart\" \
         title=\"Enlarge\">⤢</button>{CAPTION_END}{between}{PICTURE}{attributes}><g id=\"chart-{number}\">{picture}</g>{PICTURE_END}\
         <div class=\"zoom\" id=\"zoom-{number}\" popover=\"auto\"><p>{words}</p>{PICTURE}{attributes}>\
         <use href=\"#chart-{number}\"/>{PICTURE_END}<button type=\"button\" popovertarget=\"zoom-{number}\" \
         popovertargetaction=\"hide\">Close</button></div>{rest}"
    );
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chart_is_shown_twice_and_drawn_once() {
        let chart = |title: &str| {
            format!(
                "<figure class=\"wide\"><figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 9 9\"><path d=\"M0 0\"/></svg></figure>"
            )
        };
        let page = format!("<p>a</p>{}<p>b</p>{}<p>c</p>", chart("one"), chart("two"));
        let html = with_zoom(&page);
        roxmltree::Document::parse(&format!("<x>{html}</x>")).unwrap();
        assert_eq!(html.matches("<path").count(), 2);
        for number in [0, 1] {
            for part in [
                "popovertarget=\"zoom-N\"",
                "id=\"zoom-N\"",
                "<g id=\"chart-N\">",
                "href=\"#chart-N\"",
            ] {
                let part = part.replace('N', &number.to_string());
                assert!(html.contains(&part), "{part}: {html}");
            }
        }
        assert!(html.starts_with("<p>a</p>") && html.ends_with("</figure><p>c</p>"));
        // Nothing to enlarge, nothing changed.
        for plain in ["<p>a</p>", "<figure><figcaption>x</figcaption></figure>"] {
            assert_eq!(with_zoom(plain), plain);
        }
    }
}
