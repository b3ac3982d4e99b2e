/** Values of a Prometheus exposition by series: name with labels, as printed. */
export type Metrics = ReadonlyMap<string, number>;

/** Reads the text format of Prometheus, samples only. */
export function parseMetrics(text: string): Metrics {
  const metrics = new Map<string, number>();
  for (const line of text.split('\n')) {
    const match = /^([a-zA-Z_:][^{ ]*(?:\{.*\})?) (\S+)/.exec(line);
    if (match?.[1] !== undefined) metrics.set(match[1], Number(match[2]));
  }
  return metrics;
}

/** The sum of all series of a name that have all these labels; 0 when there is none. */
export function sumOf(metrics: Metrics, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  let sum = 0;
  for (const [series, value] of metrics) {
    if (series !== name && !series.startsWith(`${name}{`)) continue;
    if (wanted.every((label) => series.includes(label))) sum += value;
  }
  return sum;
}

/**
 * The smallest bucket limit of a histogram that holds a share (0 to 1) of what came between two
 * readings; NaN when nothing did.
 */
export function bucketQuantile(
  { before, after }: { readonly before: Metrics; readonly after: Metrics },
  name: string,
  share: number,
): number {
  const grown = (metric: string, labels?: Record<string, string>): number =>
    sumOf(after, metric, labels) - sumOf(before, metric, labels);
  const total = grown(`${name}_count`);
  if (total === 0) return Number.NaN;
  const limits = [...after.keys()].flatMap((series) => {
    const limit = series.startsWith(`${name}_bucket`) ? /le="([^"]+)"/.exec(series)?.[1] : undefined;
    return limit === undefined ? [] : [limit];
  });
  const sorted = [...new Set(limits)].map((le) => ({ le, limit: le === '+Inf' ? Infinity : Number(le) }));
  sorted.sort((a, b) => a.limit - b.limit);
  return sorted.find(({ le }) => grown(`${name}_bucket`, { le }) >= share * total)?.limit ?? Number.NaN;
}
