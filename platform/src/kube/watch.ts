import type { KubeConnection, Query } from './connection.ts';
import { type ApiStatus, KubeApiError, KubeUnreachableError } from './errors.ts';
import type { KubeObject } from './resource-client.ts';

interface WatchEvent<T> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: T;
}

interface ErrorEvent {
  readonly type: 'ERROR';
  readonly object: ApiStatus;
}

/** How a silent watch is distinguished from a dead one. */
interface SilenceOptions {
  /**
   * After this long without a word the server is asked whether it is still there, and again after
   * each such while.
   */
  readonly probeAfterMs: number;
  /** Rejects when the server does not answer: the watch is given up with that error. */
  readonly probe: (signal: AbortSignal) => Promise<void>;
  /**
   * A watch that says nothing for this long, not even a bookmark, is dead, whatever the probe says.
   */
  readonly idleTimeoutMs: number;
}

export interface WatchOptions<T> {
  readonly path: string;
  readonly query: Query;
  readonly silence: SilenceOptions;
  readonly signal: AbortSignal;
  readonly onOpen: () => void;
  readonly onEvent: (event: WatchEvent<T>) => void;
}

const NEWLINE = 0x0a;

/**
 * Follows one watch until the server ends it (normal: it does so every few minutes) or the signal
 * aborts.
 *
 * client-node's own `Watch` is not used: it ends every watch that is idle for 30 s, ignores events
 * that it cannot parse, and reads through web streams, at several times the cost per event.
 *
 * @throws KubeApiError with the status of an ERROR event or of the refusal (410: list again),
 * KubeUnreachableError when the connection broke, went silent, or sent something that is no event;
 * what the probe rejected with.
 */
export async function watch<T extends KubeObject>(connection: KubeConnection, options: WatchOptions<T>): Promise<void> {
  const silence = guardSilence(options.silence);
  const signal = AbortSignal.any([options.signal, silence.signal]);
  try {
    const query = { ...options.query, watch: true, allowWatchBookmarks: true };
    const body = await connection.stream(options.path, query, signal);
    options.onOpen();
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of body) {
      silence.broken();
      rest = takeLines(rest, chunk, (line) => options.onEvent(parseEvent<T>(line)));
    }
  } catch (error) {
    if (options.signal.aborted) return;
    silence.signal.throwIfAborted();
    if (error instanceof KubeApiError || error instanceof KubeUnreachableError) throw error;
    throw new KubeUnreachableError('The watch broke', { cause: error });
  } finally {
    silence.end();
  }
}

interface SilenceGuard {
  /** Aborts, with what is to be thrown, when the silence means that the watch is dead. */
  readonly signal: AbortSignal;
  /** Something came. */
  broken(): void;
  end(): void;
}

function guardSilence({ probeAfterMs, probe, idleTimeoutMs }: SilenceOptions): SilenceGuard {
  const dead = new AbortController();
  const check = async () => {
    try {
      await probe(dead.signal);
      if (!dead.signal.aborted) probeTimer.refresh();
    } catch (error) {
      dead.abort(error);
    }
  };
  const probeTimer = setTimeout(() => void check(), probeAfterMs);
  const idleTimer = setTimeout(() => dead.abort(new KubeUnreachableError('The watch went silent')), idleTimeoutMs);
  return {
    signal: dead.signal,
    broken() {
      probeTimer.refresh();
      idleTimer.refresh();
    },
    end() {
      dead.abort();
      clearTimeout(probeTimer);
      clearTimeout(idleTimer);
    },
  };
}

/** Hands every complete line to `onLine` and returns what follows the last newline. */
export function takeLines(rest: Buffer, chunk: Buffer, onLine: (line: string) => void): Buffer {
  const data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
  let start = 0;
  for (let end = data.indexOf(NEWLINE); end !== -1; end = data.indexOf(NEWLINE, start)) {
    if (end > start) onLine(data.toString('utf8', start, end));
    start = end + 1;
  }
  return data.subarray(start);
}

function parseEvent<T>(line: string): WatchEvent<T> {
  const event = parseLine<T>(line);
  if (event.type === 'ERROR') throw new KubeApiError(event.object.code ?? 500, event.object);
  return event;
}

/** The fault is not repeated: a parser quotes from the text, which may be that of a Secret. */
function parseLine<T>(line: string): WatchEvent<T> | ErrorEvent {
  try {
    const event: WatchEvent<T> | ErrorEvent = JSON.parse(line);
    return event;
  } catch {
    throw new KubeUnreachableError('The watch sent something that is no event');
  }
}
