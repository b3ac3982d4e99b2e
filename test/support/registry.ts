import { registryProcess } from '@rollcall/registry/wiring/service.ts';
import { inject } from 'vitest';
import { type Replica, type ReplicaOptions, type RunningService, startReadyReplica, startService } from './replica.ts';

export type { Answer } from './replica.ts';

export interface RegistryOptions {
  readonly namespace: string;
  /** Of its own database, or of one shared with another replica. */
  readonly databaseUrl: string;
  /** By which variables it finds the API server; the shared one, as a pod, by default. */
  readonly access?: ReplicaOptions['access'];
  /** More settings, by the names of their variables. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Runs a replica in this process on the shared cluster, and waits until it is ready. */
export function startRegistry(options: RegistryOptions): Promise<RunningService> {
  return startService(registryProcess, replicaOptions(options));
}

/** As {@link startRegistry}, as a process of its own, to be killed or frozen. */
export function startRegistryProcess(options: RegistryOptions): Promise<Replica> {
  return startReadyReplica('services/registry/src/main.ts', replicaOptions(options));
}

function replicaOptions({
  namespace,
  databaseUrl,
  access = inject('podEnvironment'),
  settings,
}: RegistryOptions): ReplicaOptions {
  return {
    logDirectory: inject('temporaryDirectory'),
    access,
    namespace,
    settings: {
      ROLLCALL_DATABASE_URL: databaseUrl,
      // As `npm start` has it.
      ROLLCALL_WEBHOOK_ALLOW_UNSIGNED: 'true',
      // Tests say of jobs that they finished at any time.
      ROLLCALL_JOB_RETENTION_SECONDS: String(10 * 365 * 86_400),
      ...settings,
    },
  };
}
