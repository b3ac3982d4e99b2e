import { annotations } from '@rollcall/crds/kinds.ts';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { TRUSTING_IMAGE } from './images/rollcall-image.ts';
import { type ArtifactPod, FETCHED_ANSWER, startArtifactPod } from './support/artifacts.ts';
import { loadUntil, openDeliveryStage, type StageOptions } from './support/delivery.ts';
import { failuresSince, shareOf } from './support/load-report.ts';
import { type ClusterNamespace, createClusterNamespace, noNode, noRollcallImage } from './support/namespace.ts';

const stageOptions: StageOptions = {
  policy: {},
  annotations: { [annotations.binaryPath]: '/app/server.ts' },
  settings: { ROLLCALL_FETCHER_IMAGE: TRUSTING_IMAGE, ROLLCALL_FETCHER_ALLOW_PRIVATE: 'true' },
};

describe.skipIf(noNode || noRollcallImage)('a binary', () => {
  let namespace: ClusterNamespace;
  let server: ArtifactPod;

  beforeAll(async () => {
    namespace = await createClusterNamespace();
    server = await startArtifactPod(namespace);
  });
  afterAll(() => namespace?.[Symbol.asyncDispose]());

  test.concurrent("is fetched by Rollcall's own image, and serves in place of what was there, without a failed request", async ({
    expect,
  }) => {
    await using stage = await openDeliveryStage(stageOptions);
    const before = await stage.load();
    const artifact = { type: 'binary', url: server.programUrl, checksum: server.programChecksum } as const;
    const job = await stage.deploy('Rolling', artifact);
    expect((await job.ended()).status).toMatchObject({ phase: 'Succeeded' });
    // Connections from before the end of the job stay with their pods for a few requests.
    const share = async (): Promise<number> => {
      const from = await stage.load();
      return shareOf(FETCHED_ANSWER, from, await loadUntil(stage, from, 1000));
    };
    await expect.poll(share, { timeout: 120_000 }).toBe(100);
    expect(failuresSince(before, await stage.load())).toEqual([]);
  });

  test.concurrent('with another checksum than the job says never serves', async ({ expect }) => {
    await using stage = await openDeliveryStage(stageOptions);
    const checksum = `sha256:${'0'.repeat(64)}`;
    const job = await stage.deploy('Rolling', { type: 'binary', url: server.programUrl, checksum });
    const { status } = await job.ended();
    expect(status).toMatchObject({ phase: 'RolledBack', message: expect.stringMatching(/checksum/i) });
    const report = await loadUntil(stage, await stage.load(), 1000);
    expect(Object.keys(report.answers)).toEqual(['v1']);
  });
});
