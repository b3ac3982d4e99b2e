import type { HealthCheckStatus, ServiceRegistration } from '@rollcall/crds/types.gen.ts';

/** Ours, and what programs that come from Eureka, Consul and Nacos or probes of Spring say. */
const AILING: ReadonlySet<string> = new Set([
  'unhealthy',
  'degraded',
  'draining',
  'critical',
  'down',
  'error',
  'fail',
  'failed',
  'failing',
  'out_of_service',
  'starting',
  'stopping',
]);
const WELL: ReadonlySet<string> = new Set(['healthy', 'ok', 'up', 'pass', 'passing', 'ready', 'running', 'serving']);

/**
 * Why an instance is to get requests only where no other does (docs/decisions/0300, 0302): its own
 * word, or its check. Undefined: it is healthy. Words that nobody knows say nothing against it.
 */
export function ailmentOf(
  word: string | undefined,
  check: 'Passing' | 'Failing' | undefined,
): 'report' | 'check' | undefined {
  if (word !== undefined && AILING.has(word.toLowerCase())) return 'report';
  return check === 'Failing' ? 'check' : undefined;
}

/**
 * What the check of an instance came to: the one that it declares or, of the endpoint of a Service,
 * that of Kubernetes. What is left of a check that is declared no more counts for nothing.
 */
export function checkStatusOf({ spec, status }: ServiceRegistration): HealthCheckStatus | undefined {
  return spec.check !== undefined || spec.source === 'KubernetesService' ? status?.check : undefined;
}

/** Whether the word says that all is well, as a delivery that waits for it has to know. */
export function isWell(word: string): boolean {
  return WELL.has(word.toLowerCase());
}
