/** A statement with parameters of its own, from `$1` on. */
export interface Statement {
  /** By which others read what it RETURNs. */
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/**
 * Makes one statement of several, which spares their round trips, and which a connection prepares once
 * (docs/decisions/0413). Each sees what was there before all of them; of what another one writes, it
 * sees what that RETURNs.
 *
 * @param purpose with the names of the statements, it says which text it is.
 * @param result reads what is to be known of them.
 */
export function joined(
  purpose: string,
  statements: readonly Statement[],
  result: string,
): { readonly name: string; readonly text: string; readonly values: unknown[] } {
  const all: unknown[] = [];
  const named = statements.map(({ name, text, values }) => {
    const before = all.length;
    all.push(...values);
    return `${name} AS (${text.replaceAll(/\$(\d+)/g, (_, number: string) => `$${before + Number(number)}`)})`;
  });
  const name = `${purpose}: ${statements.map((statement) => statement.name).join()}`;
  return { name, text: `WITH ${named.join(', ')} ${result}`, values: all };
}
