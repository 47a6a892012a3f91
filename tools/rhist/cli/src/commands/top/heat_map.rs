// SPDX-License-Identifier: MIT OR Apache-2.0

//! Draws the values of one key over time: a column for each interval, darker for more values, with
//! lines for the median and the 99th percentile. Without a distribution, draws bars of rates.

use ratatui::layout::Rect;
use ratatui::style::Style;
use rhist_core::question::Reading;
use rhist_core::table::Unit;

use super::history;
use super::history::Cell;
use super::history::Moment;
use super::history::STEPS;
use super::line::Column;
use super::line::Line;
use super::number;
use super::paint::Paint;
use super::state::State;

/// Width of the labels on the left, in cells.
const MARGIN: u16 = 9;

/// Draws the values of the selected key into an area. `total` has its maximum.
pub fn draw(state: &State, total: &Reading, paint: &mut Paint, area: Rect) {
    let Some(key) = state.selected else {
        return;
    };
    let end = paint.text(area.x, area.y, area.width, state.keys.label(key), paint.look.strong());
    let unit = Column::P50.unit(&total.table);
    let shown = state.shown().line(key);
    let figures = shown.map_or(String::new(), |line| figures(line, unit));
    paint.text(
        end + 2,
        area.y,
        area.right().saturating_sub(end + 2),
        &figures,
        Style::new(),
    );
    if area.height < 5 || area.width <= MARGIN {
        return;
    }
    let worst = state.worst(total, key).filter(|(_, sentence)| !sentence.is_empty());
    if let Some((value, sentence)) = &worst {
        let worst = format!("worst: {}, {sentence}", number::short(*value as f64, unit));
        paint.text(area.x, area.y + 1, area.width, &worst, Style::new());
    }
    let above = if worst.is_some() { 2 } else { 1 };
    let chart = Rect {
        x: area.x + MARGIN,
        y: area.y + above,
        width: area.width - MARGIN,
        height: area.height - above - 2,
    };
    let moments = state.history.last(chart.width.into(), state.shown().pushed);
    let moments: Vec<_> = moments.collect();
    let legend = match Grid::new(key, &moments, chart.height) {
        Some(grid) => grid.draw(key, unit, &moments, paint, chart),
        None => bars(key, &moments, paint, chart),
    };
    time(&moments, paint, Rect::new(chart.x, chart.bottom(), chart.width, 1));
    let y = chart.bottom() + 1;
    paint.texts(chart.x, y, chart.width, &legend);
}

/// Formats the numbers of the key.
fn figures(line: &Line, unit: Unit) -> String {
    let mut figures = vec![format!("{}/s", number::short(line.rate, Unit::Plain))];
    let max = line.max.map(|max| max as f64);
    for (name, number) in [("p50", line.p50), ("p99", line.p99), ("max", max)] {
        figures.extend(number.map(|number| format!("{name} {}", number::short(number, unit))));
    }
    figures.join("  ")
}

/// Assignment of values to the lines of the chart.
struct Grid {
    /// Step below the lowest one shown.
    below: i16,
    /// Number of steps per line.
    steps: i16,
    lines: u16,
    /// Counts by column and line.
    counts: Vec<Vec<f64>>,
}

impl Grid {
    /// Grid for all cells of the key. `None` without cells.
    fn new(key: u32, moments: &[&Moment], lines: u16) -> Option<Self> {
        let cells = |moment: &&Moment| moment.get(key).map(|(_, cells)| cells.to_vec()).unwrap_or_default();
        let columns: Vec<Vec<Cell>> = moments.iter().map(cells).collect();
        let heights = || columns.iter().flatten().map(|cell| cell.height);
        let (lowest, highest) = (heights().min()?, heights().max()?);
        // Buckets may be wider than a step: then only every second or fourth step occurs.
        let ends_with = |least: &u8| heights().all(|height| height == 0 || (height - 1).is_multiple_of(*least));
        let least = [STEPS, STEPS / 2].into_iter().find(ends_with).filter(|_| highest > 0);
        let least = u16::from(least.unwrap_or(1));
        // Joined steps put 0 together with 1.
        let lowest = if least > 1 { lowest.max(1) } else { lowest };
        let span = u16::from(highest - lowest) + least;
        let steps = span.div_ceil(lines.max(1)).next_multiple_of(least);
        let mut grid = Grid {
            below: i16::from(lowest) - least as i16,
            steps: steps as i16,
            lines: span.div_ceil(steps),
            counts: Vec::new(),
        };
        for column in columns {
            let mut counts = vec![0.0; grid.lines.into()];
            for cell in column {
                if let Some(count) = counts.get_mut(grid.line(cell.height)) {
                    *count += (f64::from(cell.level) / 8.0).exp2() - 1.0;
                }
            }
            grid.counts.push(counts);
        }
        Some(grid)
    }

    /// Line of a step, counted from the bottom.
    fn line(&self, height: u8) -> usize {
        let steps = i16::from(height) - self.below - 1;
        usize::try_from(steps / self.steps).unwrap_or(0)
    }

    /// Largest value of a line.
    fn end(&self, line: u16) -> f64 {
        let height = self.below + self.steps * (line as i16 + 1);
        history::value_at(u8::try_from(height.max(0)).unwrap_or(u8::MAX))
    }

    fn draw(&self, key: u32, unit: Unit, moments: &[&Moment], paint: &mut Paint, chart: Rect) -> Vec<(String, Style)> {
        let look = paint.look;
        let y = |line: usize| {
            chart
                .bottom()
                .saturating_sub(1 + u16::try_from(line).unwrap_or(u16::MAX))
        };
        for line in 0..self.lines {
            let label = number::short(self.end(line), unit);
            paint.right(chart.x - MARGIN, y(line.into()), MARGIN - 1, &label, look.faint());
        }
        let most = self.counts.iter().flatten().copied().fold(0.0, f64::max);
        let shades = look.shades();
        let darkest = shades.len().saturating_sub(1);
        let first = chart.right().saturating_sub(self.counts.len() as u16);
        for ((x, counts), moment) in (first..).zip(&self.counts).zip(moments) {
            for (line, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0.0) {
                let part = (1.0 + count).ln() / (1.0 + most).ln();
                let shade = shades.get(((part * darkest as f64).ceil() as usize).min(darkest));
                paint.text(x, y(line), 1, shade.copied().unwrap_or(" "), look.shade());
            }
            let Some((point, _)) = moment.get(key) else {
                continue;
            };
            for (value, mark, style) in [(point.p50, P50, look.p50()), (point.p99, P99, look.p99())] {
                if !value.is_nan() {
                    let line = self
                        .line(history::height(value.into()))
                        .min(self.lines.saturating_sub(1).into());
                    paint.text(x, y(line), 1, look.pick(mark.0, mark.1), style);
                }
            }
        }
        vec![
            (
                format!("values: few {} many", shades.get(1..).unwrap_or_default().concat()),
                Style::new(),
            ),
            (format!("  {} p50", look.pick(P50.0, P50.1)), look.p50()),
            (format!("  {} p99", look.pick(P99.0, P99.1)), look.p99()),
        ]
    }
}

/// Marks of quantiles, and their ASCII forms.
const P50: (&str, &str) = ("─", "-");
const P99: (&str, &str) = ("═", "=");

/// Draws rates over time.
fn bars(key: u32, moments: &[&Moment], paint: &mut Paint, chart: Rect) -> Vec<(String, Style)> {
    let rate = |moment: &&Moment| moment.get(key).map_or(0.0, |(point, _)| f64::from(point.rate));
    let rates: Vec<f64> = moments.iter().map(rate).collect();
    let most = rates.iter().copied().fold(0.0, f64::max);
    let label = number::short(most, Unit::Plain);
    paint.right(chart.x - MARGIN, chart.y, MARGIN - 1, &label, paint.look.faint());
    paint.right(
        chart.x - MARGIN,
        chart.bottom() - 1,
        MARGIN - 1,
        "0",
        paint.look.faint(),
    );
    let heights = paint.look.heights();
    let full = heights.len();
    let first = chart.right().saturating_sub(rates.len() as u16);
    for (x, rate) in (first..).zip(rates).filter(|(_, rate)| *rate > 0.0) {
        let mut left = (rate / most * f64::from(chart.height) * full as f64).ceil() as usize;
        for y in (chart.y..chart.bottom()).rev() {
            let height = left.min(full);
            let Some(bar) = height.checked_sub(1).and_then(|height| heights.get(height)) else {
                break;
            };
            paint.text(x, y, 1, bar, paint.look.shade());
            left -= height;
        }
    }
    vec![(
        "hits per second; this question has no distribution".into(),
        Style::new(),
    )]
}

/// Labels the time axis with the age of the first interval.
fn time(moments: &[&Moment], paint: &mut Paint, area: Rect) {
    let (Some(first), Some(last)) = (moments.first(), moments.last()) else {
        return;
    };
    let seconds = last.end_ns.saturating_sub(first.end_ns) as f64 / 1e9;
    let begin = area
        .right()
        .saturating_sub(moments.len() as u16)
        .min(area.right().saturating_sub(12));
    let faint = paint.look.faint();
    if seconds > 0.0 {
        let ago = format!("-{}", number::seconds(seconds));
        paint.text(begin.max(area.x), area.y, 9, &ago, faint);
    }
    paint.right(area.x, area.y, area.width, "now", faint);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhist_core::table::Dist;

    /// Lines of a chart for these values: their largest values, and their numbers of non-empty
    /// columns.
    fn lines(scale: u8, values: &[i128], lines: u16) -> Vec<(f64, usize)> {
        let mut dist = Dist::new(scale);
        values.iter().for_each(|&value| dist.record(value, 1));
        let mut moment = Moment::new(1);
        moment.add(1, 1.0, [None, None], Some(&dist));
        let grid = Grid::new(1, &[&moment], lines).unwrap();
        assert!(grid.lines <= lines);
        let column = &grid.counts[0];
        let total: f64 = column.iter().sum();
        assert_eq!(total.round() as usize, values.len());
        (0..grid.lines)
            .map(|line| (grid.end(line), column[usize::from(line)].round() as usize))
            .collect()
    }

    #[test]
    fn lines_end_with_buckets() {
        assert_eq!(lines(3, &[0, 0], 10), [(0.0, 2)]);
        assert_eq!(
            lines(0, &[0, 1, 2, 3, 16], 10),
            [(1.0, 2), (2.0, 1), (4.0, 1), (8.0, 0), (16.0, 1)]
        );
        assert_eq!(lines(0, &[3, 4, 16], 2), [(8.0, 2), (32.0, 1)]);
        assert_eq!(lines(0, &[1 << 62], 3), [((1u64 << 62) as f64, 1)]);
    }

    #[test]
    fn buckets_that_are_finer_than_lines() {
        let (ends, counts): (Vec<f64>, Vec<usize>) = lines(3, &[1000, 1001, 1300, 1900], 3).into_iter().unzip();
        assert_eq!(counts, [2, 1, 1]);
        assert!(
            ends[0] >= 1001.0 && ends[1] >= 1300.0 && ends[1] < 1900.0 && ends[2] >= 1900.0,
            "{ends:?}"
        );
        assert_eq!(lines(3, &[1000, 1001, 1300, 1900], 2).len(), 2);
    }
}
