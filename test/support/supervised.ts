import { freePorts } from '@rollcall/local/ports.ts';
import { type Replica, type ReplicaOptions, startReadyReplica, startReplica } from './replica.ts';

/** What the kubelet does at first; it backs off later. */
const RESTART_DELAY_MS = 1000;

/** A replica that is started again when it ends, as the kubelet does with a container. */
export interface Supervised extends AsyncDisposable {
  /** The process that runs now, or ran last. */
  readonly current: Replica;
  /** How often it was started again. */
  readonly restarts: number;
  /** Of a service that offers gRPC; the same for each of its processes. */
  readonly grpcPort: number;
  /** Of every process so far, the newest last. */
  readonly logFiles: readonly string[];
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}

/** Starts a replica, waits until it is ready, and starts it again with the same ports whenever it ends. */
export async function supervise(script: string, given: ReplicaOptions): Promise<Supervised> {
  const [grpcPort = 0] = await freePorts(1);
  const options = { ...given, settings: { ROLLCALL_GRPC_PORT: String(grpcPort), ...given.settings } };
  let current = await startReadyReplica(script, options);
  let restarts = 0;
  const logFiles = [current.process.logFile];
  let stopping = false;
  const ports = [portOf(current.url), portOf(current.adminUrl)] as const;
  const watching = (async () => {
    while (true) {
      await current.process.exited;
      if (stopping) return;
      await new Promise((resolve) => setTimeout(resolve, RESTART_DELAY_MS));
      if (stopping) return;
      restarts += 1;
      current = await startReplica(script, { ...options, ports });
      logFiles.push(current.process.logFile);
      // Whoever stops it meanwhile has stopped the one before.
      if (stopping) await current.process.stop();
    }
  })();
  return {
    get current() {
      return current;
    },
    get restarts() {
      return restarts;
    },
    grpcPort,
    logFiles,
    async [Symbol.asyncDispose]() {
      stopping = true;
      await current.process.stop();
      await watching;
      await current.process.stop();
    },
  };
}
