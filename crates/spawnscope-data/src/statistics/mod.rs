//! Robust statistics: medians, ranks, slopes, and confidence intervals of a difference.

mod difference;
mod student;

pub use difference::{Interval, Resamples, chance, mean, mean_interval};
pub use student::significant;

pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.into_iter().collect();
    if values.is_empty() { None } else { Some(quantile(values, 0.5)) }
}

/// Returns the value below which the fraction `share` of the values lies, interpolated between
/// neighbours. Zero if there are no values.
pub fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    let position = share * values.len().saturating_sub(1) as f64;
    let low = position.floor() as usize;
    if low >= values.len() {
        return 0.0;
    }
    let (_, below, larger) = values.select_nth_unstable_by(low, f64::total_cmp);
    let above = larger.iter().copied().min_by(f64::total_cmp);
    match above.filter(|_| position.fract() > 0.0) {
        Some(above) => *below + (above - *below) * position.fract(),
        None => *below,
    }
}

/// Returns Kendall's rank correlation, from -1 to 1: the fraction of pairs in the same order minus
/// the fraction in opposite order.
pub fn kendall_tau(x: &[f64], y: &[f64]) -> f64 {
    let agreement = pairs(x, y).map(|(dx, dy)| (dx * dy).partial_cmp(&0.0).map_or(0.0, |order| order as i8 as f64));
    let (count, sum) = agreement.fold((0.0, 0.0), |(count, sum), sign| (count + 1.0, sum + sign));
    if count == 0.0 { 0.0 } else { sum / count }
}

/// Returns Kendall's tau of the values against their positions: 1 if each value is larger than all
/// values before it.
pub fn trend(values: &[f64]) -> f64 {
    let positions: Vec<f64> = (0..values.len()).map(|position| position as f64).collect();
    kendall_tau(&positions, values)
}

/// Returns the trend, divided by the standard deviation that it has for randomly ordered values
/// (the Mann-Kendall test).
pub fn trend_deviations(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let variance = 2.0 * (2.0 * count + 5.0) / (9.0 * count * (count - 1.0));
    if values.len() < 2 { 0.0 } else { trend(values) / variance.sqrt() }
}

/// Returns the median slope of all pairs of points, which a few outliers do not change. `None` if
/// all `x` are equal.
pub fn theil_sen_slope(x: &[f64], y: &[f64]) -> Option<f64> {
    median(pairs(x, y).filter(|(dx, _)| *dx != 0.0).map(|(dx, dy)| dy / dx))
}

/// Returns the difference in x and in y of each pair of points.
fn pairs<'a>(x: &'a [f64], y: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + 'a {
    (0..x.len())
        .flat_map(move |first| (first + 1..x.len()).map(move |second| (x[second] - x[first], y[second] - y[first])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated_between_neighbours() {
        assert_eq!(median([3.0, 1.0, 2.0, 4.0]), Some(2.5));
        assert_eq!(quantile(vec![10.0, 20.0, 30.0], 0.75), 25.0);
        assert_eq!(median([]), None);
    }

    #[test]
    fn a_trend_compares_the_order_of_pairs() {
        assert_eq!(trend(&[1.0, 2.0, 3.0]), 1.0);
        assert_eq!(trend(&[3.0, 2.0, 1.0]), -1.0);
        assert_eq!(trend(&[1.0, 1.0, 1.0]), 0.0);
        assert_eq!(trend_deviations(&[5.0]), 0.0);
        assert!((trend_deviations(&[1.0, 2.0, 3.0]) - 1.567).abs() < 0.001);
    }

    #[test]
    fn one_outlier_does_not_change_a_slope() {
        assert_eq!(theil_sen_slope(&[0.0, 1.0, 2.0, 3.0, 4.0], &[0.0, 2.0, 4.0, 900.0, 8.0]), Some(2.0));
        assert_eq!(theil_sen_slope(&[1.0, 1.0], &[0.0, 5.0]), None);
    }
}
