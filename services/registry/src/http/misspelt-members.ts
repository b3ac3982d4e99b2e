import type { App } from '@rollcall/platform/http/server.ts';
import type { preValidationHookHandler } from 'fastify';
import { RegistryError } from '../common/errors.ts';

/** Shorter names are like too many others. */
const LEAST_LENGTH = 5;

/**
 * Refuses bodies and queries with a member that is meant for one of the route's: misspelt, or a
 * secret under another name. It would be dropped without a word, and nothing be protected, checked,
 * announced or left out. Other members that the route does not know are ignored, so that newer callers can call older
 * servers.
 */
export function refuseMisspeltMembers(app: App): void {
  app.addHook('onRoute', (route) => {
    const inBody = membersOf(route.schema?.body);
    const inQuery = membersOf(route.schema?.querystring);
    if (inBody.length + inQuery.length === 0) return;
    const refuse: preValidationHookHandler = ({ body, query }, _reply, done) =>
      done(faultOf('body', body, inBody) ?? faultOf('query', query, inQuery));
    route.preValidation = [route.preValidation ?? [], refuse].flat();
  });
}

function faultOf(part: string, members: unknown, known: readonly string[]): RegistryError | undefined {
  if (known.length === 0 || typeof members !== 'object' || members === null) return undefined;
  for (const name of Object.keys(members)) {
    const meant = meantBy(name, known);
    if (meant === undefined) continue;
    const hint = known.includes(meant) ? `; '${meant}' may be meant` : '';
    return new RegistryError('INVALID_REQUEST', `The ${part} may not have '${name.slice(0, 64)}'${hint}`);
  }
  return undefined;
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

/** Equal but for one letter that is missing, too many or wrong, or two that have swapped places. */
function isNear(name: string, known: string): boolean {
  const shorter = Math.min(name.length, known.length);
  if (shorter < LEAST_LENGTH) return name === known;
  let start = 0;
  while (start < shorter && name[start] === known[start]) start += 1;
  let end = 0;
  while (end < shorter - start && name.at(-1 - end) === known.at(-1 - end)) end += 1;
  const [given, meant] = [name.slice(start, name.length - end), known.slice(start, known.length - end)];
  if (given.length === 2 && meant.length === 2) return given[0] === meant[1] && given[1] === meant[0];
  return given.length <= 1 && meant.length <= 1;
}
