import { readFile } from 'node:fs/promises';
import type { ChartObject } from './chart.ts';

/** One verb on one resource, the smallest thing that a role can give. */
export interface Right {
  /** The name of the ServiceAccount. */
  readonly account: string;
  readonly role: string;
  /** Undefined: in the whole cluster. */
  readonly namespace: string | undefined;
  readonly group: string;
  /** With a subresource after a slash. */
  readonly resource: string;
  readonly verb: string;
  /** None: objects of every name. */
  readonly names: readonly string[];
}

/** What a process asked the API server to do. */
export interface Use {
  readonly account: string;
  readonly namespace: string | undefined;
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
  readonly name: string | undefined;
  readonly isAllowed: boolean;
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

export function isRole({ kind }: ChartObject): boolean {
  return kind === 'Role' || kind === 'ClusterRole';
}

export function isBinding({ kind }: ChartObject): boolean {
  return kind === 'RoleBinding' || kind === 'ClusterRoleBinding';
}

/**
 * The ServiceAccount that a role of the chart is bound to.
 *
 * @throws unless it is exactly one, in the same namespace or anywhere.
 */
function accountOf(role: ChartObject, objects: readonly ChartObject[]): string {
  const { name, namespace } = role.metadata;
  const bindings = objects.filter(
    ({ kind, metadata, roleRef }) =>
      kind === `${role.kind}Binding` && metadata.namespace === namespace && (roleRef as { name: string }).name === name,
  );
  const subjects = bindings.flatMap(({ subjects: bound }) => bound as { kind: string; name: string }[]);
  const [subject] = subjects;
  if (subject === undefined || subjects.length > 1 || subject.kind !== 'ServiceAccount') {
    throw new Error(`${role.kind} ${name} is not bound to exactly one ServiceAccount`);
  }
  return subject.name;
}

/** Everything that the roles among the objects give. */
export function rightsOf(objects: readonly ChartObject[]): Right[] {
  return objects.filter(isRole).flatMap((role) => {
    const { name, namespace } = role.metadata;
    const account = accountOf(role, objects);
    return (role['rules'] as readonly Rule[]).flatMap(({ apiGroups, resources, verbs, resourceNames = [] }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          verbs.map((verb) => ({ account, role: name, namespace, group, resource, verb, names: resourceNames })),
        ),
      ),
    );
  });
}

/** The rules that give these rights. */
export function rulesOf(rights: readonly Right[]): Rule[] {
  return rights.map(({ group, resource, verb, names }) => ({
    apiGroups: [group],
    resources: [resource],
    verbs: [verb],
    ...(names.length === 0 ? {} : { resourceNames: names }),
  }));
}

export function covers(right: Right, use: Use): boolean {
  return (
    right.account === use.account &&
    (right.namespace === undefined || right.namespace === use.namespace) &&
    right.group === use.group &&
    right.resource === use.resource &&
    right.verb === use.verb &&
    (right.names.length === 0 || (use.name !== undefined && right.names.includes(use.name)))
  );
}

export function describeRight({ account, namespace = '*', group, resource, verb, names }: Right): string {
  const kind = group === '' ? resource : `${resource}.${group}`;
  return `${account} in ${namespace}: ${verb} ${[kind, ...names].join(' ')}`;
}

export function describeUse({ account, namespace = '*', group, resource, verb }: Use): string {
  return `${account} in ${namespace}: ${verb} ${group === '' ? resource : `${resource}.${group}`}`;
}

interface AuditEvent {
  readonly stage: string;
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly apiGroup?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly annotations?: Readonly<Record<string, string>>;
  readonly responseStatus?: { readonly code?: number };
}

/**
 * What the ServiceAccounts of a namespace asked for, by the audit log of the API server; each once.
 */
export async function readUses(auditLog: string, namespace: string): Promise<Use[]> {
  const prefix = `system:serviceaccount:${namespace}:`;
  const uses = new Map<string, Use>();
  const lines = (await readFile(auditLog, 'utf8')).split('\n');
  // The last may still be being written.
  for (const line of lines.slice(0, -1)) {
    const { user, verb, objectRef, annotations, responseStatus } = JSON.parse(line) as AuditEvent;
    if (!user.username.startsWith(prefix) || objectRef?.resource === undefined) continue;
    const { resource, subresource, apiGroup = '', namespace: where, name } = objectRef;
    const use: Use = {
      account: user.username.slice(prefix.length),
      namespace: where,
      group: apiGroup,
      resource: subresource === undefined ? resource : `${resource}/${subresource}`,
      verb,
      name,
      isAllowed: annotations?.['authorization.k8s.io/decision'] === 'allow',
    };
    uses.set(JSON.stringify(use), use);
    // Who applies what is not there needs the right to create it as well.
    const created = { ...use, verb: 'create' };
    if (verb === 'patch' && responseStatus?.code === 201) uses.set(JSON.stringify(created), created);
  }
  return [...uses.values()];
}
