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

const notPulled: Expression = {
  key: '.status.containerStatuses.[0].state.waiting.reason',
  operator: 'NotIn',
  values: ['ImagePullBackOff'],
};

const pending = [alive, onNode, phase('Pending')];
const running = [alive, phase('Running')];

// The templates are Go templates that yield YAML; $now is the same in all parts of one.
const now = '{{ $now := Now }}\n';

interface PodStatus {
  readonly phase: 'Pending' | 'Running' | 'Succeeded' | 'Failed';
  readonly ready?: boolean;
  readonly restartCount?: number;
  /** Of each container. */
  readonly state: string;
  /** Whether it has its address already. */
  readonly hasAddress?: boolean;
}

const podStatus = ({ phase, ready = false, restartCount = 0, state, hasAddress = false }: PodStatus): string => {
  const readiness = ready ? 'True' : 'False';
  const conditions = Object.entries({
    Initialized: 'True',
    PodScheduled: 'True',
    ContainersReady: readiness,
    Ready: readiness,
  }).map(([type, status]) => `- {type: ${type}, status: "${status}", lastTransitionTime: {{ $now | Quote }}}\n`);
  return `conditions:
${conditions.join('')}containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: ${ready}
  started: ${ready}
  restartCount: ${restartCount}
  state: ${state}
{{ end }}
${hasAddress ? '' : addresses}phase: ${phase}
`;
};

const started = '{running: {startedAt: {{ $now | Quote }}}}';

const waiting = (reason: string, message: string): string => `{waiting: {reason: ${reason}, message: "${message}"}}`;

const crashing = {
  phase: 'Running',
  state: waiting('CrashLoopBackOff', 'back-off 10s restarting failed container'),
  restartCount: 3,
} as const;

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

const stage = (name: string, spec: object) => ({
  apiVersion: 'kwok.x-k8s.io/v1alpha1',
  kind: 'Stage',
  metadata: { name },
  spec,
});

interface StageOptions {
  readonly when: readonly Expression[];
  readonly afterMs: number;
  readonly status: PodStatus;
}

const podStage = (name: string, { when, afterMs, status }: StageOptions) =>
  stage(`pod-${name}`, {
    resourceRef: { apiGroup: 'v1', kind: 'Pod' },
    selector: { matchExpressions: when },
    delay: { durationMilliseconds: afterMs },
    next: { statusTemplate: `${now}${podStatus(status)}` },
  });

const podStages = [
  podStage('ready', {
    when: [...pending, imageTag('NotIn', '(crash|missing|unready|slow)')],
    afterMs: 50,
    status: { phase: 'Running', ready: true, state: started },
  }),
  podStage('slow', {
    when: [...pending, imageTag('In', 'slow')],
    afterMs: 2_000,
    status: { phase: 'Running', ready: true, state: started },
  }),
  podStage('unready', {
    when: [...pending, imageTag('In', 'unready')],
    afterMs: 50,
    status: { phase: 'Running', state: started },
  }),
  podStage('missing', {
    when: [...pending, imageTag('In', 'missing'), notPulled],
    afterMs: 50,
    status: { phase: 'Pending', state: waiting('ImagePullBackOff', 'no such image') },
  }),
  podStage('crash', { when: [...pending, imageTag('In', 'crash')], afterMs: 50, status: crashing }),
  podStage('flaky', {
    when: [...running, imageTag('In', 'flaky'), readyIs('In', 'True')],
    afterMs: 3_000,
    status: { phase: 'Running', state: started, restartCount: 1, hasAddress: true },
  }),
  podStage('crumble', {
    when: [...running, imageTag('In', 'crumble'), readyIs('In', 'True')],
    afterMs: 1_500,
    status: { ...crashing, hasAddress: true },
  }),
  podStage('done', {
    when: [...running, ofJob, imageTag('NotIn', 'fail')],
    afterMs: 200,
    status: { phase: 'Succeeded', state: terminated(0, 'Completed'), hasAddress: true },
  }),
  podStage('failed', {
    when: [...running, ofJob, imageTag('In', 'fail')],
    afterMs: 200,
    status: { phase: 'Failed', state: terminated(1, 'Error'), hasAddress: true },
  }),
  stage('pod-gone', {
    resourceRef: { apiGroup: 'v1', kind: 'Pod' },
    selector: { matchExpressions: [deleted, onNode] },
    next: { finalizers: { empty: true }, delete: true },
  }),
];

const nodeStages = [
  stage('node-ready', {
    resourceRef: { apiGroup: 'v1', kind: 'Node' },
    selector: { matchExpressions: [readyIs('NotIn', 'True')] },
    next: {
      statusTemplate: `${now}addresses: [{type: InternalIP, address: {{ NodeIP | Quote }}}]
${nodeConditions('lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}')}`,
    },
  }),
  stage('node-heartbeat', {
    resourceRef: { apiGroup: 'v1', kind: 'Node' },
    selector: { matchExpressions: [readyIs('In', 'True')] },
    delay: { durationMilliseconds: 20_000 },
    immediateNextStage: false,
    next: { statusTemplate: `${now}${nodeConditions('lastHeartbeatTime: {{ $now | Quote }}')}` },
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
