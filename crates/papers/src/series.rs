//! Figures with a table: what is drawn of each point, and more figures of the same points.

use crate::chart::{Bar, Line};
use crate::mean::{Mean, shown};
use crate::measured::{Measured, Point};

/// A figure of points, and its column in the table.
pub(crate) struct Column<P> {
    /// Its heading, with the unit.
    head: &'static str,
    /// How many digits the table has.
    digits: usize,
    of: fn(&Measured<P>, &P) -> Option<Mean>,
}

impl<P> Column<P> {
    pub(crate) const fn new(
        head: &'static str,
        digits: usize,
        of: fn(&Measured<P>, &P) -> Option<Mean>,
    ) -> Column<P> {
        Column { head, digits, of }
    }
}

/// A line, with its values in each column.
struct Drawn {
    label: String,
    dashed: bool,
    values: Vec<Vec<Option<f64>>>,
}

/// Points in the order of the table, which lines or bars are drawn of.
pub(crate) struct Series<'a, P: 'static> {
    measured: &'a Measured<P>,
    columns: &'static [Column<P>],
    lines: Vec<Drawn>,
    /// Of the first column.
    pub(crate) bars: Vec<Bar>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl<'a, P: Point> Series<'a, P> {
    pub(crate) fn new(measured: &'a Measured<P>, columns: &'static [Column<P>]) -> Series<'a, P> {
        Series { measured, columns, lines: Vec::new(), bars: Vec::new(), rows: Vec::new() }
    }

    /// Adds the row of `point`, whose first cells are `names`; gives its figures.
    fn row(&mut self, names: Vec<String>, point: &P) -> Vec<Option<f64>> {
        let mean = |column: &Column<P>| (column.of)(self.measured, point);
        let means: Vec<Option<Mean>> = self.columns.iter().map(mean).collect();
        let cells = self.columns.iter().zip(&means).map(|(of, mean)| shown(*mean, of.digits));
        self.rows.push(names.into_iter().chain(cells).collect());
        means.into_iter().map(|mean| Some(mean?.mean)).collect()
    }

    /// Adds a line through the points at `places`, and a row for each: `names`, the place and the figures. A place
    /// that has no point has no row either: it would look like a run that failed.
    pub(crate) fn line<T: ToString>(
        &mut self,
        label: impl Into<String>,
        dashed: bool,
        names: &[&str],
        places: &[T],
        point: impl Fn(&T) -> Option<P>,
    ) {
        let mut values = vec![Vec::new(); self.columns.len()];
        for place in places {
            let figures = point(place).map_or_else(Vec::new, |point| {
                let names = names.iter().map(|name| (*name).to_owned());
                self.row(names.chain([place.to_string()]).collect(), &point)
            });
            for (column, line) in values.iter_mut().enumerate() {
                line.push(figures.get(column).copied().flatten());
            }
        }
        self.lines.push(Drawn { label: label.into(), dashed, values });
    }

    /// Adds a bar of the first figure of `point`, and its row.
    pub(crate) fn bar(&mut self, group: &str, label: &'static str, names: [&str; 2], point: &P) {
        let figures = self.row(names.map(str::to_owned).to_vec(), point);
        let parts = figures.first().copied().flatten().map(|figure| vec![figure]);
        self.bars.push(Bar { group: group.to_owned(), label, parts });
    }

    /// The lines of a column.
    pub(crate) fn lines(&self, column: usize) -> Vec<Line> {
        let line = |drawn: &Drawn| Line {
            label: drawn.label.clone(),
            values: drawn.values[column].clone(),
            dashed: drawn.dashed,
        };
        self.lines.iter().map(line).collect()
    }

    /// The headings of the table, `names` first.
    pub(crate) fn columns(&self, names: &[&'static str]) -> Vec<&'static str> {
        names.iter().copied().chain(self.columns.iter().map(|column| column.head)).collect()
    }
}
