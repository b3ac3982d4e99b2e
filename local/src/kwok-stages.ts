/** One document of a kwok configuration. */
interface Stage {
  readonly apiVersion: 'kwok.x-k8s.io/v1alpha1';
  readonly kind: 'Stage';
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly resourceRef: { readonly apiGroup: 'v1'; readonly kind: 'Pod' | 'Node' };
    readonly selector: { readonly matchExpressions: readonly Expression[] };
    readonly delay?: { readonly durationMilliseconds: number };
    readonly immediateNextStage?: boolean;
    readonly next: {
      readonly statusTemplate?: string;
      readonly finalizers?: { readonly empty: true };
      readonly delete?: true;
    };
  };
}

/** A jq expression on the object and what its results must be. */
interface Expression {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values?: readonly string[];
}

const alive: Expression = { key: '.metadata.deletionTimestamp', operator: 'DoesNotExist' };
const deleted: Expression = { key: '.metadata.deletionTimestamp', operator: 'Exists' };
const onNode: Expression = { key: '.spec.nodeName', operator: 'Exists' };
const ofJob: Expression = { key: '.metadata.ownerReferences.[].kind', operator: 'In', values: ['Job'] };

const phase = (value: string): Expression => ({ key: '.status.phase', operator: 'In', values: [value] });

const imageTag = (operator: 'In' | 'NotIn', pattern: string): Expression => ({
  key: `.spec.containers[].image | test(":${pattern}")`,
  operator,
  values: ['true'],
});

const readyIs = (operator: 'In' | 'NotIn', status: string): Expression => ({
  key: '.status.conditions.[] | select( .type == "Ready" ) | .status',
  operator,
  values: [status],
});

const waitingFor = (operator: 'In' | 'NotIn', reason: string): Expression => ({
  key: '.status.containerStatuses.[0].state.waiting.reason',
  operator,
  values: [reason],
});

const pending = [alive, onNode, phase('Pending')];
const running = [alive, phase('Running')];

// The templates are Go templates that yield YAML; $now is the same in all parts of one.
const now = '{{ $now := Now }}\n';

const condition = (type: string, status: string): string =>
  `- {type: ${type}, status: "${status}", lastTransitionTime: {{ $now | Quote }}}\n`;

const conditions = (ready: 'True' | 'False'): string =>
  'conditions:\n' +
  condition('Initialized', 'True') +
  condition('PodScheduled', 'True') +
  condition('ContainersReady', ready) +
  condition('Ready', ready);

interface ContainerState {
  readonly state: string;
  readonly ready?: boolean;
  readonly restartCount?: number;
}

const containerStatuses = ({ state, ready = false, restartCount = 0 }: ContainerState): string => `containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: ${ready}
  started: ${ready}
  restartCount: ${restartCount}
  state: ${state}
{{ end }}
`;

const started = '{running: {startedAt: {{ $now | Quote }}}}';

const waiting = (reason: string, message: string): string => `{waiting: {reason: ${reason}, message: "${message}"}}`;

const terminated = (exitCode: number, reason: string): string =>
  `{terminated: {exitCode: ${exitCode}, reason: ${reason}, ` +
  'startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}';

const addresses = `{{ with PodIPsWith .spec.nodeName false ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
podIP: {{ index . 0 | Quote }}
podIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
startTime: {{ $now | Quote }}
`;

const nodeConditions = (times: string): string => `conditions:
{{ range NodeConditions }}
- {type: {{ .type | Quote }}, status: {{ .status | Quote }}, reason: {{ .reason | Quote }}, message: {{ .message | Quote }}, ${times}}
{{ end }}
`;

interface StageOptions {
  readonly on: 'Pod' | 'Node';
  readonly when: readonly Expression[];
  readonly afterMs?: number;
  readonly status?: string;
  readonly next?: Stage['spec']['next'];
  readonly immediateNextStage?: boolean;
}

const stage = (name: string, options: StageOptions): Stage => ({
  apiVersion: 'kwok.x-k8s.io/v1alpha1',
  kind: 'Stage',
  metadata: { name },
  spec: {
    resourceRef: { apiGroup: 'v1', kind: options.on },
    selector: { matchExpressions: options.when },
    ...(options.afterMs === undefined ? {} : { delay: { durationMilliseconds: options.afterMs } }),
    ...(options.immediateNextStage === undefined ? {} : { immediateNextStage: options.immediateNextStage }),
    next: options.next ?? { statusTemplate: `${now}${options.status ?? ''}` },
  },
});

const podStages: readonly Stage[] = [
  stage('pod-ready', {
    on: 'Pod',
    when: [...pending, imageTag('NotIn', '(crash|missing|unready|slow)')],
    afterMs: 50,
    status: `${conditions('True')}${containerStatuses({ state: started, ready: true })}${addresses}phase: Running\n`,
  }),
  stage('pod-slow', {
    on: 'Pod',
    when: [...pending, imageTag('In', 'slow')],
    afterMs: 2_000,
    status: `${conditions('True')}${containerStatuses({ state: started, ready: true })}${addresses}phase: Running\n`,
  }),
  stage('pod-unready', {
    on: 'Pod',
    when: [...pending, imageTag('In', 'unready')],
    afterMs: 50,
    status: `${conditions('False')}${containerStatuses({ state: started })}${addresses}phase: Running\n`,
  }),
  stage('pod-missing', {
    on: 'Pod',
    when: [...pending, imageTag('In', 'missing'), waitingFor('NotIn', 'ImagePullBackOff')],
    afterMs: 50,
    status: `${conditions('False')}${containerStatuses({ state: waiting('ImagePullBackOff', 'no such image') })}${addresses}phase: Pending\n`,
  }),
  stage('pod-crash', {
    on: 'Pod',
    when: [...pending, imageTag('In', 'crash')],
    afterMs: 50,
    status: `${conditions('False')}${containerStatuses({
      state: waiting('CrashLoopBackOff', 'back-off 10s restarting failed container'),
      restartCount: 3,
    })}${addresses}phase: Running\n`,
  }),
  stage('pod-flaky', {
    on: 'Pod',
    when: [...running, imageTag('In', 'flaky'), readyIs('In', 'True')],
    afterMs: 3_000,
    status: `${conditions('False')}${containerStatuses({ state: started, restartCount: 1 })}phase: Running\n`,
  }),
  stage('pod-crumble', {
    on: 'Pod',
    when: [...running, imageTag('In', 'crumble'), readyIs('In', 'True')],
    afterMs: 1_500,
    status: `${conditions('False')}${containerStatuses({
      state: waiting('CrashLoopBackOff', 'back-off 10s restarting failed container'),
      restartCount: 3,
    })}phase: Running\n`,
  }),
  stage('pod-done', {
    on: 'Pod',
    when: [...running, ofJob, imageTag('NotIn', 'fail')],
    afterMs: 200,
    status: `${conditions('False')}${containerStatuses({ state: terminated(0, 'Completed') })}phase: Succeeded\n`,
  }),
  stage('pod-failed', {
    on: 'Pod',
    when: [...running, ofJob, imageTag('In', 'fail')],
    afterMs: 200,
    status: `${conditions('False')}${containerStatuses({ state: terminated(1, 'Error') })}phase: Failed\n`,
  }),
  stage('pod-gone', { on: 'Pod', when: [deleted, onNode], next: { finalizers: { empty: true }, delete: true } }),
];

const nodeStages: readonly Stage[] = [
  stage('node-ready', {
    on: 'Node',
    // The label "down" keeps a node from coming up.
    when: [readyIs('NotIn', 'True'), { key: '.metadata.labels["down"]', operator: 'DoesNotExist' }],
    status:
      'addresses: [{type: InternalIP, address: {{ NodeIP | Quote }}}]\n' +
      nodeConditions('lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}'),
  }),
  stage('node-heartbeat', {
    on: 'Node',
    when: [readyIs('In', 'True')],
    afterMs: 20_000,
    immediateNextStage: false,
    status: nodeConditions('lastHeartbeatTime: {{ $now | Quote }}'),
  }),
];

/**
 * What kwok makes of pods and nodes. A pod's fate is decided by its image's tag: `crash...`,
 * `missing...` (cannot be pulled) and `unready...` never become ready, `slow...` does after 2 s,
 * `flaky...` stops being ready after 3 s, `crumble...` crashes again and again from 1.5 s on, a
 * Job's pod fails with `fail...` and succeeds otherwise; all others become ready at once. Kwok
 * needs the nodes' stages too as soon as it is given any.
 *
 * @returns the text of a configuration file.
 */
export function kwokConfiguration(): string {
  return [...podStages, ...nodeStages].map((document) => `---\n${JSON.stringify(document)}\n`).join('');
}

/** Manifests of the fake nodes, for `kubectl apply`. */
export function fakeNodes(count: number): string {
  // Fake pods cost a node nothing.
  const resources = { cpu: '1000', memory: '4Ti', pods: '2000' };
  const items = Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: `fake-${index + 1}`, labels: { 'kubernetes.io/hostname': `fake-${index + 1}` } },
    status: { allocatable: resources, capacity: resources },
  }));
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}
