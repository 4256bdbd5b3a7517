//! Student's t distribution, and the correction for many comparisons. 50 groups at 95 % each have
//! two or three differences by chance, of which the largest would be the headline.

/// Returns the probability that a value of Student's t distribution is at least this far from zero.
pub fn two_sided_probability(t: f64, degrees: f64) -> f64 {
    if !t.is_finite() {
        return 0.0;
    }
    incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// Returns which of several differences are not by chance, by the method of Holm: the probability
/// that any of them is reported although nothing differs is at most `level`. `chances` contains the
/// probability of each difference by chance. The method of Benjamini and Hochberg reports more, of
/// which a share of `level` is by chance; but the first sentence of a comparison names the largest
/// three, and each must be true.
pub fn significant(chances: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|one, other| chances[*one].total_cmp(&chances[*other]));
    let mut is_significant = vec![false; chances.len()];
    for (rank, index) in order.into_iter().enumerate() {
        if chances[index] > level / (chances.len() - rank) as f64 {
            break;
        }
        is_significant[index] = true;
    }
    is_significant
}

/// Returns the regularized incomplete beta function, by its continued fraction (Abramowitz and
/// Stegun, 26.5.8).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges quickly only below the mean.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    front / fraction(x, a, b)
}

/// Evaluates the denominator of the continued fraction from its end.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TERMS: i32 = 200;
    let mut value = 1.0;
    for number in (1..=TERMS).rev() {
        let half = f64::from(number / 2);
        let term = if number % 2 == 0 {
            half * (b - half) * x / ((a + 2.0 * half - 1.0) * (a + 2.0 * half))
        } else {
            -(a + half) * (a + b + half) * x / ((a + 2.0 * half) * (a + 2.0 * half + 1.0))
        };
        value = 1.0 + term / value;
    }
    value
}

/// Returns the logarithm of the gamma function: the series of Stirling, after moving the argument
/// to where it is exact.
fn ln_gamma(x: f64) -> f64 {
    const LEAST: f64 = 10.0;
    let (mut shifted, mut product) = (x, 1.0);
    while shifted < LEAST {
        product *= shifted;
        shifted += 1.0;
    }
    let series = 1.0 / (12.0 * shifted) - 1.0 / (360.0 * shifted.powi(3)) + 1.0 / (1260.0 * shifted.powi(5));
    (shifted - 0.5) * shifted.ln() - shifted + (2.0 * std::f64::consts::PI).sqrt().ln() + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_tables() {
        for (t, degrees, probability) in [
            (12.706, 1.0, 0.05),
            (4.303, 2.0, 0.05),
            (2.228, 10.0, 0.05),
            (3.169, 10.0, 0.01),
            (2.042, 30.0, 0.05),
            (1.96, 100_000.0, 0.05),
            (5.041, 8.0, 0.001),
            (0.0, 5.0, 1.0),
        ] {
            let found = two_sided_probability(t, degrees);
            assert!((found - probability).abs() < 2e-4 + 1e-3 * probability, "{t} {degrees}: {found}");
        }
        assert_eq!(two_sided_probability(f64::INFINITY, 3.0), 0.0);
    }

    #[test]
    fn one_of_many_differences_must_be_clearer() {
        assert_eq!(significant(&[0.04], 0.05), [true]);
        assert_eq!(significant(&[0.04, 0.5], 0.05), [false, false]);
        assert_eq!(significant(&[0.04, 0.001, 0.02, 0.9], 0.05), [false, true, false, false]);
        assert_eq!(significant(&[0.03, 0.001], 0.05), [true, true], "the first one leaves one comparison");
        assert!(significant(&[], 0.05).is_empty());
    }
}
