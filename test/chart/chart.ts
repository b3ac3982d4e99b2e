import { join } from 'node:path';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { inject } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { runHelm } from '../support/helm.ts';

export const CHART = join(REPOSITORY, 'charts', 'rollcall');
export const RELEASE = 'rollcall';
export const NAMESPACE = 'rollcall';

/** Values of the chart, as far as they are not the defaults. */
export type Values = Readonly<Record<string, unknown>>;

/** An object that the chart makes. */
export interface ChartObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

export interface HelmOptions {
  readonly values?: Values;
  /** The cluster; without one Helm has none to ask. */
  readonly kubeconfig?: string;
}

/**
 * Runs Helm with a home of its own.
 *
 * @returns what it prints.
 * @throws with what it says when it fails.
 */
export function helm(args: readonly string[], { values, kubeconfig }: HelmOptions = {}): Promise<string> {
  const home = join(inject('temporaryDirectory'), 'helm');
  return runHelm({ helm: inject('kubernetesBinaries').helm, kubeconfigPath: kubeconfig, home }, args, values);
}

/** What {@link renderChart} has made, by its values: many tests read the same. */
const rendered = new Map<string, Promise<readonly ChartObject[]>>();

/** All objects of the chart with these values, those of hooks included. */
export function renderChart(values: Values = {}): Promise<readonly ChartObject[]> {
  const key = JSON.stringify(values);
  const objects = rendered.get(key) ?? renderAnew(values);
  rendered.set(key, objects);
  return objects;
}

/** As {@link renderChart}, by a run of Helm of its own: it makes new random values. */
export async function renderAnew(values: Values): Promise<readonly ChartObject[]> {
  const output = await helm(['template', RELEASE, CHART, '--namespace', NAMESPACE], { values });
  const documents = parseAllDocuments(output, { uniqueKeys: true });
  if (!Array.isArray(documents)) return [];
  return documents.flatMap((document) => {
    const [fault] = document.errors;
    if (fault !== undefined) throw fault;
    const object = document.toJS() as ChartObject | null;
    return object === null ? [] : [object];
  });
}

/** The object of this kind and name. @throws when the chart makes none, or several. */
export function objectOf(objects: readonly ChartObject[], kind: string, name: string): ChartObject {
  const [found, ...more] = objects.filter((object) => object.kind === kind && object.metadata.name === name);
  if (found === undefined || more.length > 0) throw new Error(`There is not one ${kind} ${name}`);
  return found;
}

interface PodTemplate {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: {
    readonly containers: readonly {
      readonly args?: readonly string[];
      readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[];
      readonly [field: string]: unknown;
    }[];
    readonly volumes?: readonly object[];
    readonly [field: string]: unknown;
  };
}

/** The pods of Deployments and StatefulSets, and the test's. */
export function podsOf(objects: readonly ChartObject[]): { readonly name: string; readonly template: PodTemplate }[] {
  return objects.flatMap((object) => {
    const { name } = object.metadata;
    if (object.kind === 'Pod') return [{ name, template: object as unknown as PodTemplate }];
    if (object.kind !== 'Deployment' && object.kind !== 'StatefulSet') return [];
    const { template } = object['spec'] as { readonly template: PodTemplate };
    return [{ name, template }];
  });
}

/** The environment of the only container of a Deployment. */
export function environmentOf(objects: readonly ChartObject[], name: string): Record<string, string | object> {
  const pod = podsOf(objects).find((candidate) => candidate.name === name);
  const variables = pod?.template.spec.containers[0]?.env ?? [];
  return Object.fromEntries(variables.map((variable) => [variable.name, variable.value ?? variable.valueFrom ?? '']));
}
