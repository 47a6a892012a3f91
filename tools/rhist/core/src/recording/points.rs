// SPDX-License-Identifier: MIT OR Apache-2.0

//! Decodes numbers and distributions from points of metrics.

use crate::otlp::attribute::to_key;
use crate::otlp::model::Buckets;
use crate::otlp::model::Digits;
use crate::otlp::model::Double;
use crate::otlp::model::Exemplar;
use crate::otlp::model::HistogramPoint;
use crate::otlp::model::Metric;
use crate::otlp::model::NumberPoint;
use crate::otlp::names;
use crate::otlp::names::Word;
use crate::table::BucketUnit;
use crate::table::Column;
use crate::table::Counts;
use crate::table::Dist;
use crate::table::Worst;

/// The error is the rest of a sentence that begins with "line 7: ".
pub type Result<T> = std::result::Result<T, String>;

pub fn numbers(metric: &Metric) -> &[NumberPoint] {
    match (&metric.gauge, &metric.sum) {
        (Some(gauge), _) => &gauge.data_points,
        (None, Some(sum)) => &sum.data_points,
        (None, None) => &[],
    }
}

pub fn number(point: &NumberPoint) -> Result<i128> {
    int_or_double(point.as_int, point.as_double.as_ref(), BucketUnit::One)
}

pub fn int_or_double(as_int: Option<Digits>, as_double: Option<&Double>, unit: BucketUnit) -> Result<i128> {
    match (as_int, as_double) {
        (_, Some(number)) => whole(number, unit),
        (Some(Digits(number)), None) if unit == BucketUnit::One => Ok(number),
        _ => Err("a point has no number, or one of another unit".to_owned()),
    }
}

pub fn whole(number: &Double, unit: BucketUnit) -> Result<i128> {
    number
        .whole(names::decimals(unit))
        .ok_or_else(|| format!("{} is not a whole number of 128 bits", number.to_f64()))
}

/// Derives the unit of the buckets from the unit of the metric.
pub fn bucket_unit(column: &Column, unit: &str) -> Result<BucketUnit> {
    match unit {
        unit if unit == column.unit.word() => Ok(BucketUnit::One),
        unit => Word::parse(unit).ok_or_else(|| "a metric has another unit than its column".to_owned()),
    }
}

pub fn worst(exemplars: &[Exemplar], unit: BucketUnit) -> Result<Option<Worst>> {
    let Some(exemplar) = exemplars.first() else {
        return Ok(None);
    };
    let saved = exemplar
        .filtered_attributes
        .iter()
        .map(|attribute| Some((attribute.key.as_str().into(), to_key(&attribute.value)?)));
    Ok(Some(Worst {
        value: int_or_double(exemplar.as_int, exemplar.as_double.as_ref(), unit)?,
        saved: saved
            .collect::<Option<_>>()
            .ok_or("an attribute of an exemplar has a type that fields cannot have")?,
    }))
}

pub fn dist(point: &HistogramPoint, unit: BucketUnit) -> Result<Dist> {
    let whole = |number: &Option<Double>| number.as_ref().map(|number| whole(number, unit)).transpose();
    let scale = u8::try_from(point.scale).ok().filter(|&scale| scale <= 20);
    let scale = scale.ok_or_else(|| format!("a distribution has the scale {}", point.scale))?;
    let mut dist = Dist {
        scale,
        bucket_unit: unit,
        count: count(point.zero_count)?,
        sum: whole(&point.sum)?,
        min: whole(&point.min)?,
        max: whole(&point.max)?,
        ..Dist::default()
    };
    for (buckets, counts) in [
        (&point.positive, &mut dist.positive),
        (&point.negative, &mut dist.negative),
    ] {
        if let Some(buckets) = buckets {
            *counts = sparse(buckets, scale)?;
        }
        for (_, in_bucket) in counts.iter() {
            dist.count = dist
                .count
                .checked_add(in_bucket)
                .ok_or("a distribution has more than 2^64 values")?;
        }
    }
    if i128::from(dist.count) != point.count.0 {
        return Err("the count of a distribution is not the sum of its buckets".to_owned());
    }
    match point.zero_threshold.as_ref().and_then(|threshold| threshold.whole(0)) {
        None | Some(0) => dist.zero = count(point.zero_count)?,
        Some(1) => {
            dist.one_has_zero = true;
            if point.zero_count.0 > 0 {
                // Within the total count, which was checked above.
                dist.positive.add(-1, count(point.zero_count)?);
            }
        }
        Some(threshold) => return Err(format!("a distribution has the zero threshold {threshold}")),
    }
    Ok(dist)
}

pub fn count(digits: Digits) -> Result<u64> {
    digits.0.try_into().map_err(|_| "a count is below 0".to_owned())
}

/// Buckets with a count. Limits their indices to the range of 128-bit numbers.
pub fn sparse(buckets: &Buckets, scale: u8) -> Result<Counts> {
    let limit = 128i64 << scale;
    let mut counts = Counts::default();
    for (i, digits) in buckets.bucket_counts.iter().enumerate() {
        let index = i64::from(buckets.offset).saturating_add(i as i64);
        match (count(*digits)?, i32::try_from(index)) {
            (0, _) => (),
            (number, Ok(key)) if index.abs() <= limit => {
                counts.add(key, number);
            }
            _ => return Err(format!("a distribution has a bucket {index}")),
        }
    }
    Ok(counts)
}
