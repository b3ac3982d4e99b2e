import { deliveryJobKind, deliveryPolicyKind } from '@rollcall/crds/kinds.ts';
import type { Example, ExampleObject, Update } from './crd-example.ts';

const image = { type: 'image', url: 'registry.example.com/team/shop:1.2.0' };
const sha256 = `sha256:${'0a'.repeat(32)}`;
const sha512 = `sha512:${'0A'.repeat(64)}`;
const binary = { type: 'binary', url: 'https://files.example.com/shop-1.2.0.tar.gz', checksum: sha256 };
const deploy = { serviceName: 'shop', operation: 'Deploy', version: '1.2.0', artifact: image };

function job(changes: object): ExampleObject {
  return { name: 'deploy-shop-1.2.0-1763640000', spec: { ...deploy, ...changes } };
}

function policy(spec: object): ExampleObject {
  return { name: 'shop', spec: { serviceName: 'shop', ...spec } };
}

function check(spec: object): ExampleObject {
  return policy({ analysis: [{ name: 'errors', ...spec }] });
}

const prometheus = { address: 'http://prometheus:9090', query: 'up', threshold: { max: 0.5 } };
const imageFault = 'artifact.url of type image must be an image reference';
const binaryFault = 'artifact.url of type binary must be an absolute https URL';
const checksumFault = "checksum must be 'sha256:' and 64 hex digits";

const jobExamples: readonly Omit<Example, 'kind'>[] = [
  { sentence: 'a deployment of an image', object: job({}) },
  { sentence: 'an image pinned by a checksum', object: job({ artifact: { ...image, checksum: sha256 } }) },
  {
    sentence: 'an image of a registry with a port',
    object: job({ artifact: { url: 'localhost:5000/a/b_c/d--e:v1' } }),
  },
  { sentence: 'an image by digest', object: job({ artifact: { url: `Registry.example.com/shop:1@${sha256}` } }) },
  { sentence: 'an image of an IPv6 registry', object: job({ artifact: { url: '[2001:db8::1]:5000/shop' } }) },
  { sentence: 'a rollback of a binary', object: job({ operation: 'Rollback', artifact: binary, strategy: 'Canary' }) },
  { sentence: 'a binary with a SHA-512 in upper case', object: job({ artifact: { ...binary, checksum: sha512 } }) },
  { sentence: 'a non-ASCII service and version', object: job({ serviceName: 'Größe', version: 'v1+日本' }) },

  { sentence: 'no artifact', object: job({ artifact: undefined }), refusal: 'spec.artifact: Required value' },
  { sentence: 'an unknown operation', object: job({ operation: 'Restart' }), refusal: '"Deploy", "Rollback"' },
  {
    sentence: 'an unknown strategy',
    object: job({ strategy: 'rolling' }),
    refusal: '"Rolling", "BlueGreen", "Canary"',
  },
  { sentence: 'no version', object: job({ version: '' }), refusal: 'should be at least 1 chars long' },
  {
    sentence: 'a version with a space',
    object: job({ version: '1 2' }),
    refusal: "version must not be '.' or '..'",
  },
  { sentence: 'all services at once', object: job({ serviceName: '*' }), refusal: "serviceName '*' is reserved" },
  { sentence: 'a colon in the service name', object: job({ serviceName: 'a:b' }), refusal: "must not contain ':'" },
  {
    sentence: 'an unknown artifact type',
    object: job({ artifact: { ...image, type: 'helm' } }),
    refusal: '"image", "binary"',
  },
  {
    sentence: 'a URL for an image',
    object: job({ artifact: { url: 'https://example.com/shop' } }),
    refusal: imageFault,
  },
  { sentence: 'an upper-case image', object: job({ artifact: { url: 'example.com/Shop:1' } }), refusal: imageFault },
  { sentence: 'a space in the image', object: job({ artifact: { url: 'shop :1' } }), refusal: imageFault },
  { sentence: 'an image with an empty tag', object: job({ artifact: { url: 'shop:' } }), refusal: imageFault },
  {
    sentence: 'an image pinned by SHA-512',
    object: job({ artifact: { ...image, checksum: sha512 } }),
    refusal: 'artifact.checksum of type image must be a sha256 digest',
  },
  {
    sentence: 'a binary without a checksum',
    object: job({ artifact: { ...binary, checksum: undefined } }),
    refusal: 'artifact.checksum is required for type binary',
  },
  {
    sentence: 'a binary over plain HTTP',
    object: job({ artifact: { ...binary, url: 'http://files.example.com/shop' } }),
    refusal: binaryFault,
  },
  {
    sentence: 'a binary behind a password',
    object: job({ artifact: { ...binary, url: 'https://me:word@files.example.com/shop' } }),
    refusal: binaryFault,
  },
  { sentence: 'an empty checksum', object: job({ artifact: { ...binary, checksum: '' } }), refusal: checksumFault },
  {
    sentence: 'an MD5',
    object: job({ artifact: { ...binary, checksum: `md5:${'0'.repeat(32)}` } }),
    refusal: checksumFault,
  },
  {
    sentence: 'a SHA-256 that is too short',
    object: job({ artifact: { ...binary, checksum: `sha256:${'0'.repeat(63)}` } }),
    refusal: checksumFault,
  },
  {
    sentence: 'a SHA-512 of the length of a SHA-256',
    object: job({ artifact: { ...binary, checksum: `sha512:${'0'.repeat(64)}` } }),
    refusal: checksumFault,
  },
];

const policyExamples: readonly Omit<Example, 'kind'>[] = [
  { sentence: 'the least there is', object: policy({}) },
  { sentence: 'a policy for all services', object: policy({ serviceName: '*' }) },
  {
    sentence: 'everything there is, at its largest',
    object: policy({
      strategy: 'Canary',
      rolling: { maxSurge: '150%', maxUnavailable: 10000, progressDeadlineSeconds: 86400, bakeSeconds: 86400 },
      blueGreen: {
        smokeTest: { path: '/health?deep=1', port: 65535, scheme: 'HTTPS', expectedStatuses: [200, 204] },
        bakeSeconds: 86400,
        autoPromote: false,
      },
      canary: {
        maxSurge: '999%',
        steps: Array.from({ length: 50 }, (_, index) => ({ weight: 2 * index, pauseSeconds: 604800 })),
        trafficRouter: 'GatewayAPI',
      },
      requireHeartbeat: true,
      analysis: Array.from({ length: 20 }, (_, index) => ({
        name: `check-${index}`,
        count: 1000,
        webhook: { url: `https://checks.example.com/${'x'.repeat(2048 - 27)}` },
      })),
      onFailure: 'Hold',
      autoDeploy: true,
    }),
  },
  { sentence: 'a step that waits for promote', object: policy({ canary: { steps: [{ weight: 5 }] } }) },
  {
    sentence: 'a whole-number threshold',
    object: check({ prometheus: { ...prometheus, threshold: { min: 1, max: 1 } } }),
  },
  { sentence: 'no surge, the rest as the Deployment says', object: policy({ rolling: { maxSurge: 0 } }) },
  { sentence: 'an HTTP check', object: check({ http: { port: 8080 } }) },

  { sentence: 'no service', object: { name: 'shop', spec: {} }, refusal: 'spec.serviceName: Required value' },
  { sentence: 'a space in the service name', object: policy({ serviceName: 'a b' }), refusal: "must not contain ':'" },
  {
    sentence: 'neither surge nor unavailability',
    object: policy({ rolling: { maxSurge: '0%', maxUnavailable: 0 } }),
    refusal: 'maxSurge and maxUnavailable must not both be 0',
  },
  {
    sentence: 'a surge that is no percentage',
    object: policy({ rolling: { maxSurge: 'many' } }),
    refusal: 'maxSurge must be a number from 0 to 10000 or a percentage such as 25%',
  },
  {
    sentence: 'a surge below nothing',
    object: policy({ rolling: { maxSurge: -1 } }),
    refusal: 'maxSurge must be a number from 0 to 10000',
  },
  {
    sentence: 'more unavailable than there are',
    object: policy({ rolling: { maxUnavailable: '101%' } }),
    refusal: 'maxUnavailable must be a number from 0 to 10000 or a percentage up to 100%',
  },
  { sentence: 'a canary of one pod', object: policy({ canary: { maxSurge: 1 } }) },
  {
    sentence: 'a canary of no pods',
    object: policy({ canary: { maxSurge: '0%' } }),
    refusal: 'maxSurge must be a number from 1 to 10000 or a percentage from 1%',
  },
  {
    sentence: 'all traffic for a canary of few pods',
    object: policy({ canary: { maxSurge: 1, steps: [{ weight: 100 }] } }),
    refusal: 'with maxSurge no step can have the weight 100',
  },
  { sentence: 'no steps', object: policy({ canary: { steps: [] } }), refusal: 'should have at least 1 items' },
  {
    sentence: 'a weight above 100',
    object: policy({ canary: { steps: [{ weight: 101 }] } }),
    refusal: 'should be less than or equal to 100',
  },
  {
    sentence: 'an unknown traffic router',
    object: policy({ canary: { trafficRouter: 'Mesh' } }),
    refusal: '"Replicas", "GatewayAPI"',
  },
  { sentence: 'an unknown reaction', object: policy({ onFailure: 'Ignore' }), refusal: '"RollBack", "Hold"' },
  { sentence: 'a check of nothing', object: check({}), refusal: 'exactly one of prometheus, http and webhook' },
  {
    sentence: 'a check of two things',
    object: check({ prometheus, http: { port: 80 } }),
    refusal: 'exactly one of prometheus, http and webhook',
  },
  {
    sentence: 'a threshold without bounds',
    object: check({ prometheus: { ...prometheus, threshold: {} } }),
    refusal: 'threshold must set min, max or both',
  },
  {
    sentence: 'a threshold that nothing meets',
    object: check({ prometheus: { ...prometheus, threshold: { min: 2, max: 1.5 } } }),
    refusal: 'threshold.min must not be above threshold.max',
  },
  {
    sentence: 'a Prometheus that is no URL',
    object: check({ prometheus: { ...prometheus, address: 'prometheus:9090' } }),
    refusal: 'address must be an absolute http or https URL',
  },
  {
    sentence: 'a webhook behind a password',
    object: check({ webhook: { url: 'https://me:word@checks.example.com' } }),
    refusal: 'without credentials',
  },
  {
    sentence: 'a probe of a relative path',
    object: check({ http: { port: 80, path: 'health' } }),
    refusal: 'should match',
  },
  {
    sentence: 'two checks of one name',
    object: policy({ analysis: [check, check].map(() => ({ name: 'errors', http: { port: 80 } })) }),
    refusal: 'Duplicate value',
  },
];

export const deliveryExamples: readonly Example[] = [
  ...jobExamples.map((example) => ({ kind: deliveryJobKind, ...example })),
  ...policyExamples.map((example) => ({ kind: deliveryPolicyKind, ...example })),
];

const jobFault = 'everything but abort and promote is immutable';

const jobUpdates: readonly Omit<Update, 'kind'>[] = [
  { sentence: 'abort and promote', before: job({}), patch: { spec: { abort: true, promote: true } } },
  {
    sentence: 'promote undone once it was acted on',
    before: job({ promote: true }),
    patch: { spec: { promote: false } },
  },
  {
    sentence: 'abort with everything else unchanged',
    before: job({ artifact: binary, strategy: 'BlueGreen', requestedBy: 'ci' }),
    patch: { spec: { abort: true, strategy: 'BlueGreen', artifact: binary } },
  },
  { sentence: 'labels', before: job({}), patch: { metadata: { labels: { team: 'shop' } } } },
  {
    sentence: 'abort undone',
    before: job({ abort: true }),
    patch: { spec: { abort: false } },
    refusal: 'abort cannot be undone',
  },
  { sentence: 'another service', before: job({}), patch: { spec: { serviceName: 'store' } }, refusal: jobFault },
  { sentence: 'another operation', before: job({}), patch: { spec: { operation: 'Rollback' } }, refusal: jobFault },
  { sentence: 'another version', before: job({}), patch: { spec: { version: '1.2.1' } }, refusal: jobFault },
  {
    sentence: 'another image',
    before: job({}),
    patch: { spec: { artifact: { url: 'registry.example.com/team/shop:1.2.1' } } },
    refusal: jobFault,
  },
  {
    sentence: 'a checksum that was not there',
    before: job({}),
    patch: { spec: { artifact: { checksum: sha256 } } },
    refusal: jobFault,
  },
  {
    sentence: 'a strategy that was not there',
    before: job({}),
    patch: { spec: { strategy: 'Canary' } },
    refusal: jobFault,
  },
  {
    sentence: 'no strategy any more',
    before: job({ strategy: 'Canary' }),
    patch: { spec: { strategy: null } },
    refusal: jobFault,
  },
  {
    sentence: 'another strategy',
    before: job({ strategy: 'Canary' }),
    patch: { spec: { strategy: 'Rolling' } },
    refusal: jobFault,
  },
  {
    sentence: 'another requester',
    before: job({ requestedBy: 'a' }),
    patch: { spec: { requestedBy: 'b' } },
    refusal: jobFault,
  },
  {
    sentence: 'a requester that was not there',
    before: job({}),
    patch: { spec: { requestedBy: 'b' } },
    refusal: jobFault,
  },
  {
    sentence: 'to be immediate, as an afterthought',
    before: job({}),
    patch: { spec: { immediate: true } },
    refusal: jobFault,
  },
  {
    sentence: 'to be newer, as an afterthought',
    before: job({}),
    patch: { spec: { onlyIfNewer: true } },
    refusal: jobFault,
  },
  {
    sentence: 'not to be newer after all',
    before: job({ onlyIfNewer: true }),
    patch: { spec: { onlyIfNewer: false } },
    refusal: jobFault,
  },
  {
    sentence: 'a finished status',
    before: job({}),
    subresource: 'status',
    patch: {
      status: {
        phase: 'RolledBack',
        reason: 'SmokeTestFailed',
        message: 'GET /health answered 500',
        strategy: 'Canary',
        step: 2,
        weight: 0,
        oldVersion: '1.1.0',
        oldArtifact: { type: 'image', url: 'shop:1.1.0' },
        startedAt: '2026-11-20T12:00:00Z',
        finishedAt: '2026-11-20T12:03:00Z',
        previousRevision: 7,
        observedGeneration: 1,
      },
    },
  },
  {
    sentence: 'an unknown phase',
    before: job({}),
    subresource: 'status',
    patch: { status: { phase: 'Stuck' } },
    refusal: 'Unsupported value: "Stuck"',
  },
  {
    sentence: 'more than all traffic',
    before: job({}),
    subresource: 'status',
    patch: { status: { weight: 101 } },
    refusal: 'should be less than or equal to 100',
  },
  {
    sentence: 'a reason of several words',
    before: job({}),
    subresource: 'status',
    patch: { status: { reason: 'smoke test failed' } },
    refusal: 'status.reason',
  },
];

const policyUpdates: readonly Omit<Update, 'kind'>[] = [
  {
    sentence: 'another way to roll',
    before: policy({}),
    patch: { spec: { strategy: 'BlueGreen', rolling: { maxSurge: 1, maxUnavailable: '50%' } } },
  },
  {
    sentence: 'another service',
    before: policy({}),
    patch: { spec: { serviceName: '*' } },
    refusal: 'serviceName is immutable',
  },
];

export const deliveryUpdates: readonly Update[] = [
  ...jobUpdates.map((update) => ({ kind: deliveryJobKind, ...update })),
  ...policyUpdates.map((update) => ({ kind: deliveryPolicyKind, ...update })),
];
