import { Type } from 'typebox';
import type { CompositionError } from '../composition/compose.ts';
import type { UsedOperation } from '../domain/ports.ts';
import type { Checked } from '../domain/schemas.ts';
import { type Subgraph, statusOf } from '../domain/subgraphs.ts';

const Fault = Type.Object({ code: Type.String(), message: Type.String() });

/** Of a composition, in answers. */
export const CompositionAnswer = Type.Object({
  status: Type.Enum(['composed', 'held'], {
    description: 'held: the schema is not in the graph, as it does not compose with the others',
  }),
  errors: Type.Array(Fault),
  hints: Type.Array(Fault),
});

/** Of a schema record (contract 3, "Federation service"). */
export const schemaRecord = {
  service: Type.String(),
  url: Type.String({ description: 'Of its GraphQL' }),
  schema: Type.String({ description: 'SDL, as it was last read; empty: never' }),
  lastUpdated: Type.String({ format: 'date-time', description: 'When the schema last changed' }),
  status: Type.Enum(['composed', 'held', 'unreachable', 'stale'], {
    description:
      'held: the graph has its last good schema, or nothing of it; unreachable: it could not be read when that ' +
      'was last tried; stale: it is not registered any more, and leaves the graph after a grace',
  }),
  error: Type.Optional(Fault),
  version: Type.Union([Type.String(), Type.Null()], { description: 'As registered' }),
} as const;

const usedOperation = {
  hash: Type.String({ description: 'SHA-256 of the document' }),
  name: Type.Union([Type.String(), Type.Null()]),
  document: Type.String({ description: 'With its fragments, without literals' }),
  clients: Type.Array(Type.String(), { description: 'What its clients call themselves, or some of them' }),
  count: Type.Integer({ description: 'How often it was executed within the days that usage is kept' }),
  lastUsedAt: Type.String({ format: 'date-time' }),
} as const;

/** Of an operation that clients executed. */
export const UsedOperationAnswer = Type.Object(usedOperation);

/** Of a check. */
export const CheckAnswer = Type.Object({
  service: Type.String(),
  composition: CompositionAnswer,
  operations: Type.Integer({
    description: 'How many operations of clients were looked at; 0 where it does not compose',
  }),
  broken: Type.Array(
    Type.Object({ ...usedOperation, errors: Type.Array(Type.String(), { description: 'Why it would be refused' }) }),
    { description: 'Operations of clients that would no longer be executed' },
  ),
});

/** Pure. An operation as answers have it. */
export function usedOperationOf({ clients, lastUsedAt, ...rest }: UsedOperation) {
  return { ...rest, clients: [...clients], lastUsedAt: lastUsedAt.toISOString() };
}

/** Pure. A check as answers have it. */
export function checkOf(service: string, { errors, operations, broken }: Checked) {
  const brokenOnes = broken.map(({ errors: reasons, ...operation }) => ({
    ...usedOperationOf(operation),
    errors: [...reasons],
  }));
  return { service, composition: compositionOf(errors), operations, broken: brokenOnes };
}

/** Pure. The record as answers have it. */
export function recordOf(subgraph: Subgraph) {
  const { service, url, sdl, updatedAt, version, errors, failure } = subgraph;
  const error = failure ?? errors[0];
  return {
    service,
    url,
    schema: sdl ?? '',
    lastUpdated: updatedAt.toISOString(),
    status: statusOf(subgraph),
    ...(error === undefined ? {} : { error }),
    version,
  };
}

/** Pure. What composition says, as answers have it. */
export function compositionOf(errors: readonly CompositionError[]) {
  const status: 'composed' | 'held' = errors.length === 0 ? 'composed' : 'held';
  return { status, errors: [...errors], hints: [] };
}
