import { inject } from 'vitest';
import { type Replica, startReadyReplica } from './replica.ts';

export type { Answer } from './replica.ts';

/** A replica of the registry as a process of its own. */
export type TestRegistry = Replica;

export interface RegistryOptions {
  readonly namespace: string;
  /** Of its own database, or of one shared with another replica. */
  readonly databaseUrl: string;
  /** Another cluster than the shared one. */
  readonly kubeconfig?: string;
  /** More settings, by the names of their variables. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Starts the real process on the shared cluster and waits until it is ready. */
export function startRegistry({
  namespace,
  databaseUrl,
  kubeconfig,
  settings,
}: RegistryOptions): Promise<TestRegistry> {
  return startReadyReplica('services/registry/src/main.ts', {
    logDirectory: inject('temporaryDirectory'),
    kubeconfig: kubeconfig ?? inject('kubeconfig'),
    namespace,
    settings: {
      ROLLCALL_DATABASE_URL: databaseUrl,
      // As `npm start` has it.
      ROLLCALL_WEBHOOK_ALLOW_UNSIGNED: 'true',
      // Tests say of jobs that they finished at any time.
      ROLLCALL_JOB_RETENTION_SECONDS: String(10 * 365 * 86_400),
      ...settings,
    },
  });
}
