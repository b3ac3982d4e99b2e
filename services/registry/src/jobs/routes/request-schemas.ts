import { documented } from '@rollcall/platform/http/documented.ts';
import { type Static, Type } from 'typebox';
import { ServiceName } from '../../http/schemas.ts';
import { artifactRules } from '../../releases/domain/release-input.ts';
import { release, Version } from '../../releases/routes/release-schemas.ts';
import { Message, Secret } from '../../webhooks/routes/schemas.ts';
import { type DeliveryStrategy, strategyNames } from '../domain/requested-job.ts';

const Strategy = Type.Optional(
  Type.Enum(Object.values(strategyNames), {
    description: 'Absent: as the DeliveryPolicy of the service says, else rolling',
  }),
);

/** @param name as callers spell it. */
export function strategyNamed(name: Static<typeof Strategy> | undefined): DeliveryStrategy | undefined {
  const strategies: readonly DeliveryStrategy[] = ['Rolling', 'BlueGreen', 'Canary'];
  return strategies.find((strategy) => strategyNames[strategy] === name);
}

export const DeployBody = Type.Object(
  {
    ...release,
    strategy: Strategy,
  },
  documented(artifactRules),
);

/** What all pods do at once is no strategy of steps. */
const IMMEDIATE = {
  if: { properties: { immediate: { const: true } }, required: ['immediate'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { properties: { strategy: { const: 'rolling' } } },
};

export const RollbackBody = Type.Object(
  {
    service_name: ServiceName,
    version: Version,
    strategy: Strategy,
    immediate: Type.Optional(
      Type.Boolean({
        description: 'The job that runs is undone for it, waiting jobs are cancelled, and all pods roll at once',
      }),
    ),
    webhook_secret: Type.Optional(Secret),
    secret: Type.Optional(Secret),
  },
  documented(IMMEDIATE),
);

export const JobResponse = Type.Object({
  status: Type.Literal('accepted'),
  job_id: Type.String({ description: '(deploy|rollback)-<service_name>-<version>-<unix seconds>' }),
  message: Message,
  service_name: ServiceName,
  version: Version,
});
