import { pathPattern } from '@rollcall/platform/service-address.ts';
import { RegistryError } from '../../common/errors.ts';

export const healthCheckTypes = ['http', 'tcp', 'grpc'] as const;
type HealthCheckType = (typeof healthCheckTypes)[number];

/** How the operator asks the instance whether it is well (docs/decisions/0302). */
export interface HealthCheck {
  readonly type: HealthCheckType;
  /** Of `http` only, below the URL; absent: the URL itself. */
  readonly path?: string;
  /** Of `grpc` only; absent: the server as a whole. */
  readonly service?: string;
  readonly intervalSeconds: number;
  readonly timeoutSeconds: number;
  readonly failureThreshold: number;
  readonly successThreshold: number;
}

/** What a check has come to. */
export interface HealthCheckResult {
  readonly status: 'Passing' | 'Failing';
  readonly since: Date;
  /** What was seen at the last change. */
  readonly message: string;
}

const PATH =
  "an absolute path without '//' at its beginning and the segments '.' and '..', with two digits after each '%'";

/** As JSON Schema has it; the API server has the same for manifests. */
export const healthCheckRules = {
  path: { minLength: 1, maxLength: 256, pattern: `^${pathPattern}(?:\\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?$` },
  service: { minLength: 1, maxLength: 256, pattern: '^[A-Za-z0-9._/-]+$' },
  intervalSeconds: { minimum: 5, maximum: 300 },
  timeoutSeconds: { minimum: 1, maximum: 60 },
  threshold: { minimum: 1, maximum: 10 },
} as const;

const PATTERNS = {
  path: new RegExp(healthCheckRules.path.pattern, 'u'),
  service: new RegExp(healthCheckRules.service.pattern, 'u'),
};

/** What a program says of its check; the rest has its default. */
interface DeclaredCheck {
  readonly type: HealthCheckType;
  readonly path?: string | undefined;
  readonly service?: string | undefined;
  readonly intervalSeconds?: number | undefined;
  readonly timeoutSeconds?: number | undefined;
  readonly failureThreshold?: number | undefined;
  readonly successThreshold?: number | undefined;
}

/**
 * The whole check, with the defaults that the API server has for manifests.
 *
 * @throws RegistryError INVALID_REQUEST, saying which rule is broken.
 */
export function healthCheckOf(declared: DeclaredCheck): HealthCheck {
  const { type, path, service, intervalSeconds = 10, timeoutSeconds = 2 } = declared;
  const { failureThreshold = 3, successThreshold = 2 } = declared;
  checkText('path', path, type === 'http');
  checkText('service', service, type === 'grpc');
  checkNumber('interval_seconds', intervalSeconds, healthCheckRules.intervalSeconds);
  checkNumber('timeout_seconds', timeoutSeconds, healthCheckRules.timeoutSeconds);
  checkNumber('failure_threshold', failureThreshold, healthCheckRules.threshold);
  checkNumber('success_threshold', successThreshold, healthCheckRules.threshold);
  return {
    type,
    ...(path === undefined ? {} : { path }),
    ...(service === undefined ? {} : { service }),
    intervalSeconds,
    timeoutSeconds,
    failureThreshold,
    successThreshold,
  };
}

function checkText(field: 'path' | 'service', text: string | undefined, isOfType: boolean): void {
  if (text === undefined) return;
  if (!isOfType) throw broken(field, `be absent: it is for checks of the type ${field === 'path' ? 'http' : 'grpc'}`);
  const { maxLength } = healthCheckRules[field];
  if (text.length <= maxLength && PATTERNS[field].test(text)) return;
  const what = field === 'path' ? PATH : 'the name of a gRPC service';
  throw broken(field, `be ${what} of at most ${maxLength} characters`);
}

function checkNumber(
  field: string,
  value: number,
  rules: { readonly minimum: number; readonly maximum: number },
): void {
  const { minimum, maximum } = rules;
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return;
  throw broken(field, `be a whole number from ${minimum} to ${maximum}`);
}

function broken(field: string, rule: string): RegistryError {
  return new RegistryError('INVALID_REQUEST', `check.${field} must ${rule}`);
}
