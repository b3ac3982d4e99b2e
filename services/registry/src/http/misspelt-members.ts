import type { App } from '@rollcall/platform/http/server.ts';
import { RegistryError } from '../common/errors.ts';

/** Shorter names are like too many others. */
const LEAST_LENGTH = 5;
/** From this length on, two mistakes still count as a misspelling. */
const LONG_NAME = 7;

/**
 * Refuses bodies with a member that is meant for one of the route's: misspelt, or a secret under
 * another name. It would be dropped without a word, and nothing be protected, checked or announced.
 * Other members that the route does not know are ignored, so that newer callers can call older
 * servers.
 */
export function refuseMisspeltMembers(app: App): void {
  app.addHook('preValidation', ({ body, routeOptions }, _reply, done) => {
    const known = membersOf(routeOptions.schema?.body);
    if (known.length === 0 || typeof body !== 'object' || body === null) return done();
    for (const name of Object.keys(body)) {
      const meant = meantBy(name, known);
      if (meant === undefined) continue;
      const hint = known.includes(meant) ? `; '${meant}' may be meant` : '';
      return done(new RegistryError('INVALID_REQUEST', `The body may not have '${name.slice(0, 64)}'${hint}`));
    }
    done();
  });
}

/** The members that a schema names, also where there may be no body. */
function membersOf(schema: unknown): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties, anyOf }: { readonly properties?: object; readonly anyOf?: unknown } = schema;
  return Array.isArray(anyOf) ? anyOf.flatMap(membersOf) : Object.keys(properties ?? {});
}

/**
 * @returns the member that a name seems to mean; `secret` where it means one that is not known;
 * undefined: none.
 */
export function meantBy(name: string, known: readonly string[]): string | undefined {
  if (known.includes(name)) return undefined;
  const plain = plainName(name);
  const near = known.find((each) => isNear(plain, plainName(each)));
  if (near !== undefined) return near;
  return plain.includes('secret') ? (known.find((each) => each.includes('secret')) ?? 'secret') : undefined;
}

function plainName(name: string): string {
  return name
    .slice(0, 64)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '');
}

function isNear(name: string, known: string): boolean {
  if (name === known) return true;
  if (Math.min(name.length, known.length) < LEAST_LENGTH) return false;
  return distance(name, known) <= (known.length >= LONG_NAME ? 2 : 1);
}

/**
 * Letters that are missing, too many, wrong or swapped with their neighbour (optimal string
 * alignment).
 */
function distance(a: string, b: string): number {
  let [beforeLast, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const wrong = a[i - 1] === b[j - 1] ? 0 : 1;
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        at(last, j) + 1,
        at(row, j - 1) + 1,
        at(last, j - 1) + wrong,
        isSwap ? at(beforeLast, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, row];
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
