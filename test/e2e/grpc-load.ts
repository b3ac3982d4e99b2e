import {
  Client,
  connectivityState,
  credentials,
  Metadata,
  type MethodDefinition,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { sleep } from '@rollcall/platform/retry.ts';

/** How a call ended. Milliseconds by `performance.now()`. */
export interface CallOutcome {
  readonly code: status;
  readonly details: string;
  /** Which replica had the call. */
  readonly replica: number;
  readonly sentAtMs: number;
  readonly endedAtMs: number;
}

interface GrpcLoadOptions<Request> {
  /** Of the replicas. */
  readonly ports: readonly number[];
  readonly method: Pick<MethodDefinition<Request, unknown>, 'path' | 'requestSerialize' | 'responseDeserialize'>;
  readonly request: Request;
  /** How many call at the same time, each one call after the other. */
  readonly lanes: number;
  /** Between an answer and the next call. */
  readonly pauseMs: number;
  /** The bearer token, by the number of the call; undefined: none. */
  readonly token: (call: number) => string | undefined;
}

export interface GrpcLoad {
  readonly outcomes: readonly CallOutcome[];
  stop(): Promise<void>;
}

/** Far more than a call takes: one that ends by it hung. */
const DEADLINE_MS = 10_000;
const POLL_INTERVAL_MS = 20;
const CHANNEL_OPTIONS = {
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 500,
};

/**
 * Clients who call the replicas in turn, each that has a connection, over connections that they
 * keep. A call once begun is not repeated.
 */
export function startGrpcLoad<Request>(options: GrpcLoadOptions<Request>): GrpcLoad {
  const { ports, lanes, pauseMs, token } = options;
  const outcomes: CallOutcome[] = [];
  const stopping = new AbortController();
  const clients = ports.map((port) => new Client(`127.0.0.1:${port}`, credentials.createInsecure(), CHANNEL_OPTIONS));
  let calls = 0;

  /** The next replica whose connection stands. */
  async function choose(): Promise<number | undefined> {
    while (!stopping.signal.aborted) {
      for (let attempt = 0; attempt < clients.length; attempt += 1) {
        const replica = (calls + attempt) % clients.length;
        if (clients[replica]?.getChannel().getConnectivityState(true) === connectivityState.READY) return replica;
      }
      await sleep(POLL_INTERVAL_MS, stopping.signal);
    }
    return undefined;
  }

  const running = Array.from({ length: lanes }, async () => {
    while (!stopping.signal.aborted) {
      calls += 1;
      const bearer = token(calls);
      const replica = await choose();
      const client = clients[replica ?? 0];
      if (replica === undefined || client === undefined) break;
      const sentAtMs = performance.now();
      const { code, details } = await exchange(client, options, bearer);
      outcomes.push({ code, details, replica, sentAtMs, endedAtMs: performance.now() });
      await sleep(pauseMs, stopping.signal);
    }
  });

  return {
    outcomes,
    async stop() {
      stopping.abort();
      await Promise.all(running);
      for (const client of clients) client.close();
    },
  };
}

function exchange<Request>(
  client: Client,
  { method, request }: GrpcLoadOptions<Request>,
  bearer: string | undefined,
): Promise<Pick<ServiceError, 'code' | 'details'>> {
  const { path, requestSerialize, responseDeserialize } = method;
  const metadata = new Metadata();
  if (bearer !== undefined) metadata.set('authorization', `Bearer ${bearer}`);
  const { promise, resolve } = Promise.withResolvers<Pick<ServiceError, 'code' | 'details'>>();
  const deadline = Date.now() + DEADLINE_MS;
  client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, { deadline }, (error) =>
    resolve(error ?? { code: status.OK, details: '' }),
  );
  return promise;
}
