import { status } from '@grpc/grpc-js';
import { sleep } from '@rollcall/platform/retry.ts';
import { refusalOf } from '../gateway/websocket-client.ts';
import { connectGrpc } from '../registry/grpc-client.ts';

/** What became of an attempt to get in. */
interface Attempt {
  readonly door: 'websocket' | 'watch';
  readonly replica: number;
  /** An HTTP status or a gRPC code; undefined: it was admitted. */
  readonly answer: number | undefined;
}

/** Where a replica lets clients in. */
export interface Doors {
  /** Of `/api/ws`. */
  readonly webSocketUrl: string;
  readonly grpcPort: number;
}

export interface Intruders {
  /** Those that a replica answered. */
  readonly attempts: readonly Attempt[];
  stop(): Promise<void>;
}

const PAUSE_MS = 150;

/**
 * Asks for streams at all doors, again and again.
 *
 * @param tokens one after the other; undefined: none.
 */
export function startIntruders(replicas: readonly Doors[], tokens: readonly (string | undefined)[]): Intruders {
  const attempts: Attempt[] = [];
  const stopping = new AbortController();

  async function attempt(replica: number, doors: Doors, token: string | undefined): Promise<void> {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const upgrade = refusalOf(doors.webSocketUrl, { headers }).then(
      (refusal) => void attempts.push({ door: 'websocket', replica, answer: refusal?.status }),
      // Nobody is there.
      () => undefined,
    );
    await Promise.all([upgrade, watch(doors.grpcPort, token).then((answer) => note(replica, answer))]);
  }

  function note(replica: number, answer: number | undefined): void {
    if (answer !== status.UNAVAILABLE) attempts.push({ door: 'watch', replica, answer });
  }

  const running = replicas.map(async (doors, replica) => {
    for (let number = 0; !stopping.signal.aborted; number += 1) {
      await attempt(replica, doors, tokens[number % tokens.length]);
      await sleep(PAUSE_MS, stopping.signal);
    }
  });

  return {
    attempts,
    async stop() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

/** @returns how it was refused; undefined: it got an answer. */
async function watch(port: number, token: string | undefined): Promise<number | undefined> {
  using client = connectGrpc(`127.0.0.1:${port}`, token);
  using stream = client.open('Watch', {});
  return await stream.next().then(
    () => undefined,
    ({ code }: { code: number }) => code,
  );
}
