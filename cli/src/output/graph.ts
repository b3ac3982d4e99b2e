import { formatAge } from './age.ts';
import { formatTable } from './table.ts';
import { printable } from './text.ts';

interface Fault {
  readonly code: string;
  readonly message: string;
}

/** A service with GraphQL, as far as it is shown. */
export interface SubgraphRecord {
  readonly service: string;
  readonly url: string;
  /** ISO 8601. */
  readonly lastUpdated: string;
  readonly status: string;
  /** Why it is not wholly in the graph. */
  readonly error?: Fault;
  readonly version: string | null;
}

/** A graph that is or was in force. */
export interface GenerationRecord {
  readonly generation: number;
  readonly hash: string;
  /** The hash of the SDL of each service. */
  readonly subgraphs: Readonly<Record<string, string>>;
  /** ISO 8601. */
  readonly createdAt: string;
}

/** What a check of a schema says. */
export interface CheckedSchema {
  readonly service: string;
  readonly composition: { readonly status: string; readonly errors: readonly Fault[] };
  /** How many operations of clients were looked at. */
  readonly operations: number;
  readonly broken: readonly (OperationRecord & { readonly errors: readonly string[] })[];
}

/** An operation that clients executed. */
export interface OperationRecord {
  readonly hash: string;
  readonly name: string | null;
  readonly clients: readonly string[];
  readonly count: number;
  /** ISO 8601. */
  readonly lastUsedAt: string;
}

/** As many digits of a hash as tell graphs apart. */
const HASH_DIGITS = 12;

export function formatSubgraphs(subgraphs: readonly SubgraphRecord[], now: Date): string {
  const rows = subgraphs.map(({ service, status, version, lastUpdated, url, error }) => [
    service,
    status,
    version ?? '',
    formatAge(lastUpdated, now),
    url,
    error?.message ?? '',
  ]);
  return formatTable(['SERVICE', 'STATUS', 'VERSION', 'CHANGED', 'URL', 'ERROR'], rows);
}

/** @param generations the newest first. @param pinned the number of the one in force instead of the newest. */
export function formatGenerations(generations: readonly GenerationRecord[], now: Date, pinned: number | null): string {
  const rows = generations.map((each, index) => [
    String(each.generation),
    formatAge(each.createdAt, now),
    each.hash.slice(0, HASH_DIGITS),
    Object.keys(each.subgraphs).length.toString(),
    each.generation === pinned ? 'pinned' : '',
    changesSince(generations[index + 1], each),
  ]);
  return formatTable(['GRAPH', 'AGE', 'HASH', 'SERVICES', 'PINNED', 'CHANGES'], rows);
}

/** `+shop ~users -old`: what came, changed and went. Empty where the graph before is not known. */
function changesSince(before: GenerationRecord | undefined, { subgraphs }: GenerationRecord): string {
  if (before === undefined) return '';
  const old = before.subgraphs;
  const names = [...new Set([...Object.keys(old), ...Object.keys(subgraphs)])].toSorted();
  return names
    .flatMap((name) => {
      if (!Object.hasOwn(old, name)) return [`+${name}`];
      if (!Object.hasOwn(subgraphs, name)) return [`-${name}`];
      return old[name] === subgraphs[name] ? [] : [`~${name}`];
    })
    .join(' ');
}

export function formatCheck({ service, composition, operations, broken }: CheckedSchema, now: Date): string {
  if (composition.errors.length > 0) {
    const rows = composition.errors.map(({ code, message }) => [code, message]);
    return formatTable(['CODE', 'MESSAGE'], rows);
  }
  const composes = `The schema of ${printable(service)} composes with the others`;
  if (broken.length === 0) return `${composes}. It breaks none of ${operations} operations of clients.\n`;
  const rows = broken.map((operation) => [...operationCells(operation, now), operation.errors.join(' ')]);
  const table = formatTable([...OPERATION_HEADINGS, 'ERROR'], rows);
  return `${composes}. It breaks ${broken.length} of ${operations} operations of clients:\n\n${table}`;
}

const OPERATION_HEADINGS = ['OPERATION', 'HASH', 'COUNT', 'LAST USED', 'CLIENTS'];

function operationCells({ name, hash, count, lastUsedAt, clients }: OperationRecord, now: Date): readonly string[] {
  return [name ?? '', hash.slice(0, HASH_DIGITS), String(count), formatAge(lastUsedAt, now), clients.join(' ')];
}

export function formatOperations(operations: readonly OperationRecord[], now: Date): string {
  return formatTable(
    OPERATION_HEADINGS,
    operations.map((each) => operationCells(each, now)),
  );
}

/** How an operation would be carried out. */
export interface ExplainedOperation {
  readonly generation: number;
  readonly cost: number | null;
  readonly plan: ExplainedStep | null;
  readonly errors: readonly { readonly message: string }[];
}

type ExplainedStep =
  | { readonly kind: 'sequence' | 'parallel'; readonly steps: readonly ExplainedStep[] }
  | {
      readonly kind: 'fetch';
      readonly service: string;
      readonly operation: string;
      readonly entities: readonly string[];
      readonly query: string;
    };

export function formatExplanation({ generation, cost, plan, errors }: ExplainedOperation): string {
  if (cost === null) return formatSdl(errors.map(({ message }) => message).join('\n'));
  const lines = plan === null ? ['No service is asked.'] : linesOf(plan);
  return formatSdl([`Graph ${generation}, estimated cost ${cost}`, ...lines].join('\n'));
}

function linesOf(step: ExplainedStep): readonly string[] {
  if (step.kind !== 'fetch') {
    return [`In ${step.kind === 'sequence' ? 'sequence' : 'parallel'}:`, ...step.steps.flatMap(linesOf).map(indented)];
  }
  const { service, operation, entities, query } = step;
  const where = entities.length === 0 ? '' : ` for entities at ${entities.join(', ')}`;
  return [`${operation} at ${service}${where}`, ...query.split('\n').map(indented)];
}

function indented(line: string): string {
  return `  ${line}`;
}

/** SDL is from services: what moves a cursor is not shown as it is. */
export function formatSdl(sdl: string): string {
  const text = sdl.replace(/[^\n\t]+/g, printable);
  return text.endsWith('\n') ? text : `${text}\n`;
}
