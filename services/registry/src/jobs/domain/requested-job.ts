import type { Release } from '../../releases/domain/release.ts';

export type DeliveryOperation = 'Deploy' | 'Rollback';
export type DeliveryStrategy = 'Rolling' | 'BlueGreen' | 'Canary';

/** As callers spell them (contract 1, "Webhooks"). */
export const strategyNames = { Rolling: 'rolling', BlueGreen: 'blue-green', Canary: 'canary' } as const;

/** A job as a webhook call asks for it. */
export interface RequestedJob {
  /** `deploy-<service_name>-<version>-<unix_seconds>`, or `rollback-…` (contract 1, "Webhooks"). */
  readonly jobId: string;
  readonly operation: DeliveryOperation;
  readonly release: Release;
  /** Undefined: as the policy of the service says. */
  readonly strategy: DeliveryStrategy | undefined;
  readonly requestedBy: string;
  /** Whether it is to end with nothing touched where what runs turns out to be as new. */
  readonly onlyIfNewer: boolean;
  /** Whether the job that runs is undone for it, and waiting jobs are cancelled. */
  readonly immediate: boolean;
}

export interface DeliveryJobStore {
  /** @returns false when a different job was there first under its id; the same one is as good. */
  create(job: RequestedJob): Promise<boolean>;
}
