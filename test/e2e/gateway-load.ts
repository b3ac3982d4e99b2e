import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';

/** A replica that is asked: it may be another process each time. */
interface AskedReplica {
  readonly url: string;
}

/** A question that got an answer. */
export interface Answered {
  readonly status: number;
  /** Milliseconds, as all times here, by `performance.now()`. */
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

/** A question that got none. */
export interface Lost {
  readonly reason: string;
  /** Of the replica that had the question. */
  readonly replica: number;
  readonly connectedAtMs: number;
  readonly failedAtMs: number;
}

interface LoadReport {
  readonly answered: Answered[];
  readonly lost: Lost[];
  /** Questions that went to the other replica because the first refused the connection. */
  refusedConnections: number;
}

interface LoadOptions {
  readonly replicas: readonly AskedReplica[];
  readonly path: string;
  /** How many ask at the same time, each one question after the other. */
  readonly lanes: number;
  /** Between an answer and the next question. */
  readonly pauseMs: number;
  /** What is shown as the bearer token, by the number of the question. */
  readonly token: (question: number) => string;
}

export interface Load {
  readonly report: LoadReport;
  stop(): Promise<LoadReport>;
}

/** Of a replica that is gone for good: nobody takes the question. */
const ATTEMPTS = 200;
const NEXT_ATTEMPT_MS = 50;

/**
 * Clients who ask the replicas in turn over connections that they keep. What no replica has taken,
 * because the connection was refused, is asked of another; nothing else is repeated.
 */
export function startLoad({ replicas, path, lanes, pauseMs, token }: LoadOptions): Load {
  const report: LoadReport = { answered: [], lost: [], refusedConnections: 0 };
  const stopping = new AbortController();
  let questions = 0;

  async function ask(agent: Agent, bearer: string, first: number): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const replica = (first + attempt) % replicas.length;
      const outcome = await exchange(`${replicas[replica]?.url}${path}`, agent, bearer);
      if ('status' in outcome) report.answered.push(outcome);
      else if (outcome.reason !== 'ECONNREFUSED') report.lost.push({ ...outcome, replica });
      else {
        report.refusedConnections += 1;
        await wait(NEXT_ATTEMPT_MS);
        continue;
      }
      return;
    }
    throw new Error(`No replica takes connections for ${path}`);
  }

  const running = Array.from({ length: lanes }, async (_, lane) => {
    const agent = new Agent({ keepAlive: true });
    // By its own count: by that of all, lanes that keep in step would ask one replica only.
    for (let own = 0; !stopping.signal.aborted; own += 1) {
      questions += 1;
      await ask(agent, token(questions), lane + own);
      await wait(pauseMs);
    }
    agent.destroy();
  });

  return {
    report,
    async stop() {
      stopping.abort();
      await Promise.all(running);
      return report;
    },
  };
}

/** When a connection was established; for as long as that is. */
const connectedAt = new WeakMap<Socket, number>();

function exchange(url: string, agent: Agent, bearer: string): Promise<Answered | Omit<Lost, 'replica'>> {
  const { promise, resolve } = Promise.withResolvers<Answered | Omit<Lost, 'replica'>>();
  const sentAtMs = performance.now();
  const headers = { authorization: `Bearer ${bearer}` };
  let socket: Socket | undefined;
  const fail = (error: NodeJS.ErrnoException): void => {
    const connectedAtMs = (socket && connectedAt.get(socket)) ?? sentAtMs;
    resolve({ reason: error.code ?? error.message, connectedAtMs, failedAtMs: performance.now() });
  };
  const asked = request(url, { agent, headers }, (response) => {
    response.on('error', fail);
    response.on('end', () => resolve({ status: response.statusCode ?? 0, sentAtMs, answeredAtMs: performance.now() }));
    response.resume();
  });
  asked.on('socket', (opened) => {
    socket = opened;
    if (opened.connecting) opened.once('connect', () => connectedAt.set(opened, performance.now()));
  });
  asked.on('error', fail);
  asked.end();
  return promise;
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
