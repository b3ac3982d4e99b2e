/** @returns the status of an answer (RFC 9113, section 8.3.2); undefined: the fields are no head of an answer. */
export function statusOf(fields: readonly string[]): number | undefined {
  if (fields[0] !== ':status' || !/^[1-9]\d\d$/.test(fields[1] ?? '')) return undefined;
  return hasPseudoHeader(fields, 2) ? undefined : Number(fields[1]);
}

/** Whether fields may stand behind the data of a message (RFC 9113, section 8.1). */
export function isTrailers(fields: readonly string[]): boolean {
  return !hasPseudoHeader(fields, 0);
}

function hasPseudoHeader(fields: readonly string[], start: number): boolean {
  for (let index = start; index < fields.length; index += 2) if (fields[index]?.startsWith(':') === true) return true;
  return false;
}
