/** Spreadsheets treat a cell that begins like this as a formula (OWASP, "CSV Injection"). */
const FORMULA_START = /^[=+\-@\t\r\n\uFF0B\uFF0D\uFF1D\uFF20]/;
const NEEDS_QUOTES = /[",\r\n]/;

/**
 * One record of a CSV file with its line end (RFC 4180). Text that a spreadsheet would run as a
 * formula gets an apostrophe before it.
 */
export function csvRecord(fields: readonly (string | number)[]): string {
  return `${fields.map(csvField).join(',')}\r\n`;
}

function csvField(value: string | number): string {
  const text = typeof value === 'number' ? String(value) : inert(value);
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The text as a cell that no spreadsheet computes. */
export function inert(text: string): string {
  return FORMULA_START.test(text) ? `'${text}` : text;
}
