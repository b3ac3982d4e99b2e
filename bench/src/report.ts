/** One figure. */
export interface Row {
  readonly measure: string;
  readonly value: number;
  readonly unit: string;
  /** What was promised, in words; absent where the figure is there for comparison only. */
  readonly limit?: string;
  /** Whether the promise was kept; absent without a limit. */
  readonly met?: boolean;
}

/** The rows of one bench. */
export interface Section {
  readonly bench: string;
  readonly rows: readonly Row[];
  /**
   * Of the machine over the last minute of the bench: processes that wanted a core, ours included.
   */
  readonly loadAverage: number;
}

/** A figure without a limit. */
export function figure(measure: string, value: number, unit: string): Row {
  return { measure, value, unit };
}

/** The same figure with an upper limit. */
export function atMost(limit: number, row: Row): Row {
  return { ...row, limit: `<= ${limit}`, met: row.value <= limit };
}

/** The same figure with a lower limit. */
export function atLeast(limit: number, row: Row): Row {
  return { ...row, limit: `>= ${limit}`, met: row.value >= limit };
}

const HEADERS = ['bench', 'measure', 'value', 'unit', 'limit', 'met'];
const RIGHT_ALIGNED = 2;

/** A table in Markdown that is also readable as it is; a missed limit says MISSED. */
export function renderTable(sections: readonly Section[]): string {
  const lines = sections.flatMap(({ bench, rows }) => rows.map((row) => [bench, ...cells(row)]));
  const widths = HEADERS.map((header, column) =>
    Math.max(header.length, ...lines.map((line) => line[column]?.length ?? 0)),
  );
  const render = (line: readonly string[]): string => {
    const padded = widths.map((width, column) => {
      const cell = line[column] ?? '';
      return column === RIGHT_ALIGNED ? cell.padStart(width) : cell.padEnd(width);
    });
    return `| ${padded.join(' | ')} |`;
  };
  const ruler = widths.map((width, column) =>
    column === RIGHT_ALIGNED ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width),
  );
  return [render(HEADERS), render(ruler), ...lines.map(render), '', loadAverages(sections)].join('\n');
}

/** By which a reader knows whether the machine had time for the measurement. */
function loadAverages(sections: readonly Section[]): string {
  const each = sections.map(({ bench, loadAverage }) => `${bench} ${loadAverage.toFixed(1)}`);
  return `Load average at the end of each bench: ${each.join(', ')}.`;
}

function cells({ measure, value, unit, limit, met }: Row): string[] {
  return [measure, formatValue(value), unit, limit ?? '', met === undefined ? '' : met ? 'yes' : 'MISSED'];
}

/** Three significant digits; two decimals where seconds around a TTL of 60 s need them. */
function formatValue(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString('en-US');
  return size >= 10 ? value.toFixed(2) : String(Number(value.toPrecision(3)));
}
