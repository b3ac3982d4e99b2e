import { type HttpRoute, httpRouteKind, type Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Change } from '../../runtime/decision.ts';
import { disown } from '../../runtime/field-manager.ts';
import type { JobContext } from '../job/context.ts';
import { changedFromOutside } from '../job/failures.ts';
import { isSameJson } from '../workload/fingerprint.ts';
import { canaryServiceName } from '../workload/names.ts';
import { patchAndMark, type Steering } from './selector.ts';

type Rules = NonNullable<HttpRoute['spec']['rules']>;
type BackendRef = NonNullable<Rules[number]['backendRefs']>[number];

/** The largest weight that Gateway API allows. */
const WEIGHT_LIMIT = 1_000_000;

/** Whether a backend is a Service of the route's own namespace. */
function isService({ group = '', kind = 'Service', namespace }: BackendRef, own: string | undefined): boolean {
  return group === '' && kind === 'Service' && (namespace === undefined || namespace === own);
}

/** The Services, of those given, that a route sends traffic to. */
export function backendsOf(route: HttpRoute, services: ReadonlySet<string>): readonly string[] {
  const { namespace } = route.metadata;
  const names = (route.spec.rules ?? [])
    .flatMap(({ backendRefs = [] }) => backendRefs)
    .filter((backend) => isService(backend, namespace) && services.has(backend.name))
    .map(({ name }) => name);
  return [...new Set(names)];
}

/**
 * Rules in which `weight` percent of what a Service gets go to its canary. All other shares stay
 * exactly as they are, for which the weights of a rule are multiplied; so do filters and everything
 * else.
 */
export function withWeight(rules: Rules, services: OwnServices, weight: number): Rules {
  return rules.map((rule) => {
    const backends = rule.backendRefs ?? [];
    if (!backends.some((backend) => isOneOf(backend, services))) return rule;
    return { ...rule, backendRefs: splitBackends(backends, services, weight) };
  });
}

/** Services of the route's namespace. */
interface OwnServices {
  readonly namespace: string | undefined;
  readonly names: ReadonlySet<string>;
}

function isOneOf(backend: BackendRef, { namespace, names }: OwnServices): boolean {
  return isService(backend, namespace) && names.has(backend.name);
}

function splitBackends(backends: readonly BackendRef[], services: OwnServices, weight: number): BackendRef[] {
  const split = backends.flatMap((backend): BackendRef[] => {
    const given = backend.weight ?? 1;
    if (!isOneOf(backend, services)) {
      return [{ ...backend, weight: given * 100 }];
    }
    return [
      { ...backend, weight: given * (100 - weight) },
      { ...backend, name: canaryServiceName(backend.name), weight: given * weight },
    ];
  });
  return reduce(split);
}

/** The same ratios in the smallest numbers; rounded only where even those are above the limit. */
function reduce(backends: readonly BackendRef[]): BackendRef[] {
  const weights = backends.map(({ weight = 1 }) => weight);
  const divisor = weights.reduce(greatestCommonDivisor, 0) || 1;
  const largest = Math.max(...weights) / divisor;
  const scale = largest > WEIGHT_LIMIT ? WEIGHT_LIMIT / largest : 1;
  return backends.map((backend, index) => {
    const exact = (weights[index] ?? 0) / divisor;
    return { ...backend, weight: exact === 0 ? 0 : Math.max(1, Math.floor(exact * scale)) };
  });
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/**
 * Rules in which what leads to a canary leads to the Service that it stands beside, whose share it
 * was: as everything was before the weights, whatever else somebody has changed since. A Service
 * without its canary's share might be left with none.
 */
function withoutCanaryBackends(rules: Rules, { namespace, names }: OwnServices): Rules {
  const besides = new Map([...names].map((name) => [canaryServiceName(name), name]));
  const besideOf = (backend: BackendRef) => (isService(backend, namespace) ? besides.get(backend.name) : undefined);
  return rules.map((rule) => {
    const backends = rule.backendRefs ?? [];
    if (!backends.some((backend) => besideOf(backend) !== undefined)) return rule;
    const kept: BackendRef[] = backends.filter((backend) => besideOf(backend) === undefined);
    for (const canary of backends) {
      const name = besideOf(canary);
      if (name === undefined) continue;
      const weight = canary.weight ?? 1;
      const index = kept.findIndex((backend) => isService(backend, namespace) && backend.name === name);
      const main = kept[index];
      if (main === undefined) kept.push({ ...canary, name });
      else kept[index] = { ...main, weight: Math.min(WEIGHT_LIMIT, (main.weight ?? 1) + weight) };
    }
    return { ...rule, backendRefs: kept };
  });
}

/**
 * Rules without what leads to the canaries of these Services, of the routes that have such or are
 * marked otherwise.
 */
export function withoutCanaries(
  routes: readonly HttpRoute[],
  services: readonly Service[],
  isMarked: (route: HttpRoute) => boolean,
): readonly { readonly name: string; readonly rules: Rules }[] {
  const names = new Set(services.map(({ metadata }) => metadata.name));
  return routes.flatMap((route) => {
    const { metadata, spec } = route;
    const rules = spec.rules ?? [];
    const kept = withoutCanaryBackends(rules, { namespace: metadata.namespace, names });
    return isSameJson(rules, kept) && !isMarked(route) ? [] : [{ name: metadata.name, rules: kept }];
  });
}

interface SavedRoute {
  readonly route: HttpRoute;
  readonly rules: Rules;
}

/** The routes that the job found, as far as they are still there. */
function savedRoutes({ saved, around }: JobContext): readonly SavedRoute[] {
  return saved.routes.flatMap(({ name, rules }) => {
    const route = around.routes?.find(({ metadata }) => metadata.name === name);
    return route === undefined || route.metadata.deletionTimestamp !== undefined ? [] : [{ route, rules }];
  });
}

/** Sends `weight` percent to the canaries, undefined being: rules as they were saved. */
export function steerRoutes(context: JobContext, weight: number | undefined): Steering {
  const changes: Change[] = [];
  for (const saved of savedRoutes(context)) {
    const { route } = saved;
    if (!isOurs(context, saved)) {
      return { changes: [], done: false, failure: changedFromOutside(`HTTPRoute ${route.metadata.name}`) };
    }
    const wanted = wantedRules(context, saved, weight);
    if (!isSameJson(route.spec.rules, wanted)) {
      changes.push({ action: 'patch', kind: httpRouteKind, object: route, patch: { spec: { rules: wanted } } });
    }
  }
  return { changes, done: changes.length === 0 };
}

/**
 * Names the canaries on the routes that lead to none, without giving them a share: gateways hear of
 * routes, Services and endpoints in any order, and answer what leads to a Service that they do not
 * know with an error.
 */
export function introduceCanaries(context: JobContext): readonly Change[] {
  return savedRoutes(context).flatMap((saved) => {
    const { route, rules } = saved;
    if (!isSameJson(route.spec.rules, rules)) return [];
    const patch = { spec: { rules: wantedRules(context, saved, 0) } };
    return [{ action: 'patch', kind: httpRouteKind, object: route, patch } as const];
  });
}

/** A route of the job's of which a gateway has not said that it leads where its rules say now. */
export function lateRoute(context: JobContext): HttpRoute | undefined {
  return savedRoutes(context)
    .map(({ route }) => route)
    .find(isLate);
}

/** Where no gateway says anything there is nothing to wait for. */
function isLate({ metadata: { generation = 0 }, status }: HttpRoute): boolean {
  const conditions = (status?.parents ?? []).flatMap((parent) => parent.conditions ?? []);
  return conditions.some(
    ({ type, status: holds, observedGeneration = generation }) =>
      type === 'ResolvedRefs' && (holds !== 'True' || observedGeneration < generation),
  );
}

/** Gives routes their saved rules back, and marks them like the Services that are rolled back. */
export function steerRoutesBack(context: JobContext): readonly Change[] {
  const uid = context.job.metadata.uid ?? '';
  return savedRoutes(context).flatMap((saved) => {
    const { route } = saved;
    const rules = rulesBefore(context, saved);
    const isThere = isSameJson(route.spec.rules ?? [], rules);
    return patchAndMark({ kind: httpRouteKind, object: route }, uid, isThere ? undefined : { rules });
  });
}

/** Leaves the routes as their users made them. */
export function releaseRoutes(context: JobContext): readonly Change[] {
  return savedRoutes(context).flatMap((saved) => {
    const { route } = saved;
    const rules = rulesBefore(context, saved);
    const isThere = isSameJson(route.spec.rules ?? [], rules);
    const changes = patchAndMark({ kind: httpRouteKind, object: route }, null, isThere ? undefined : { rules });
    return changes.length > 0 ? changes : disown(httpRouteKind, route, []);
  });
}

/**
 * As they were saved; of rules that somebody else has edited since, all but what leads to the
 * canaries.
 */
function rulesBefore(context: JobContext, saved: SavedRoute): Rules {
  return isOurs(context, saved)
    ? saved.rules
    : withoutCanaryBackends(saved.route.spec.rules ?? [], servicesOf(context, saved));
}

function wantedRules(context: JobContext, saved: SavedRoute, weight: number | undefined): Rules {
  return weight === undefined ? saved.rules : withWeight(saved.rules, servicesOf(context, saved), weight);
}

function servicesOf({ saved }: JobContext, { route }: SavedRoute): OwnServices {
  return { namespace: route.metadata.namespace, names: new Set(saved.services.map(({ name }) => name)) };
}

/** The least weight that the canary has on a route of the job's. */
export function weightOnRoutes(context: JobContext): number {
  const weights = savedRoutes(context).map((saved) => {
    return (
      weightsOf(context).find((weight) => isSameJson(saved.route.spec.rules, wantedRules(context, saved, weight))) ?? 0
    );
  });
  return weights.length === 0 ? 0 : Math.min(...weights);
}

/** Whether the rules are as saved, or as the job sets them at one of its steps. */
function isOurs(context: JobContext, saved: SavedRoute): boolean {
  const weights = [undefined, 0, ...weightsOf(context)];
  return weights.some((weight) => isSameJson(saved.route.spec.rules, wantedRules(context, saved, weight)));
}

/** What a route's canaries may have; with `maxSurge` their pods may be too few for what a step asks for. */
function weightsOf({ policy }: JobContext): readonly number[] {
  const { maxSurge, steps } = policy.canary;
  return maxSurge === undefined
    ? steps.map(({ weight }) => weight)
    : Array.from({ length: 101 }, (_, weight) => weight);
}
