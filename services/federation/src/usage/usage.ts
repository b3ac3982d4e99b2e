import { setImmediate as nextTurn } from 'node:timers/promises';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { GraphQLSchema } from 'graphql/index.js';
import { type StoredOperation, storedOperation } from './stored-operation.ts';

/** An operation that was executed. */
interface ExecutedOperation {
  readonly query: string;
  readonly operationName: string | undefined;
  /** What the client calls itself; undefined: it does not say. */
  readonly client: string | undefined;
  /** What the document is valid against. */
  readonly schema: GraphQLSchema;
}

/** How often an operation was executed since the last time, and by whom. */
export interface OperationUse extends StoredOperation {
  readonly count: number;
  readonly clients: readonly string[];
}

/** Keeps uses. @throws where the database is away. */
export type AddUses = (uses: readonly OperationUse[]) => Promise<void>;

export interface Usage extends Actor {
  /** Counts an operation. Nobody waits for it, and it may be lost. */
  record(executed: ExecutedOperation): void;
}

const EVERY_MS = 5000;
/** Further ones until the next time are not counted: usage is a sample then. */
const MOST_DOCUMENTS = 500;
const MOST_CHARACTERS = 1_000_000;
const MOST_CLIENTS = 20;

interface Counted extends Omit<ExecutedOperation, 'client'> {
  count: number;
  readonly clients: Set<string>;
}

/** Counts what is executed in memory, and adds it to the database every few seconds. */
export function createUsage({ addUses, log }: { readonly addUses: AddUses; readonly log: Logger }): Usage {
  const stopping = new AbortController();
  let counted = new Map<string, Counted>();
  let characters = 0;
  let running: Promise<void> | undefined;

  async function flush(): Promise<void> {
    const all = [...counted.values()];
    counted = new Map();
    characters = 0;
    const uses = new Map<string, OperationUse>();
    for (const { query, operationName, schema, count, clients } of all) {
      const stored = storedOrNone(query, operationName, schema);
      if (stored !== undefined)
        uses.set(stored.hash, merged(uses.get(stored.hash), { ...stored, count, clients: [...clients] }));
      // Each takes about a millisecond of the event loop.
      await nextTurn();
    }
    // In one order, so that replicas wait for each other and do not block.
    if (uses.size > 0) await addUses([...uses.values()].toSorted((a, b) => (a.hash < b.hash ? -1 : 1)));
  }

  /** One that cannot be read is no reason to lose the others. */
  function storedOrNone(...operation: Parameters<typeof storedOperation>): StoredOperation | undefined {
    try {
      return storedOperation(...operation);
    } catch (err) {
      log.error({ err }, 'an operation that was executed cannot be counted');
      return undefined;
    }
  }

  async function flushOrSay(): Promise<void> {
    try {
      await flush();
    } catch (error) {
      log.warn({ message: errorMessage(error) }, 'which operations were executed could not be kept');
    }
  }

  async function run(): Promise<void> {
    while (await sleep(EVERY_MS, stopping.signal)) await flushOrSay();
  }

  return {
    name: 'usage',
    record({ query, operationName, client, schema }) {
      const key = `${operationName ?? ''}\n${query}`;
      let known = counted.get(key);
      if (known === undefined) {
        if (counted.size >= MOST_DOCUMENTS || characters + query.length > MOST_CHARACTERS) return;
        known = { query, operationName, schema, count: 0, clients: new Set() };
        counted.set(key, known);
        characters += query.length;
      }
      known.count += 1;
      if (client !== undefined && known.clients.size < MOST_CLIENTS) known.clients.add(client);
    },
    async start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
      await flushOrSay();
    },
  };
}

/** Documents that differ in literals alone are one operation. */
function merged(known: OperationUse | undefined, use: OperationUse): OperationUse {
  if (known === undefined) return use;
  const clients = [...new Set([...known.clients, ...use.clients])].slice(0, MOST_CLIENTS);
  return { ...use, count: known.count + use.count, clients };
}
