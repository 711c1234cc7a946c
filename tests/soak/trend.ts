/** Trend of a series of samples over its whole length. */
export interface Trend {
  readonly mean: number;
  /** Rise of the regression line from the first to the last sample. */
  readonly growth: number;
}

/** Fits a line through samples that were taken at equal distances. */
export function trend(samples: readonly number[]): Trend {
  const { length } = samples;
  const mean = samples.reduce((sum, value) => sum + value, 0) / length;
  const middle = (length - 1) / 2;
  let covariance = 0;
  let variance = 0;
  samples.forEach((value, index) => {
    covariance += (index - middle) * (value - mean);
    variance += (index - middle) ** 2;
  });
  return { mean, growth: covariance / variance * (length - 1) };
}

/**
 * Lowest sample of each group of neighbours. A leak raises these too, a burst of
 * work or of load does not.
 */
export function floors(
  samples: readonly number[],
  neighbours: number,
): readonly number[] {
  const groups = Math.floor(samples.length / neighbours);
  return Array.from({ length: groups }, (_, group) => {
    const start = group * neighbours;
    return Math.min(...samples.slice(start, start + neighbours));
  });
}
