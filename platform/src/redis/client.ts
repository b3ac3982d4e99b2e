import { Redis as Client } from 'ioredis';
import type { Logger } from '../process/log.ts';
import { backoffMs } from '../retry.ts';

export type Redis = Client;

interface RedisOptions {
  /** `redis://user:password@host:port/database`; `rediss://` for TLS. */
  readonly url: string;
  /** How the server's list of clients shows this one. */
  readonly name: string;
  /** How long callers wait for an answer, where that is longer than two seconds. */
  readonly waitMs?: number;
  readonly log: Logger;
}

const CONNECT_TIMEOUT_MS = 2000;
/**
 * Without an answer for so long the connection is given up: the server hangs, or a packet filter
 * has forgotten it.
 */
const ANSWER_TIMEOUT_MS = 2000;
/** How often a connection is checked that owes answers. */
const CHECKS_PER_TIMEOUT = 5;
const RECONNECT = { baseMs: 50, maxMs: 2000 };

/**
 * A connection to Redis that is made anew whenever it is lost.
 *
 * While there is no connection, commands fail at once; one whose answer got lost fails and is not
 * sent again, as it may have been done. Callers that need an answer sooner than a connection is
 * given up must see to that themselves.
 *
 * The caller disconnects it.
 */
export function createRedis({ url, name, waitMs = 0, log }: RedisOptions): Redis {
  const redis = new Client(url, {
    connectionName: name,
    connectTimeout: CONNECT_TIMEOUT_MS,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (times) => backoffMs(times - 1, RECONNECT),
    // After a failover the old connection may lead to what is a replica now.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  endSilentConnections(redis, Math.max(ANSWER_TIMEOUT_MS, waitMs));
  let reachable = true;
  redis.on('error', (error: Error) => {
    if (!reachable) return;
    reachable = false;
    // The error itself holds the command, and with it the password where that was refused.
    log.warn({ reason: error.message }, 'Redis cannot be reached');
  });
  redis.on('close', () => {
    if (!reachable) return;
    reachable = false;
    log.warn({ reason: 'the connection was closed' }, 'Redis cannot be reached');
  });
  redis.on('ready', () => {
    if (!reachable) log.info('Redis is reached again');
    reachable = true;
  });
  return redis;
}

/**
 * Ends a connection that owes answers and has brought nothing for so long. ioredis' own
 * `socketTimeout` does not do: after a pause of this process it ends connections whose answers have
 * come, and only wait to be read. Here a pause counts as one check, which is made once what has
 * come is read.
 */
function endSilentConnections(redis: Redis, timeoutMs: number): void {
  let silentChecks = 0;
  let bytesBefore = 0;

  function check(): void {
    const { stream, commandQueue } = redis;
    const bytes = stream?.bytesRead ?? 0;
    const isSilent = commandQueue.length > 0 && bytes === bytesBefore;
    silentChecks = isSilent ? silentChecks + 1 : 0;
    bytesBefore = bytes;
    if (silentChecks < CHECKS_PER_TIMEOUT) return;
    silentChecks = 0;
    stream.destroy(new Error(`no answer within ${timeoutMs} ms`));
  }

  const looking = setInterval(() => setImmediate(check), timeoutMs / CHECKS_PER_TIMEOUT).unref();
  redis.on('end', () => clearInterval(looking));
}
