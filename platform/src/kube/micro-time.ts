/** RFC 3339 with microseconds, as Kubernetes' `MicroTime` fields want it. */
export function microTime(at: Date): string {
  return at.toISOString().replace('Z', '000Z');
}
