import { ANY_MEMBER, documented, memberRules } from '@rollcall/platform/http/documented.ts';
import { type Static, Type } from 'typebox';
import { Timestamp, timestamp } from '../../http/schemas.ts';
import {
  type HealthCheck,
  type HealthCheckResult,
  healthCheckOf,
  healthCheckRules,
  healthCheckTypes,
} from '../domain/health-check.ts';

/** A member that checks of one type alone may have. */
function onlyOf(type: HealthCheck['type'], member: keyof HealthCheck): object {
  return { anyOf: [{ not: { required: [member] } }, { properties: { type: { const: type } } }] };
}

/** The check that a program declares. */
export const Check = Type.Object(
  {
    type: Type.Enum([...healthCheckTypes], {
      description:
        'http: GET, passed by a status from 200 to 399; tcp: a connection; grpc: grpc.health.v1.Health/Check',
    }),
    path: Type.Optional(
      Type.String({
        description: 'Of http, below service_url; absent: service_url itself',
        ...documented(healthCheckRules.path),
      }),
    ),
    service: Type.Optional(
      Type.String({
        description: 'Of grpc: whose health is asked for; absent: that of the server',
        ...documented(healthCheckRules.service),
      }),
    ),
    interval_seconds: Type.Optional(
      Type.Integer({ description: '10 when absent', ...documented(healthCheckRules.intervalSeconds) }),
    ),
    timeout_seconds: Type.Optional(
      Type.Integer({
        description: 'Until the end of the answer; 2 when absent',
        ...documented(healthCheckRules.timeoutSeconds),
      }),
    ),
    failure_threshold: Type.Optional(
      Type.Integer({
        description: 'After so many failures in a row it is failing; 3 when absent',
        ...documented(healthCheckRules.threshold),
      }),
    ),
    success_threshold: Type.Optional(
      Type.Integer({
        description: 'After so many successes in a row one that failed is passing again; 2 when absent',
        ...documented(healthCheckRules.threshold),
      }),
    ),
  },
  {
    description: 'Asked at the host and port of service_url by the operator; while it fails others get the requests',
    ...documented({
      propertyNames: memberRules,
      additionalProperties: ANY_MEMBER,
      allOf: [onlyOf('http', 'path'), onlyOf('grpc', 'service')],
    }),
  },
);

/** The same, with what it has come to. */
export const CheckRecord = Type.Object({
  ...Check.properties,
  status: Type.Optional(Type.Enum(['passing', 'failing'], { description: 'What it has come to; absent: nothing yet' })),
  since: Type.Optional(Timestamp),
  message: Type.Optional(Type.String({ description: 'What was seen when the status last changed' })),
});

/** The check as an instance's record has it. */
export function checkRecord(check: HealthCheck, result: HealthCheckResult | undefined): Static<typeof CheckRecord> {
  const { intervalSeconds, timeoutSeconds, failureThreshold, successThreshold, ...rest } = check;
  return {
    ...rest,
    interval_seconds: intervalSeconds,
    timeout_seconds: timeoutSeconds,
    failure_threshold: failureThreshold,
    success_threshold: successThreshold,
    ...(result === undefined
      ? {}
      : {
          status: result.status === 'Passing' ? 'passing' : 'failing',
          since: timestamp(result.since),
          message: result.message,
        }),
  };
}

/** The check in the body of a registration. @throws RegistryError INVALID_REQUEST. */
export function readCheck(check: Static<typeof Check> | undefined): HealthCheck | undefined {
  if (check === undefined) return undefined;
  const { type, path, service } = check;
  return healthCheckOf({
    type,
    path,
    service,
    intervalSeconds: check.interval_seconds,
    timeoutSeconds: check.timeout_seconds,
    failureThreshold: check.failure_threshold,
    successThreshold: check.success_threshold,
  });
}
