/** More no reader chooses from. */
const MOST = 20;

/** Pure. The languages that a reader prefers (RFC 9110, section 12.5.4), the dearest first. */
export function acceptedLanguages(header = ''): readonly string[] {
  const ranges = header.split(',', MOST).flatMap((part) => {
    const [, range = '', weight = '1'] = /^\s*([a-z\d-]+)\s*(?:;\s*q=([\d.]+)\s*)?$/i.exec(part) ?? [];
    return range !== '' && Number(weight) > 0 ? [{ range, weight: Number(weight) }] : [];
  });
  return ranges.toSorted((a, b) => b.weight - a.weight).map(({ range }) => range);
}
