import { communicationOperations } from './operations/communication.ts';
import { federationOperations } from './operations/federation.ts';
import type { Area, Operation, Scope } from './operations/operation.ts';
import { paymentOperations } from './operations/payment.ts';
import { registryOperations } from './operations/registry.ts';
import { matches } from './path-methods.ts';

/** Stands for every scope. */
const EVERY_SCOPE = '*';

/**
 * The operations of each service of Rollcall, by its registered name. Gateway and service both ask
 * here, and each refuses by itself: a route of the gateway's that names another way to the service
 * opens nothing.
 */
export const serviceOperations: ReadonlyMap<string, readonly Operation[]> = new Map([
  ['registry', registryOperations],
  ['communication', communicationOperations],
  ['payment', paymentOperations],
  ['federation', federationOperations],
]);

interface RestRow {
  readonly method: string;
  readonly pattern: readonly string[];
  readonly operation: Operation;
}

const restRows: ReadonlyMap<string, readonly RestRow[]> = new Map(
  serviceOperations.entries().map(([service, operations]) => [service, operations.flatMap(rowsOf)]),
);

function rowsOf(operation: Operation): readonly RestRow[] {
  return operation.rest.map((route) => {
    const [method = '', path = ''] = route.split(' ');
    return { method, pattern: path.split('/').slice(1), operation };
  });
}

/**
 * What a request to a service asks for. Of two routes that fit the first holds, which is the one
 * without parameters.
 *
 * @param service its registered name.
 * @param path below the base of the service, as it came or as a route has it (`/services/:service_name`).
 * @returns undefined where there is no such route, or no such table.
 */
export function restOperation(service: string, method: string, path: string): Operation | undefined {
  const asked = method === 'HEAD' ? 'GET' : method;
  const segments = path.split('/').slice(1).map(decoded);
  return restRows.get(service)?.find((row) => row.method === asked && matches(row.pattern, segments))?.operation;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** What a gRPC call to the registry asks for. @param method of rollcall.registry.v1.Registry. */
export function grpcOperation(method: string): Operation | undefined {
  return registryOperations.find(({ grpc }) => grpc?.includes(method) === true);
}

/**
 * What a field of a service's GraphQL asks for. @param field `Mutation.sendEmail`, or the type of an
 * entity.
 */
export function graphqlOperation(service: string, field: string): Operation | undefined {
  return serviceOperations.get(service)?.find(({ graphql }) => graphql?.includes(field) === true);
}

/** @param channel as the table has it. @throws Error where it is not in the table. */
export function channelScope(channel: string): Scope {
  const operations = [...serviceOperations.values()].flat();
  const scope = operations.find(({ webSocket }) => webSocket?.includes(channel) === true)?.scope;
  if (scope === undefined) throw new Error(`The table of scopes has no channel '${channel}'`);
  return scope;
}

interface Holding {
  readonly scopes: ReadonlySet<string>;
}

/** Whether the scopes hold one, or the one that stands for all. */
export function hasScope({ scopes }: Holding, scope: string): boolean {
  return scopes.has(scope) || scopes.has(EVERY_SCOPE);
}

/** Whether the holder sees what belongs to other subjects, too. */
export function seesAll(holder: Holding, area: Area): boolean {
  return hasScope(holder, `${area}:admin` satisfies Scope);
}

/** A scope token (RFC 6749, section 3.3). */
const SCOPE_TOKEN = /^[!#-[\]-~]+$/;

/** Whether it is a scope token: printable ASCII without space, `"` and `\`. */
export function isScopeToken(text: string): boolean {
  return SCOPE_TOKEN.test(text);
}
