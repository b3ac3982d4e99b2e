import { hash } from 'node:crypto';
import type { PodTemplate } from '@rollcall/platform/kube/builtin-kinds.ts';

/** Templates are never changed in place, and are read with every event of their pods. */
const fingerprints = new WeakMap<PodTemplate, string>();

/**
 * A digest of a pod template: equal for templates that say the same, whatever the order of their
 * fields.
 */
export function templateFingerprint(template: PodTemplate): string {
  const known = fingerprints.get(template);
  if (known !== undefined) return known;
  const fingerprint = hash('sha256', canonicalJson(template), 'hex');
  fingerprints.set(template, fingerprint);
  return fingerprint;
}

/** Whether two values are the same JSON; absent and null fields are none. */
export function isSameJson(a: unknown, b: unknown): boolean {
  return a === b || canonicalJson(a ?? null) === canonicalJson(b ?? null);
}

export function isAbsent(value: unknown): boolean {
  return value === null || value === undefined;
}

/**
 * JSON with sorted keys and without null fields: `creationTimestamp: null` comes and goes with API
 * server versions.
 */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, field: unknown) => (isObject(field) ? sorted(field) : field));
}

function sorted(object: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(object)
      .filter(([, value]) => !isAbsent(value))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

/**
 * Whether the API server made `observed` of `desired`: all that was asked for is there, and what
 * was not is default values. Labels and annotations have no defaults, so those must be the same.
 */
export function isAsDesired(desired: PodTemplate, observed: PodTemplate): boolean {
  return (
    isSameJson(desired.metadata?.labels ?? {}, observed.metadata?.labels ?? {}) &&
    isSameJson(desired.metadata?.annotations ?? {}, observed.metadata?.annotations ?? {}) &&
    isWithin(desired.spec, observed.spec)
  );
}

/**
 * Lists that no API server puts anything into: where they were not asked for they are something
 * else than what was.
 */
const withoutDefaults = ['initContainers', 'volumes', 'volumeMounts'];

function isWithin(desired: unknown, observed: unknown): boolean {
  if (Array.isArray(desired)) {
    // An empty list is not stored.
    if (observed === undefined) return desired.length === 0;
    return (
      Array.isArray(observed) &&
      observed.length === desired.length &&
      desired.every((item, index) => isWithin(item, observed[index]))
    );
  }
  if (isObject(desired)) {
    return (
      isObject(observed) &&
      Object.entries(desired).every(([key, value]) => isWithin(value, observed[key])) &&
      withoutDefaults.every((key) => isWithin(desired[key] ?? [], observed[key]))
    );
  }
  return desired === observed || (isEmptyScalar(desired) && isEmptyScalar(observed));
}

/** Zero values of optional fields are not stored. */
function isEmptyScalar(value: unknown): boolean {
  return isAbsent(value) || value === '' || value === false || value === 0;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
