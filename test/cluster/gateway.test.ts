import { runKubectl } from '@rollcall/local/kubectl.ts';
import { defaultCacheDirectory } from '@rollcall/local/kubernetes-binaries.ts';
import { findPublishedCrds } from '@rollcall/local/published-crds.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TRAEFIK_IMAGE } from './images/images.ts';
import { loadUntil, openDeliveryStage, SERVICE } from './support/delivery.ts';
import { failuresSince, shareOf } from './support/load-report.ts';
import { type ClusterNamespace, createClusterNamespace, noTraefik, sharedCluster } from './support/namespace.ts';
import { installTraefik, type TestGateway } from './support/traefik.ts';

const REQUESTS = 50_000;

/**
 * With the Traefik of TRAEFIK_BIN: a static executable. One that is built without what needs ACME and passwords does; routing is
 * all that is used here.
 */
describe.skipIf(noTraefik)('a canary behind a Gateway', () => {
  let namespace: ClusterNamespace;
  let gateway: TestGateway;

  beforeAll(async () => {
    const target = sharedCluster();
    const crds = await findPublishedCrds('gateway-api', {
      cacheDirectory: defaultCacheDirectory(process.env),
      log: console.error,
    });
    await runKubectl(target, ['apply', '--server-side', '-f', crds]);
    await runKubectl(target, ['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all']);
    namespace = await createClusterNamespace();
    gateway = await installTraefik(namespace, TRAEFIK_IMAGE);
  });
  afterAll(() => namespace?.[Symbol.asyncDispose]());

  test('gets exactly its weight, and no request fails', async () => {
    const steps = [
      { weight: 10, pauseSeconds: 25 },
      { weight: 50, pauseSeconds: 25 },
    ];
    const route = {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: { name: 'shop' },
      spec: { parentRefs: [gateway.reference], rules: [{ backendRefs: [{ name: SERVICE, port: 80 }] }] },
    };
    const policy = { canary: { steps, trafficRouter: 'GatewayAPI' } };
    await using stage = await openDeliveryStage({ policy, manifests: [route], target: gateway.url });
    // The first requests may come before the route is known.
    await expect
      .poll(async () => Object.keys((await stage.load()).answers), { timeout: 60_000, interval: 500 })
      .toContain('v1');
    const before = await stage.load();
    const job = await stage.deploy('Canary');
    for (const { weight } of steps) {
      await job.reachedWeight(weight);
      await sleep(3000);
      const from = await stage.load();
      await sleep(15_000);
      const share = shareOf('v2', from, await stage.load());
      console.log(`canary of weight ${weight} behind a Gateway: ${share.toFixed(1)} % of the requests`);
      expect(Math.abs(share - weight)).toBeLessThan(5);
    }
    expect((await job.ended()).status).toMatchObject({ phase: 'Succeeded' });
    const after = await loadUntil(stage, before, REQUESTS);
    const failures = failuresSince(before, after);
    console.log(job.timeline());
    expect({ failed: after.failed - before.failed, failures }).toEqual({ failed: 0, failures: [] });
  });
});
