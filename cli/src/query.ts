/** A query of what is there; empty where nothing is. */
export function queryOf(members: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(members).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`;
}
