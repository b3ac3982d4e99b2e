import { displayWidth, padTo, printable } from './text.ts';

const GAP = '   ';

/**
 * Columns under their titles, as wide as their widest cell. Cells are made printable; empty ones
 * show as `-`.
 *
 * @returns lines, each ending with a line feed.
 */
export function formatTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [titles, ...rows.map((row) => row.map(cell))];
  const widths = titles.map((_, column) => Math.max(...cells.map((row) => displayWidth(row[column] ?? ''))));
  return cells.map((row) => formatRow(row, widths)).join('');
}

/** One row with columns of at least these widths, for tables whose later rows are not known yet. */
export function formatRow(row: readonly string[], widths: readonly number[]): string {
  const padded = row.map((text, column) => padTo(text, column === row.length - 1 ? 0 : (widths[column] ?? 0)));
  return `${padded.join(GAP).trimEnd()}\n`;
}

/** Names and values, one pair per line. */
export function formatFacts(facts: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(facts).map((name) => name.length + 1));
  return Object.entries(facts)
    .map(([name, value]) => formatRow([`${name}:`, cell(value)], [width]))
    .join('');
}

/** A value as a table shows it. */
export function cell(text: string): string {
  return text === '' ? '-' : printable(text);
}
