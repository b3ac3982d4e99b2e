import { errorFromAnswer, parseObject, RegistryError } from '@rollcall/client/registry-error.ts';

/** What the gateway, or a service behind it, answered in place of what was asked for. */
interface Refusal {
  readonly status: number;
  readonly text: string;
  /** Who answered. */
  readonly server: string;
}

/** The error of a refusal. Its message has the details that it speaks of, but for fields, which it repeats. */
export function refusalOf({ status, text, server }: Refusal): RegistryError {
  const refused = errorFromAnswer(status, text, server);
  const told = detailsIn(text);
  if (told.length === 0) return refused;
  return new RegistryError(`${refused.message} (${told.join(', ')})`, { status, error: refused.error, server });
}

function detailsIn(text: string): readonly string[] {
  const details = membersOf(membersOf(parseObject(text)?.['error'])['details']);
  return Object.entries(details).flatMap(([name, value]) => (name === 'fields' ? [] : [`${name}: ${wordsOf(value)}`]));
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

function wordsOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
