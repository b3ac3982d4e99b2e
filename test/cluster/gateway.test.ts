import { randomBytes } from 'node:crypto';
import { sleep } from '@rollcall/platform/retry.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freeze, thaw } from '../support/freeze.ts';
import { listPods, processOf } from './chart/support/pods.ts';
import { type DeliveryStage, openDeliveryStage, type PolicyChanges, SERVICE } from './support/delivery.ts';
import type { LoadReport } from './support/load-report.ts';
import { noNode, noTraefik } from './support/namespace.ts';
import { openTraefik, type TestTraefik } from './support/traefik.ts';
import { expectNoFailure, expectOnly, expectReturn, expectShare, untilAnswered } from './support/traffic.ts';

const TITLE = 'canary behind a Gateway';
const ROLLBACK_LIMIT_MS = 10_000;
/** Traefik chooses a pod for each request. */
const REQUESTS_PER_CONNECTION = 1000;

/**
 * Four jobs at once: they wait for most of their time. With the Traefik of traefik/binary.ts. One
 * that is built without what needs ACME and passwords does; routing is all that is used here.
 */
describe.skipIf(noTraefik)('a canary behind a Gateway', () => {
  let traefik: TestTraefik;

  beforeAll(async () => {
    traefik = await openTraefik();
  });
  afterAll(() => traefik?.[Symbol.asyncDispose]());

  function openStage(policy: PolicyChanges): Promise<DeliveryStage> {
    // The route of the stage before is there until its namespace has gone, for half a minute
    // without pods: it must not fit.
    const path = `/${randomBytes(4).toString('hex')}`;
    const rule = {
      matches: [{ path: { type: 'PathPrefix', value: path } }],
      backendRefs: [{ name: SERVICE, port: 80 }],
    };
    const route = {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: { name: 'shop' },
      spec: { parentRefs: [traefik.gateway], rules: [rule] },
    };
    return openDeliveryStage({
      policy,
      manifests: [route],
      target: `${traefik.url}${path}`,
      requestsPerConnection: REQUESTS_PER_CONNECTION,
    });
  }

  test.concurrent('gets its weight, and no request fails', async ({ expect }) => {
    const steps = [{ weight: 10 }, { weight: 50 }];
    await using stage = await openStage(canary(...steps));
    const before = await untilRouted(stage);
    const job = await stage.deploy('Canary');
    for (const { weight } of steps) {
      await job.reachedWeight(weight);
      await expectShare({ title: TITLE, stage, weight });
      await job.promote();
    }
    expect((await job.ended()).status).toMatchObject({ phase: 'Succeeded' });
    console.log(job.timeline());
    await expectNoFailure(stage, before, TITLE);
    await expectOnly('v2', stage);
  });

  test.concurrent('gets nothing while the controller of EndpointSlices is behind, and no request fails', async ({
    expect,
  }) => {
    const weight = 30;
    await using stage = await openStage(canary({ weight }));
    const before = await untilRouted(stage);
    // Whoever makes another one is refused, and tries again after 1, 2, 4, ... seconds.
    const quota = ['quota', 'slices'];
    await stage.namespace.kubectl('create', ...quota, '--hard=count/endpointslices.discovery.k8s.io=1');
    const job = await stage.deploy('Canary');
    await job.reported('Waits for the EndpointSlices of Service shop-canary');
    await sleep(5000);
    expect(await job.status()).toMatchObject({ stage: 'Stepping', weight: 0 });
    await stage.namespace.kubectl('delete', ...quota);
    // A changed Service is observed again at once; the next try would be minutes away.
    await stage.namespace.kubectl('annotate', 'service', 'shop-canary', 'example.com/quota=deleted');
    await job.reachedWeight(weight);
    await expectShare({ title: TITLE, stage, weight });
    await job.promote();
    expect((await job.ended()).status).toMatchObject({ phase: 'Succeeded' });
    console.log(job.timeline());
    await expectNoFailure(stage, before, `late ${TITLE}`);
  });

  test.concurrent('gives its traffic back when it is aborted, and no request fails', async ({ expect }) => {
    const weight = 30;
    await using stage = await openStage(canary({ weight }));
    const before = await untilRouted(stage);
    const job = await stage.deploy('Canary');
    await job.reachedWeight(weight);
    await expectShare({ title: TITLE, stage, weight });
    const decidedAt = Date.now();
    await job.abort();
    expect((await job.ended()).status).toMatchObject({ phase: 'RolledBack' });
    console.log(job.timeline());
    await expectReturn({ stage, decidedAt, before, title: `aborted ${TITLE}`, limitMs: ROLLBACK_LIMIT_MS });
  });

  test.concurrent('gives its traffic back when its checks fail, and no request fails', async ({ expect }) => {
    const weight = 30;
    const http = { port: 8080, bodyContains: 'v1' };
    const analysis = [{ name: 'old', http, initialDelaySeconds: 40, intervalSeconds: 1 }];
    await using stage = await openStage({ ...canary({ weight, pauseSeconds: 1 }), analysis });
    const before = await untilRouted(stage);
    const job = await stage.deploy('Canary');
    await job.reached('StepVerifying');
    // The job is followed meanwhile, so that the moment of the decision is seen. It does not wait:
    // what share of the requests it gets is measured above.
    const [{ status }] = await Promise.all([job.ended(), untilAnswered('v2', stage, before)]);
    expect(status).toMatchObject({ phase: 'RolledBack' });
    console.log(job.timeline());
    const decidedAt = job.enteredPhase('RollingBack');
    await expectReturn({ stage, decidedAt, before, title: `failing ${TITLE}`, limitMs: ROLLBACK_LIMIT_MS });
  });

  // By itself: all of the others go by the same gateway.
  test.skipIf(noNode)('gets nothing while the gateway has no time to hear of it, and no request fails', async () => {
    const weight = 30;
    await using stage = await openStage(canary({ weight }));
    const before = await untilRouted(stage);
    const [pod] = await listPods(traefik.namespace);
    if (pod === undefined) throw new Error('There is no gateway');
    const pid = await processOf(pod);
    const job = await stage.deploy('Canary');
    await job.reached('Stepping');
    {
      using frozen = new DisposableStack();
      await freeze(pid);
      frozen.defer(() => thaw(pid));
      await job.reported('Waits for the gateways of HTTPRoute shop');
      await sleep(3000);
      expect(await job.status()).toMatchObject({ stage: 'Stepping', weight: 0 });
    }
    await job.reachedWeight(weight);
    await job.promote();
    expect((await job.ended()).status).toMatchObject({ phase: 'Succeeded' });
    console.log(job.timeline());
    await expectNoFailure(stage, before, `unheard ${TITLE}`);
  });
});

/** The first requests may come before the route is known. */
async function untilRouted(stage: DeliveryStage): Promise<LoadReport> {
  const versions = async (): Promise<string[]> => Object.keys((await stage.load()).answers);
  await expect.poll(versions, { timeout: 120_000, interval: 500 }).toContain('v1');
  return stage.load();
}

function canary(...steps: readonly object[]): PolicyChanges {
  return { canary: { steps, trafficRouter: 'GatewayAPI' } };
}
